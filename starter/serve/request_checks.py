"""Between the socket and a handler: host and origin, tokens, limits of size and time, errors as problems.

A request that waits ends when its token is taken out, or is good for less.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_core import from_json
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from longhaul.starter.client.reading.queries import NoReply, NoSession
from longhaul.starter.dev_server.web_ui import host_name, is_own
from longhaul.starter.serve.problems import Problem, problem_of, wrong
from longhaul.starter.serve.requests import Answer, Call, Operation, Served, path_values, unseen_by
from longhaul.starter.serve.tokens import BadTokens, Caller
from longhaul.starter.serve.tokens import Scope as TokenScope

LOOK_SECONDS = 1.0
"""A token that is taken out ends its streams before their next event, and what is silent or waits after so long."""

Made = TypeVar("Made")


async def while_let_in(caller: Caller, look: Callable[[], Caller], work: Awaitable[Made]) -> Made:
    """What the work gives, which is ended when `look` finds its caller to be another, or to be none. Raises Problem."""
    task = asyncio.ensure_future(work)
    try:
        while not (await asyncio.wait({task}, timeout=LOOK_SECONDS))[0]:
            _check(caller, look)
        return task.result()
    finally:
        task.cancel()
        # Until it has ended it might still answer, behind the refusal.
        await asyncio.gather(task, return_exceptions=True)


def _check(caller: Caller, look: Callable[[], Caller]) -> None:
    try:
        if look() == caller:
            return
        why = Problem("unauthorized", "Authorization: the token's rights have changed; ask again")
    except Problem as problem:
        why = problem
    told = "the token changed while this request waited; what it requested before is not undone"
    raise Problem(why.kind, f"{told}. {why.detail}", headers=why.headers)


MOST_BODY_BYTES = 2_000_000
SLOWEST_BODY_SECONDS = 20.0
PROBES = ("/health", "/ready")
"""Asked by whatever watches over the server, under its address."""
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    # Also of refusals: a 404 without it may be kept, and shown to whoever comes to the browser next.
    (b"cache-control", b"no-store"),
)

log = logging.getLogger(__name__)


class Door:
    """One path: finds the operation by its method, lets the caller in or not, and answers."""

    def __init__(self, served: Served, operations: Sequence[Operation]) -> None:
        self._served = served
        self._operations: dict[str, Operation] = {operation.method: operation for operation in operations}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            answer = await self._answer(Request(scope, receive))
            await answer(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception as error:
            if started:
                raise
            await problem_of(error).response()(scope, receive, send)

    async def _answer(self, request: Request) -> ASGIApp:
        operation = self._operations.get(request.method)
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            raise Problem("method", f"{request.method}: send {allowed} here", headers={"Allow": allowed})
        caller = caller_of(self._served, request.headers.get("authorization"), operation.scope, operation.also)
        path = path_values(request.path_params)
        pairs = request.query_params.multi_items()
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = next(name for name in found if len(request.query_params.getlist(name)) > 1)
            raise wrong(
                twice, ", ".join(request.query_params.getlist(twice)), "it is there more than once; send it once"
            )
        query = operation.query.model_validate(found)
        body = await _body_of(request, operation.body) if operation.body is not None else None
        check_body(operation, caller, body)
        call = Call(self._served, caller, path, query, body, request.headers)
        return as_answer(await carried_out(operation, call))


async def carried_out(operation: Operation, call: Call) -> Any:
    """What the handler gives, in its time and while the caller may ask. Raises Problem, and what `problem_of` knows."""

    def look() -> Caller:
        return caller_of(call.served, call.headers.get("authorization"), operation.scope, operation.also)

    async with asyncio.timeout(operation.seconds):
        try:
            return await while_let_in(call.caller, look, operation.handler(call))
        except NoSession as missing:
            if isinstance(missing, NoReply) or not (unseen := unseen_by(call)):
                raise
            raise NoSession(f"{missing}; {unseen}") from missing


def caller_of(served: Served, header: str | None, scope: TokenScope | None, also: TokenScope | None = None) -> Caller:
    """Raises Problem for whoever is not known, or may not."""
    if scope is None or served.is_open:
        return served.local
    caller = known_caller(served, header)
    for wanted in (scope, also or scope):
        if wanted not in caller.scopes:
            raise Problem("forbidden", f"Authorization: this needs a token with the scope {wanted!r}")
    return caller


def known_caller(served: Served, header: str | None) -> Caller:
    """Raises Problem for whoever is not known."""
    if served.tokens is None or served.is_open:
        return served.local
    kind, _, token = (header or "").partition(" ")
    try:
        caller = served.tokens.caller_of(token.strip()) if kind.lower() == "bearer" else None
    except BadTokens as bad:
        log.exception("nobody is admitted")
        raise Problem("unavailable", "the server's tokens can't be read; its log says why") from bad
    if caller is None:
        raise Problem(
            "unauthorized",
            "Authorization: send `Bearer` and a token from `longhaul serve token`",
            headers={"WWW-Authenticate": 'Bearer realm="longhaul"'},
        )
    return caller


def check_body(operation: Operation, caller: Caller, body: BaseModel | None) -> None:
    """Raises Problem for another's name, and for a field that wants more than the caller has."""
    by = getattr(body, "by", "")
    if by not in ("", caller.name):
        raise wrong(
            "by", by, f"the caller is {caller.name!r}, by the token, and cannot act in another name; leave it out"
        )
    if body is not None:
        check_fields(operation.fields, caller, body)


def check_fields(fields: Mapping[str, TokenScope], caller: Caller, body: BaseModel) -> None:
    """Raises Problem where something stands in a field that wants a scope which the caller lacks."""
    for name, scope in fields.items():
        if getattr(body, name) not in (None, False, ()) and scope not in caller.scopes:
            raise Problem("forbidden", f"{name}: this needs a token with the scope {scope!r}; leave it out")


async def _body_of(request: Request, model: type[BaseModel]) -> BaseModel:
    """Raises Problem and ValidationError."""
    text = await read_body(request)
    if not text:
        return model.model_validate({})
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem("media-type", f"Content-Type: {kind!r} is not read here; send application/json")
    try:
        given = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        raise Problem("malformed", f"body: it is no JSON ({error}); send one JSON object in UTF-8") from None
    return model.model_validate(given)


async def read_body(request: Request, most: int = MOST_BODY_BYTES) -> bytes:
    """Raises Problem for one that is too long, or too slow."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem("media-type", "Content-Encoding: send the body as it is")
    chunks, size = [], 0
    try:
        async with asyncio.timeout(SLOWEST_BODY_SECONDS):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > most:
                    raise Problem("too-large", f"body: send {most / 1_000_000:g} MB at most")
    except TimeoutError:
        raise Problem("slow", f"body: it was not there after {SLOWEST_BODY_SECONDS:g} s; send it again") from None
    return b"".join(chunks)


def as_answer(answer: Answer) -> ASGIApp:
    """What a handler gives, as what is sent."""
    match answer:
        case None:
            return Response(status_code=204)
        case BaseModel():
            return _json(200, answer)
        case (int() as status, BaseModel() as body):
            return _json(status, body)
        case _ if callable(answer):
            return answer
        case _:
            raise TypeError(f"a handler gave {answer!r}")


def _json(status: int, body: BaseModel) -> Response:
    return Response(body.model_dump_json(), status, media_type="application/json")


class Guard:
    """Around everything: names of the server, web pages, security headers; and paths stay as they were sent. A header
    that an answer has itself is left as it is."""

    def __init__(self, app: ASGIApp, served: Served) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                message["headers"] = [*own, *(one for one in SECURITY_HEADERS if one[0] not in named)]
            await send(message)

        # A name may hold a slash: %2F must not become one before the path is taken apart.
        raw = scope.get("raw_path") or scope["path"].encode()
        scope = {**scope, "path": raw.decode("latin-1")}
        try:
            self._check(Headers(scope=scope), scope["path"].removeprefix(self._served.root_path))
        except Problem as problem:
            await problem.response()(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _check(self, headers: Headers, path: str) -> None:
        """A web page may send to this machine in its reader's name: neither under a name of its own, nor openly."""
        for name in ("Host", "Origin"):
            if len(headers.getlist(name)) > 1:
                raise Problem("malformed", f"{name}: it is there more than once; send it once")
        host = headers.get("host", "")
        if host_name(host) not in self._served.hosts and path not in PROBES:
            raise Problem("wrong-host", f"Host: {host[:100]!r} is not served; name it in LONGHAUL_SERVE_HOSTS")
        origin = headers.get("origin")
        if origin is not None and origin not in self._served.origins and not is_own(origin, host):
            raise Problem("forbidden", f"Origin: pages of {origin[:100]!r} may not ask; see LONGHAUL_SERVE_ORIGINS")
