"""One request to the console: what it was sent, and what it may ask. All of that goes through the HTTP API's own table:
the same scopes, bodies and handlers, so that a page can do nothing that a request could not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from starlette.datastructures import Headers
from starlette.requests import Request

from longhaul.starter.console.authentication import PATH, Visitor
from longhaul.starter.console.forms import SentFile
from longhaul.starter.serve.request_checks import caller_of, carried_out, check_body
from longhaul.starter.serve.requests import Call, Served, path_values
from longhaul.starter.serve.response_bodies import Row
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.serve.streaming import LAST_EVENT_ID
from longhaul.starter.serve.tokens import Scope

NAMED = {one.name: one for one in OPERATIONS}
WHOSE = ("user", "anonymous")


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of somebody who was let in."""

    served: Served
    request: Request
    visitor: Visitor
    form: Mapping[str, str]
    """What was filled in; empty for a page that is looked at."""
    has_login: bool
    files: tuple[SentFile, ...] = ()
    """Those that were chosen with it."""

    @property
    def home(self) -> str:
        """Path of the inbox."""
        return self.served.root_path + PATH

    @property
    def whose(self) -> dict[str, str]:
        """Another user's sessions, where the address says so."""
        return {name: value for name, value in self.request.query_params.items() if name in WHOSE}

    def may(self, scope: Scope) -> bool:
        return scope in self.visitor.caller.scopes

    async def ask(
        self,
        name: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        path: Mapping[str, str] | None = None,
    ) -> Any:
        """What the operation of that name answers. Raises Problem, and what `problem_of` knows."""
        return await carried_out(NAMED[name], self.call(name, query, body, path))

    def call(
        self,
        name: str,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        path: Mapping[str, str] | None = None,
    ) -> Call:
        """What a request by HTTP to that operation would be. Raises Problem and ValidationError."""
        operation = NAMED[name]
        caller = caller_of(self.served, self.visitor.authorization, operation.scope, operation.also)
        asked = operation.query.model_validate({**self.whose, **(query or {})})
        given = None if operation.body is None else operation.body.model_validate(body or {})
        if given is not None:
            check_body(operation, caller, given)
        headers = {"authorization": self.visitor.authorization}
        if seen := self.request.headers.get(LAST_EVENT_ID):
            headers[LAST_EVENT_ID] = seen
        where = path_values(self.request.path_params) if path is None else path
        return Call(self.served, caller, where, asked, given, Headers(headers))

    def session_link(self, agent: str, session: str, user: str | None, page: str = "", **query: str) -> str:
        """Of a session's page, or one below it."""
        own = self.visitor.caller.user
        whose = {} if user == own else {"anonymous": "true"} if user is None else {"user": user}
        below = f"/{page}" if page else ""
        asked = urlencode({**query, **whose})
        return f"{self.home}/s/{quote(agent, safe='')}/{quote(session, safe='')}{below}{'?' if asked else ''}{asked}"

    def row_link(self, row: Row, page: str = "", **query: str) -> str:
        return self.session_link(row.agent, row.session_id, row.user_id, page, **query)

    def listed(self, page: str, asked: Mapping[str, str], start: int) -> str:
        """A list with these filters, from that row on."""
        where = urlencode({**asked, **self.whose, **({"from": start} if start else {})})
        return f"{self.home}{page}{'?' if where else ''}{where}"

    def here(self, page: str = "", **query: str) -> str:
        """A page of the session that this address names."""
        return self.beside(path_values(self.request.path_params)["session"], page, **query)

    def beside(self, session: str, page: str = "", **query: str) -> str:
        """The same of another session of that user and agent."""
        agent = path_values(self.request.path_params)["agent"]
        below = f"/{page}" if page else ""
        asked = urlencode({**query, **self.whose})
        named = f"{quote(agent, safe='')}/{quote(session, safe='')}"
        return f"{self.home}/s/{named}{below}{'?' if asked else ''}{asked}"
