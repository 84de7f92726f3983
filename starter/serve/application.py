"""The ASGI app: every route of the table behind its door, and the guard around all of them."""

import asyncio
import json
from collections.abc import Sequence
from functools import cache
from itertools import groupby

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from longhaul.starter.serve import webhook_endpoint
from longhaul.starter.serve.mcp_endpoint import PATH, McpDoor
from longhaul.starter.serve.openapi import document
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.request_checks import Door, Guard
from longhaul.starter.serve.requests import IDEMPOTENCY_KEY, Served
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.streaming import LAST_EVENT_ID
from longhaul.starter.serve.webhook_endpoint import WebhookDoor


def application(served: Served, pages: Sequence[Route] = ()) -> Starlette:
    """Serves the sessions of `served.app`, and pages beside them; whoever runs it sets `served.draining` when it is to
    end."""

    async def openapi(request: Request) -> Response:
        del request
        described = await asyncio.to_thread(_described, served.root_path, guarded=not served.is_open)
        return Response(described, media_type="application/json")

    by_path = groupby(sorted(OPERATIONS, key=lambda one: one.path), key=lambda one: one.path)
    doors = [Route(path, Door(served, tuple(operations))) for path, operations in by_path]
    hooks = Route(webhook_endpoint.PATH, WebhookDoor(served))
    app = Starlette(
        routes=[Route("/openapi.json", openapi, methods=["GET"]), Route(PATH, McpDoor(served)), hooks, *doors, *pages],
        middleware=[Middleware(Guard, served=served), *_for_web_pages(served)],
        exception_handlers={404: _nothing_here, 405: _not_so},
    )
    app.router.redirect_slashes = False
    return app


@cache
def _described(root_path: str, *, guarded: bool) -> bytes:
    """Made when somebody asks: it takes longer than all else that a server does before it serves."""
    return json.dumps(document(OPERATIONS, root_path, guarded=guarded)).encode()


def _for_web_pages(served: Served) -> list[Middleware]:
    if not served.origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=list(served.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", IDEMPOTENCY_KEY, LAST_EVENT_ID],
        )
    ]


async def _nothing_here(request: Request, error: Exception) -> Response:
    del error
    return Problem(
        "not-found", f"there is no {request.scope['path'][:200]!r}; /openapi.json names all that there is"
    ).response()


async def _not_so(request: Request, error: Exception) -> Response:
    del error
    return Problem("method", f"{request.method}: send GET here", headers={"Allow": "GET"}).response()
