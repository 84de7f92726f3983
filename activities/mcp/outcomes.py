"""Judges what came of requests to an MCP server by HTTP, from status, headers and body: an answer, a refusal before
anything was done, or nobody knows.

The `mcp` package makes an error of the protocol of whatever it can't read, which then looks as if the server said it.
"""

import asyncio
from contextvars import ContextVar
from http import HTTPStatus
from typing import Literal

import httpx2
import mcp_types as types
from mcp.client.streamable_http import MCP_SESSION_ID
from mcp.shared.exceptions import MCPError
from pydantic_core import from_json

from longhaul.activities.models.profiles import is_within

Said = Literal["its answer", "its refusal", "no session", "not now", "unreachable", "nobody knows"]

MOST_IN_VAIN = 10
"""So often in a row a stream is asked for again that ends without a word: the package would do so until the call's time
is over, and at once where the server names no pause."""
HELD_SECONDS = 5.0
"""A stream that was open so long was not in vain: those in front of servers end silent ones by and by."""

_NO_SESSION, _NO_METHOD = "Session terminated", "Not Found"
"""What the `mcp` package says of a 404 without an error of the protocol, with a session and without one."""
_UNREADABLE = "Failed to parse"
"""What it says of answers that are none, with a code that servers have for requests."""
_UNKNOWN_SESSION = b"No valid session ID provided"
"""What servers that follow the examples of the protocol's own makers say with 400, where 404 is meant. It bears no
request's id, so the `mcp` package drops these words."""
_MOVED = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})
"""To be asked of somebody else. Of other redirections a page to look at may be meant, behind what was done."""
_MAYBE_STARTED = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.REQUEST_TIMEOUT})
"""Of 400 to 499 these are also said when a call has been handed on, or has taken too long."""


class Outcomes:
    """What came of requests by HTTP, where that was no answer: of one call's, or of a connection's own."""

    def __init__(self, *, acts: bool = False) -> None:
        """`acts`: what is asked for may have been done though nobody says so, as of a call, and not of a greeting."""
        self._acts = acts
        self.refused = 0
        """The status, where it is none of success."""
        self.had_session = False
        """What was sent last bore the id of a session."""
        self.is_forgotten = False
        """400 was the answer, for the session: see `_UNKNOWN_SESSION`."""
        self.is_put_off = False
        self.is_unsent = False
        self.is_judged = False
        """What the server says to the call is known. A connection sends many requests, of which the last one counts."""
        self.is_too_long = False
        self.unanswered = ""
        """What came in the place of the answer, in words."""
        self.failed = asyncio.get_running_loop().create_future()
        """Done when a request was not taken, or has no answer, of which not every transport says something."""
        self._in_vain = 0

    def fail(self) -> None:
        if not self.failed.done():
            self.failed.set_result(None)

    def end_too_long(self) -> None:
        self.is_too_long = True

    async def judge(
        self, response: httpx2.Response, request: httpx2.Request, *, is_call: bool, by_stream: bool
    ) -> None:
        """What the response to the request says before it is read. `is_call`: it has to be answered, `by_stream`: by
        another way. Raises what reading raises."""
        self.is_judged = is_call
        self.refused = 0 if response.is_success else response.status_code
        self.had_session = MCP_SESSION_ID in request.headers
        self.is_put_off, self.unanswered = False, ""
        if self.refused:
            is_away = self.refused == HTTPStatus.SERVICE_UNAVAILABLE
            is_later = not self._acts or "retry-after" in response.headers
            self.is_put_off = self.refused == HTTPStatus.TOO_MANY_REQUESTS or (is_away and is_later)
            if is_away and not is_later:
                # Alone it is also said of what took too long, and by proxies whose server ended under a call.
                self.unanswered = f"HTTP {self.refused}"
            if response.has_redirect_location:
                # What stands behind the path may be a key.
                led = _led_to(response, request).copy_with(userinfo=b"", query=None, fragment=None)
                self.unanswered = f"HTTP {self.refused}, which leads to {str(led)[:300]}"
        elif is_call and not by_stream:
            self.unanswered = await _in_its_place(response, request)
        if self.refused == HTTPStatus.BAD_REQUEST and self.had_session:
            self.is_forgotten = _UNKNOWN_SESSION in await response.aread()
        if self.refused or self.unanswered:
            self.fail()  # of an answer to another request the package says nothing to anybody

    def resume(self) -> None:
        """A stream is asked for. Raises ReadError where that has been in vain too often."""
        self._in_vain += 1
        if self._in_vain > MOST_IN_VAIN:
            self.unanswered = f"its stream ended {MOST_IN_VAIN} times in a row without a word"
            self.fail()
            raise httpx2.ReadError(self.unanswered)

    def hear(self) -> None:
        """There was a word in a stream, or it was held open."""
        self._in_vain = 0

    def said_by(self, error: MCPError | None) -> Said:
        """Whose word the error is, or what is known without one. By the specification 404 to what bears a session's id
        is of a server that knows no such session, and so has not started with the request; who stands in front of a
        server and answers 404, maybe behind its back, says nothing in the protocol's words."""
        if error is not None and self._is_of_the_server(error):
            if not self.refused:
                return "its answer"
            if self.is_forgotten:
                return "no session"
            if self.refused == HTTPStatus.NOT_FOUND and str(error) != _NO_METHOD:
                # Where there are no sessions, 404 is how a server says what it does not know.
                is_of_the_session = self.had_session and error.code != types.METHOD_NOT_FOUND
                return "no session" if is_of_the_session else "its answer"
        if self.is_put_off:
            return "not now"
        if self.is_unsent:
            return "unreachable"
        is_refusal = self.refused in _MOVED or (400 <= self.refused < 500 and self.refused not in _MAYBE_STARTED)
        return "its refusal" if is_refusal else "nobody knows"

    def _is_of_the_server(self, error: MCPError) -> bool:
        if error.code == types.CONNECTION_CLOSED or self.unanswered:
            return False
        text = str(error)
        return text != _NO_SESSION and not (error.code == types.PARSE_ERROR and text.startswith(_UNREADABLE))


def is_followed(response: httpx2.Response, request: httpx2.Request) -> bool:
    """Whether it leads to the same address, but for a slash, or to one below: the others were not listed, and would be
    sent the headers. What changes a POST into a GET is not followed by the package."""
    if not response.has_redirect_location or (request.method == "POST" and response.status_code not in _MOVED):
        return False
    return is_within(str(_led_to(response, request)), str(request.url))


def _led_to(response: httpx2.Response, request: httpx2.Request) -> httpx2.URL:
    return request.url.join(response.headers["location"])


async def _in_its_place(response: httpx2.Response, request: httpx2.Request) -> str:
    """What stands where the answer belongs, in words; empty for an answer, and for a stream that may bring it."""
    status, kind = response.status_code, response.headers.get("content-type", "")
    of_kind = f"HTTP {status} with {kind[:100]!r}" if kind else f"HTTP {status} with nothing that can be read"
    if status == HTTPStatus.ACCEPTED:
        return "HTTP 202, which is no answer"
    if kind.lower().startswith("text/event-stream"):
        return ""
    if not kind.lower().startswith("application/json"):
        return of_kind
    return "" if _answers(await response.aread(), await request.aread()) else f"{of_kind} which is no answer to it"


def _answers(said: bytes, asked: bytes) -> bool:
    """Some servers write the number of a request as a text."""
    try:
        answer, question = from_json(said), from_json(asked)
    except ValueError:
        return False
    is_answer = isinstance(answer, dict) and ("result" in answer or "error" in answer)
    return is_answer and str(answer.get("id")) == str(question["id"])


of_this_call: ContextVar[Outcomes | None] = ContextVar("of_this_call", default=None)
"""The package sends a request in the context of whoever makes it. Calls that are made together share a connection: what
comes of one must not be taken for what has come of another, which would be made a second time."""
