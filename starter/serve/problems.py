"""Makes problem JSON (RFC 9457) of what went wrong: which field, which value, what to do."""

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json
from starlette.responses import Response
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from longhaul.agent.incarnation.history import NoSuchStep
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.values import sparse
from longhaul.starter.client.agent_files import BadAgent
from longhaul.starter.client.reading.journal import HistoryUnreadable
from longhaul.starter.client.reading.queries import BlobsUnreachable, NoSession, NoWorker, Stuck, Unexplained
from longhaul.starter.client.session_requests import CompressionFailed, CompressionPending
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import Unreachable
from longhaul.starter.folder_trust import BadSettingsFile, Untrusted
from longhaul.starter.visible import harmless
from longhaul.workflows.contract import BlobGone

MEDIA_TYPE = "application/problem+json"
MOST_ERRORS = 10
LONGEST_VALUE_CHARS = 100

log = logging.getLogger(__name__)


class FieldError(BaseModel):
    """One place of a request that is wrong."""

    field: str
    value: str = sparse("")
    detail: str


class ProblemBody(BaseModel):
    """RFC 9457."""

    type: str = Field(description="`urn:longhaul:` and a word for programs")
    title: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] = sparse(())


TITLES: Mapping[str, tuple[int, str]] = {
    "malformed": (400, "The request can't be read"),
    "unauthorized": (401, "The caller is unknown"),
    "forbidden": (403, "This token may not do that"),
    "not-found": (404, "Not found"),
    "method": (405, "Method not allowed"),
    "slow": (408, "The request came too slowly"),
    "refused": (409, "The session changed nothing"),
    "too-large": (413, "The request is too large"),
    "media-type": (415, "Unsupported media type"),
    "wrong-host": (421, "Not a host name of this server"),
    "invalid": (422, "A value is wrong"),
    "too-many": (429, "Too many at once"),
    "failed": (500, "It failed"),
    "unavailable": (503, "A required service does not answer"),
    "no-answer": (504, "The session did not answer in time"),
}
"""Each kind of problem: its status and title."""


class Problem(Exception):
    """Ends a request with a problem of one of these kinds."""

    def __init__(
        self, kind: str, detail: str, *, errors: tuple[FieldError, ...] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}

    @property
    def status(self) -> int:
        return TITLES[self.kind][0]

    def response(self) -> Response:
        status, title = TITLES[self.kind]
        detail = harmless(self.detail)
        body = ProblemBody(
            type=f"urn:longhaul:{self.kind}", title=title, status=status, detail=detail, errors=self.errors
        )
        return Response(body.model_dump_json(), status, dict(self.headers), MEDIA_TYPE)


def wrong(field: str, value: str, detail: str) -> Problem:
    """One field with a wrong value."""
    shown = harmless(value)[:LONGEST_VALUE_CHARS]
    error = FieldError(field=field, value=shown, detail=detail)
    return Problem("invalid", f"{field}: {detail} (it is {shown!r})", errors=(error,))


def problem_of(error: Exception) -> Problem:
    """What any error means for whoever asked. What is nobody's foreseen fault goes to the log and says nothing."""
    match error:
        case Problem():
            return error
        case ValidationError():
            fields = tuple(
                FieldError(
                    field=".".join(str(part) for part in one["loc"]) or "body",
                    value=_brief(one.get("input")),
                    detail=one["msg"].removeprefix("Value error, "),
                )
                for one in error.errors(include_url=False)[:MOST_ERRORS]
            )
            return Problem("invalid", what_is_wrong(error), errors=fields)
        case NoSession():
            return Problem("not-found", str(error))
        case Refused() | NoSuchStep() | CompressionFailed() | CompressionPending():
            return Problem("refused", str(error))
        case (
            Stuck() | Unexplained() | BlobsUnreachable() | NoWorker() | HistoryUnreadable() | Unreachable() | BlobGone()
        ):
            return Problem("unavailable", str(error))
        case TimeoutError() | WorkflowUpdateRPCTimeoutOrCancelledError():
            sentence = (
                "nobody knows whether it was done; check that a worker is running, and ask again "
                "(with the same Idempotency-Key a message is taken once)"
            )
            return Problem("no-answer", sentence)
        case RPCError():
            return Problem("unavailable", f"the Temporal server answered: {error.message} ({error.status.name})")
        case _:
            return _unforeseen(error)


def _unforeseen(error: Exception) -> Problem:
    log.error("a request failed", exc_info=error)
    if isinstance(error, WorkflowUpdateFailedError):
        return Problem("failed", f"the session failed: {error.cause}")
    if isinstance(error, Untrusted):
        return Problem("failed", "the agents' files have changed since they were trusted; the server's log says more")
    if isinstance(error, BadAgent | BadSettingsFile):
        return Problem("failed", "the agent's file can't be used; the server's log says what to change in it")
    return Problem("failed", "the server's log says more")


def _brief(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else to_json(value).decode()
    except ValueError:
        text = type(value).__name__
    return harmless(text)[:LONGEST_VALUE_CHARS]
