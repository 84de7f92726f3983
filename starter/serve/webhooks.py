"""Webhooks that wake sessions, `POST /v1/webhooks/{hook}`: let in by a signature as Standard Webhooks says
(standardwebhooks.com) instead of a token; a session is told of an event once, however often it comes.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic import Field
from pydantic_core import from_json, to_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from longhaul.agent.operations.all_operations import row_of
from longhaul.agent.operations.answers import Notified
from longhaul.agent.operations.bodies import Notify
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.ids import check_name
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.deadlines import MOST_EVENT_CHARS, MOST_PAYLOAD_CHARS
from longhaul.starter.serve.acts import by_operation
from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.request_bodies import Name, Whose
from longhaul.starter.serve.request_checks import as_answer, read_body
from longhaul.starter.serve.requests import REQUEST_SECONDS, Answer, Call, Served, path_values
from longhaul.starter.serve.tokens import Caller

PREFIX = "whsec_"
SHORTEST_KEY_BYTES, LONGEST_KEY_BYTES = 24, 64
"""As the specification says."""
TOLERANCE_SECONDS = 300
"""Older or newer by more is refused; what is younger is known by its id."""
MOST_SIGNATURES = 10
LONGEST_ID_CHARS = 300
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class BadWebhooks(BadSetup):
    """A file of webhooks that can't be used; the sentence names the file, the line and what to do, and no secret."""


@dataclass(frozen=True, slots=True)
class SignedHook:
    """One line."""

    name: str
    key: bytes
    user: str
    agent: str
    session: str
    """`*`: the body names it."""
    events: tuple[str, ...] = ()
    """Empty: any."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What was sent, before anybody knows who has sent it."""

    hook: str
    id: str
    timestamp: str
    signatures: str
    body: bytes


def read(path: Path) -> tuple[SignedHook, ...]:
    """Those that there are now; none without a file. Blocking. Raises BadWebhooks, also where others may read it."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise BadWebhooks(f"{str(path)!r} can't be read ({error})") from error
    if mode & 0o077:
        raise BadWebhooks(f"{str(path)!r} has mode {mode & 0o777:04o}, so others reach its secrets; `chmod 600` it")
    lines = [(number, line.split()) for number, line in enumerate(text.splitlines(), start=1)]
    owners = dict[bytes, str]()
    hooks = list[SignedHook]()
    for number, words in lines:
        if not words or words[0].startswith("#"):
            continue
        hook = _parsed(words, f"{path}: line {number}")
        # A signature does not cover the address: what one of them was sent could be sent to the other too.
        if (owner := owners.setdefault(hook.key, hook.name)) != hook.name:
            raise BadWebhooks(
                f"{path}: line {number}: {hook.name!r} has the secret of {owner!r}, so a signature for one is valid "
                "for the other; create another secret for one of them"
            )
        hooks.append(hook)
    return tuple(hooks)


def _parsed(words: Sequence[str], where: str) -> SignedHook:
    if len(words) not in (5, 6) or not _NAME.fullmatch(words[0]):
        raise BadWebhooks(
            f"{where} is not `name secret user agent session [events]`; a name has letters, digits, `.`, `_` and `-`"
        )
    user, agent, session = (_plain(word, where) for word in words[2:5])
    events = tuple(words[5].split(",")) if len(words) == 6 else ()
    secret = words[1]
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
    except binascii.Error:
        key = b""
    if not SHORTEST_KEY_BYTES <= len(key) <= LONGEST_KEY_BYTES:
        raise BadWebhooks(
            f"{where}: the secret has to be `{PREFIX}` and {SHORTEST_KEY_BYTES} to {LONGEST_KEY_BYTES} bytes in "
            f'base64, as of `echo "{PREFIX}$(openssl rand -base64 32)"`'
        )
    return SignedHook(words[0], key, user, agent, session, events)


def _plain(word: str, where: str) -> str:
    try:
        name = unquote(word, errors="strict")
        check_name("name", name)
    except ValueError as error:
        raise BadWebhooks(f"{where}: {word[:100]!r} can't be a user, an agent or a session ({error})") from error
    return name


def signed(key: bytes, delivery_id: str, timestamp: str, body: bytes) -> str:
    """One signature, as it stands in the header."""
    content = b".".join((delivery_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()}"


def sender_of(delivery: Delivery, hooks: Iterable[SignedHook], now: float | None = None) -> SignedHook:
    """Whose delivery it is. Raises Problem: of an unknown hook the same as of a forged signature.

    The time is looked at last, so that nobody learns of it who can't sign.
    """
    if not delivery.id or len(delivery.id) > LONGEST_ID_CHARS or not _SECONDS.fullmatch(delivery.timestamp):
        raise _stranger()
    given = delivery.signatures.split()[:MOST_SIGNATURES]
    found: SignedHook | None = None
    for hook in hooks:  # all of them each time: how long it takes says nothing
        expected = signed(hook.key, delivery.id, delivery.timestamp, delivery.body).encode()
        matches = [hmac.compare_digest(expected, one.encode("utf-8", "replace")) for one in given]
        if any(matches) and hook.name == delivery.hook:
            found = hook
    if found is None:
        raise _stranger()
    if abs((time.time() if now is None else now) - int(delivery.timestamp)) > TOLERANCE_SECONDS:
        raise Problem(
            "unauthorized",
            f"{TIMESTAMP}: it is more than {TOLERANCE_SECONDS} seconds away from this server's clock; sign it again "
            f"for each attempt, with the same {ID}",
        )
    return found


def _stranger() -> Problem:
    return Problem(
        "unauthorized",
        f"{SIGNATURE}: send {ID}, {TIMESTAMP} in seconds, and `v1,` with the base64 of the HMAC-SHA256 of "
        "`id.timestamp.body` under the secret of this hook",
    )


PATH = "/v1/webhooks/{hook}"
FILE = "webhooks"
"""In the data directory."""
log = logging.getLogger(__name__)

MOST_BYTES = 64_000
"""It is read before anybody knows who sends it."""


class WebhookBody(OpenValue):
    """As Standard Webhooks says; whatever else it holds is not read."""

    type: str = Field(min_length=1, max_length=MOST_EVENT_CHARS)
    """The event."""
    data: Any = None
    """For the model, as JSON; text stays text."""
    session: Name = ""
    """Of a hook that may wake any session of its user and agent."""


class WebhookDoor:
    """Lets in what one of the file's hooks has signed. The file is read again each time: what is taken out counts at
    once."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = as_answer(await self._taken(Request(scope, receive)))
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  each has its problem
            answer = problem_of(error).response()
        await answer(scope, receive, send)

    async def _taken(self, request: Request) -> Answer:
        """Raises Problem, ValidationError, NoSession and Refused."""
        if request.method != "POST":
            raise Problem("method", f"{request.method}: send POST here", headers={"Allow": "POST"})
        name, headers = path_values(request.path_params)["hook"], request.headers
        body = await read_body(request, MOST_BYTES)
        delivery = Delivery(name, headers.get(ID, ""), headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, ""), body)
        try:
            known = await asyncio.to_thread(read, self._served.app.settings.data_dir / FILE)
        except BadWebhooks as bad:
            log.exception("no webhook is accepted")
            raise Problem("unavailable", "the server's webhooks can't be read; its log says why") from bad
        hook = sender_of(delivery, known)
        try:
            given = from_json(body, allow_inf_nan=False)
        except ValueError as error:  # UnicodeDecodeError is one
            raise Problem("malformed", f'body: send JSON, as {{"type": "deployed", "data": …}} ({error})') from None
        said = WebhookBody.model_validate(given)
        if hook.events and said.type not in hook.events:
            raise Problem("forbidden", f"type: the hook {hook.name!r} may send {', '.join(hook.events)}")
        caller = Caller(hook.user, f"webhook {hook.name}", frozenset(("answer",)))
        # One delivery that is sent again has the same id, and another time and signature.
        text = "" if said.data is None else said.data if isinstance(said.data, str) else to_json(said.data).decode()
        if len(text) > MOST_PAYLOAD_CHARS:
            raise Problem("too-large", f"data: it has {len(text)} characters, and {MOST_PAYLOAD_CHARS} are the most")
        told = Notify(
            event=said.type,
            payload=text,
            request_id=f"webhook {hook.name} {hashlib.sha256(delivery.id.encode()).hexdigest()}",
        )
        if hook.session == "*" and not said.session:
            raise Problem("invalid", f"session: the hook {hook.name!r} serves several sessions; name one in the body")
        place = {"agent": hook.agent, "session": said.session if hook.session == "*" else hook.session}
        notify = by_operation(row_of("notify"))
        answer: Notified = await notify(Call(self._served, caller, place, Whose(), told, headers))
        return answer
