"""The ASGI app: every route of the table behind its door, and the guard around all of them.

`/mcp` is Longhaul as an MCP server by HTTP, and `/a2a/AGENT` is an agent for other agents, with the same tokens, names
and bounds as every other path.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import groupby

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from longhaul.agent.plain.errors import missing
from longhaul.starter.serve import webhooks
from longhaul.starter.serve.codec_server import NAMESPACE
from longhaul.starter.serve.event_stream import LAST_EVENT_ID
from longhaul.starter.serve.openapi import document
from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.request_checks import Door, Guard, known_caller, read_body, while_let_in
from longhaul.starter.serve.requests import IDEMPOTENCY_KEY, Served
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.tokens import Caller
from longhaul.starter.serve.webhooks import WebhookDoor

PATH = "/mcp"

log = logging.getLogger(__name__)
Answer = Callable[[Served, Caller, Scope, Receive, Send], Awaitable[None]]


class RpcDoor:
    """The one path of a protocol: lets in everybody who has a token, of any scope. What is asked there wants
    scopes."""

    def __init__(self, served: Served, load: Callable[[], Answer]) -> None:
        """`load`: the module that answers, once somebody is let in. Raises Problem."""
        self._served = served
        self._load = load

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            caller, answer, body = await self._let_in(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  each has its problem
            await problem_of(error).response()(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        authorization = request.headers.get("authorization")
        work = answer(self._served, caller, scope, _replayed(body, receive), sending)
        try:
            await while_let_in(caller, lambda: known_caller(self._served, authorization), work)
        except Exception as error:
            if not started:
                await problem_of(error).response()(scope, receive, send)
            elif isinstance(error, Problem | TimeoutError):
                log.info("the answer to %s ends before its end: %s", caller.name, error)
            else:
                raise

    async def _let_in(self, request: Request) -> tuple[Caller, Answer, bytes]:
        """Raises Problem."""
        if request.method != "POST":
            # No streams of its own, and no sessions that could be ended: clients do without.
            raise Problem("method", f"{request.method}: send POST here", headers={"Allow": "POST"})
        caller = known_caller(self._served, request.headers.get("authorization"))
        return caller, self._load(), await read_body(request)


def _mcp() -> Answer:
    if find_spec("mcp") is None:
        raise Problem("unavailable", "this server does not serve MCP: pip install 'longhaul-agents[mcp]'")
    from longhaul.starter.serve.mcp_server import answer  # noqa: PLC0415  needs the extra

    return answer


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A request whose body was read already."""
    started = False

    async def receiving() -> Message:
        nonlocal started
        if started:
            return await receive()
        started = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving


def _of_agents(served: Served) -> list[Route]:
    """Of the agents that are published. Raises MissingExtra."""
    if not served.published:
        return []
    try:
        from longhaul.starter.serve import a2a_server  # noqa: PLC0415  needs the extra
    except ModuleNotFoundError as error:
        raise missing(error) from error
    return [*a2a_server.routes(served), Route(a2a_server.PATH, RpcDoor(served, lambda: a2a_server.answer))]


def application(served: Served, pages: Sequence[Route] = ()) -> Starlette:
    """Serves the sessions of `served.app`, and pages beside them; whoever runs it sets `served.draining` when it is to
    end."""

    async def openapi(request: Request) -> Response:
        del request
        described = await asyncio.to_thread(_described, served.root_path, guarded=not served.is_open)
        return Response(described, media_type="application/json")

    by_path = groupby(sorted(OPERATIONS, key=lambda one: one.path), key=lambda one: one.path)
    doors = [Route(path, Door(served, tuple(operations))) for path, operations in by_path]
    hooks = Route(webhooks.PATH, WebhookDoor(served))
    mcp, agents = Route(PATH, RpcDoor(served, _mcp)), _of_agents(served)
    described = Route("/openapi.json", openapi, methods=["GET"])
    return guarded(served, [described, mcp, *agents, hooks, *doors, *pages])


def guarded(served: Served, routes: Sequence[Route]) -> Starlette:
    """These routes, behind the guard."""
    headers = ["Authorization", "Content-Type", IDEMPOTENCY_KEY, LAST_EVENT_ID, NAMESPACE]
    for_web_pages = Middleware(
        CORSMiddleware, allow_origins=list(served.origins), allow_methods=["GET", "POST"], allow_headers=headers
    )
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, served=served), *([for_web_pages] if served.origins else [])],
        exception_handlers={404: _nothing_here, 405: _not_so},
    )
    app.router.redirect_slashes = False
    return app


@cache
def _described(root_path: str, *, guarded: bool) -> bytes:
    """Made when somebody asks: it takes longer than all else that a server does before it serves."""
    return json.dumps(document(OPERATIONS, root_path, guarded=guarded)).encode()


async def _nothing_here(request: Request, error: Exception) -> Response:
    del error
    return Problem(
        "not-found", f"there is no {request.scope['path'][:200]!r}; /openapi.json lists all paths"
    ).response()


async def _not_so(request: Request, error: Exception) -> Response:
    del error
    return Problem("method", f"{request.method}: send GET here", headers={"Allow": "GET"}).response()
