"""`POST /v1/webhooks/{hook}`: tells a session of an event, let in by a signature instead of a token."""

import asyncio
import hashlib
import logging
from typing import Any

from pydantic import Field
from pydantic_core import from_json, to_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from longhaul.agent.letters.bodies import Notify
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.deadlines import MOST_EVENT_CHARS, MOST_PAYLOAD_CHARS
from longhaul.starter.serve.acts import notify
from longhaul.starter.serve.operation import REQUEST_SECONDS, Answer
from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.request_bodies import Name, Whose
from longhaul.starter.serve.request_checks import as_answer, read_body
from longhaul.starter.serve.requests import Call, Served, path_values
from longhaul.starter.serve.tokens import Caller
from longhaul.starter.serve.webhooks import ID, SIGNATURE, TIMESTAMP, BadWebhooks, Delivery, SignedHook, read, sender_of

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
    """Lets in what one of the file's hooks has signed. The file is read anew each time: what is taken out counts at
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
        hook = sender_of(delivery, await self._known())
        said = _read(body)
        if hook.events and said.type not in hook.events:
            raise Problem("forbidden", f"type: the hook {hook.name!r} may tell of {', '.join(hook.events)}")
        caller = Caller(hook.user, f"webhook {hook.name}", frozenset(("answer",)))
        told = Notify(event=said.type, payload=_payload(said.data), request_id=_request_id(hook, delivery))
        place = {"agent": hook.agent, "session": _session(hook, said)}
        return await notify(Call(self._served, caller, place, Whose(), told, headers))

    async def _known(self) -> tuple[SignedHook, ...]:
        try:
            return await asyncio.to_thread(read, self._served.app.settings.data_dir / FILE)
        except BadWebhooks as bad:
            log.exception("no webhook is let in")
            raise Problem("unavailable", "the server's webhooks can't be read; its log says why") from bad


def _read(body: bytes) -> WebhookBody:
    try:
        given = from_json(body, allow_inf_nan=False)
    except ValueError as error:  # UnicodeDecodeError is one
        raise Problem("malformed", f'body: send JSON, as {{"type": "deployed", "data": …}} ({error})') from None
    return WebhookBody.model_validate(given)


def _session(hook: SignedHook, said: WebhookBody) -> str:
    if hook.session != "*":
        return hook.session
    if not said.session:
        raise Problem("invalid", f"session: the hook {hook.name!r} is for many; say in the body which one is meant")
    return said.session


def _payload(data: object) -> str:
    text = "" if data is None else data if isinstance(data, str) else to_json(data).decode()
    if len(text) > MOST_PAYLOAD_CHARS:
        raise Problem("too-large", f"data: it has {len(text)} characters, and {MOST_PAYLOAD_CHARS} are the most")
    return text


def _request_id(hook: SignedHook, delivery: Delivery) -> str:
    """One delivery that is sent again has the same id, and another time and signature."""
    return f"webhook {hook.name} {hashlib.sha256(delivery.id.encode()).hexdigest()}"
