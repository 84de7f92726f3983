"""`/mcp`: Longhaul as an MCP server by HTTP, with the same tokens, names and bounds as every other path."""

from importlib.util import find_spec

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from longhaul.starter.serve.problems import Problem, problem_of
from longhaul.starter.serve.request_checks import known_caller, read_body
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.revocation import while_let_in
from longhaul.starter.serve.tokens import Caller

PATH = "/mcp"


class McpDoor:
    """Lets in whoever has a token, whatever it is good for: tools want scopes."""

    def __init__(self, served: Served) -> None:
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            caller, body = await self._let_in(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001  each has its problem
            await problem_of(error).response()(scope, receive, send)
            return
        from longhaul.starter.serve.mcp_server import answer, replayed  # noqa: PLC0415  needs the extra

        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        authorization = request.headers.get("authorization")
        work = answer(self._served, caller, scope, replayed(body, receive), sending)
        try:
            await while_let_in(caller, lambda: known_caller(self._served, authorization), work)
        except Problem as problem:
            if begun:
                raise
            await problem.response()(scope, receive, send)

    async def _let_in(self, request: Request) -> tuple[Caller, bytes]:
        """Raises Problem."""
        if request.method != "POST":
            # No streams of its own, and no sessions that could be ended: clients do without.
            raise Problem("method", f"{request.method}: send POST here", headers={"Allow": "POST"})
        caller = known_caller(self._served, request.headers.get("authorization"))
        if find_spec("mcp") is None:
            raise Problem("unavailable", "this server is no MCP server: pip install 'longhaul-agents[mcp]'")
        return caller, await read_body(request)
