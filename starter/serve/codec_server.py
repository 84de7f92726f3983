"""A codec server, as Temporal's Web UI and command line ask one: payloads of the history in, what they say out.

A token with the scope `read` reads what the sessions of its user say, and with `admin` what all say. It encodes with
the operator's own codec alone: what people send by hand is taken in clear text, and the key of a session is for what
the session and its clients say.
"""

import asyncio
import json
import time
from typing import Literal

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.converter import PayloadCodec

from longhaul.starter.connection.connect import keyring_in
from longhaul.starter.serve.problems import Problem, problem_of, wrong
from longhaul.starter.serve.request_checks import caller_of, read_body
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import Caller
from longhaul.stores.keys.keyring import Keyring
from longhaul.workflows.contract import BlobGone, WithinCodec, check_had, is_encrypted, owner_of

NAMESPACE = "X-Namespace"
"""The header in which the Web UI and the command line name what they show."""
MOST_BODY_BYTES = 8_000_000
MOST_PAYLOADS = 5_000
SECONDS = 20.0
LISTED_SECONDS = 5.0
_ASCII_JSON = {"encoding": b"json/plain"}


class CodecDoor:
    """One of the two paths."""

    def __init__(self, served: Served, does: Literal["decode", "encode"]) -> None:
        self._served = served
        self._does = does
        self._owned = dict[frozenset[str], tuple[float, set[str]]]()
        """By user, of whom there are as many as tokens: when they were looked up, and whose keys are theirs."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._answer(Request(scope, receive))
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  each has its problem
            answer = problem_of(error).response()
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Raises Problem."""
        if request.method != "POST":
            raise Problem("method", f"{request.method}: send POST here", headers={"Allow": "POST"})
        scope: Literal["read", "answer"] = "read" if self._does == "decode" else "answer"
        caller = caller_of(self._served, request.headers.get("authorization"), scope)
        own = self._served.app.client.namespace
        if (named := request.headers.get(NAMESPACE) or own) != own:  # the command line sends it empty
            raise wrong(NAMESPACE, named, f"this codec server is for the namespace {own!r}; start one for that, too")
        payloads = _payloads_in(await read_body(request, MOST_BODY_BYTES))
        done = await (self._decoded(caller, payloads) if self._does == "decode" else self._encoded(payloads))
        return JSONResponse(MessageToDict(Payloads(payloads=done)))

    async def _encoded(self, payloads: list[Payload]) -> list[Payload]:
        codec = self._codec
        return await codec.outer.encode(payloads) if isinstance(codec, WithinCodec) else payloads

    async def _decoded(self, caller: Caller, payloads: list[Payload]) -> list[Payload]:
        """What the caller may not read stays as it came."""
        codec, keys = self._codec, keyring_in(self._served.app.client)
        if codec is None:
            return payloads
        sees_all = "admin" in caller.scopes
        within = await codec.outer.decode(payloads) if isinstance(codec, WithinCodec) else payloads
        if len(within) != len(payloads):
            raise Problem("malformed", "payloads: the codec returned another number of them; see LONGHAUL_CODEC")
        readable = set[str]() if sees_all or keys is None else await self._owned_by(caller)
        shown: list[Payload] = []
        for came, payload in zip(payloads, within, strict=True):
            if is_encrypted(payload) and keys is not None:
                may = sees_all or await _owner(keys, payload) in readable
                shown.append(await _plain(codec, came) if may else came)
            else:
                # Encoded by the operator's codec alone: nothing in it says whose it is.
                shown.append(payload if sees_all or payload == came else came)
        return shown

    @property
    def _codec(self) -> PayloadCodec | None:
        return self._served.app.client.data_converter.payload_codec

    async def _owned_by(self, caller: Caller) -> set[str]:
        """Of the sessions of its users that the server still lists; sub-agents have the key of their root. A page asks
        once for each payload, so the list is kept for a moment."""
        app, now, users = self._served.app, time.monotonic(), caller.users
        found_at, owned = self._owned.get(users, (now - LISTED_SECONDS, set[str]()))
        if now - found_at >= LISTED_SECONDS:
            cards = await app.sessions(user=users, closed=True)
            owned = {owner_of(app.client.namespace, card.workflow_id) for card in cards}
            self._owned[users] = now, owned
        return owned


async def _owner(keys: Keyring, payload: Payload) -> str | None:
    return await keys.owner(payload.metadata.get("key", b"").decode("ascii", "replace"))


async def _plain(codec: PayloadCodec, payload: Payload) -> Payload:
    """Or a sentence in its place that says why there is none."""
    (plain,) = await codec.decode([payload])
    try:
        check_had(plain)
    except BlobGone as gone:
        return Payload(metadata=_ASCII_JSON, data=json.dumps(f"({gone})").encode())
    return plain


def _payloads_in(body: bytes) -> list[Payload]:
    """Raises Problem."""
    try:
        read = ParseDict(json.loads(body), Payloads())
    except (ValueError, ParseError, RecursionError) as error:
        raise Problem("malformed", f"body: it is no {{'payloads': [...]}} as Temporal sends it ({error})") from None
    if len(read.payloads) > MOST_PAYLOADS:
        raise wrong("payloads", str(len(read.payloads)), f"send {MOST_PAYLOADS:,} at most")
    return list(read.payloads)


def codec_routes(served: Served) -> list[Route]:
    """`/decode` and `/encode`, also below the name of the namespace, which the Web UI may put before them."""
    doors = {"/decode": CodecDoor(served, "decode"), "/encode": CodecDoor(served, "encode")}
    return [Route(prefix + path, door) for path, door in doors.items() for prefix in ("", "/{namespace}")]
