"""What to do about a failed model call: reads any exception that a call can end in against the table of verdicts.

Rows are looked up along the class's ancestors: a subclass that an SDK adds later gets its parent's verdict.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from activities.models.failures import IncompleteStreamError, ProviderError, ScriptError, SetupError
from activities.models.overflow import says_too_long
from activities.models.privacy import for_a_person
from activities.models.retry_after import read_retry_after, within_limits
from activities.models.verdict_table import (
    BAD_ADDRESS,
    BY_CLASS,
    BY_CODE,
    BY_STATUS,
    LOCKED_OUT,
    OUT_OF_CREDIT,
    REFUSED,
    RETRY_UPSTREAM,
    SERVER_ERRORS,
    STATUS_OF_TYPE,
    TOO_LONG,
    UNREACHABLE,
    Kind,
    Row,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    kind: Kind
    """`fall_back`: another model may take the call; without one it is a `never`."""
    delay_seconds: float | None
    """Only with `retry_after`: 0 to 3600."""
    error_type: str
    """One of `agent.messages.ErrorInfo`'s types."""
    sentence: str
    """For a person. Holds no key and no header."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the provider said, wherever the exception keeps it."""

    status: int
    codes: tuple[str, ...]
    message: str
    headers: Mapping[str, str]
    retry_after_seconds: float | None = None


def judge(error: Exception) -> Verdict:
    """Say what to do about `error`, whatever it is; what we do not know is `never` and `internal`."""
    match error:
        case SetupError():
            return Verdict("never", None, "setup", str(error))
        case ScriptError():
            return Verdict("never", None, "invalid_request", str(error))
        case IncompleteStreamError():
            return Verdict("retry", None, "connection", str(error))
        case _:
            return _judge_foreign(error)


def _judge_foreign(error: Exception) -> Verdict:
    answer = _read_answer(error)
    if answer is not None:
        return _judge_answer(answer)
    row = _find_row(error)
    if row is None:
        return Verdict("never", None, "internal", f"The model call failed unexpectedly ({type(error).__name__}).")
    return Verdict(row.kind, None, row.error_type, row.sentence)


def _find_row(error: BaseException) -> Row | None:
    row = next((BY_CLASS[name] for name in class_names(type(error)) if name in BY_CLASS), None)
    # The SDKs wrap whatever the HTTP client raised as a connection error; a bad address is not worth a retry.
    if row is UNREACHABLE and error.__cause__ is not None and _find_row(error.__cause__) is BAD_ADDRESS:
        return BAD_ADDRESS
    return row


def class_names(kind: type[BaseException]) -> list[str]:
    """`kind` and its ancestors, nearest first, as the rows name them."""
    packages = {"httpx2": "httpx", "httpcore": "httpx", "httpcore2": "httpx"}
    roots = [(ancestor.__module__.partition(".")[0], ancestor.__name__) for ancestor in kind.__mro__]
    return [f"{packages.get(root, root)}.{name}" for root, name in roots]


def _judge_answer(answer: _Answer) -> Verdict:
    row = _row_of(answer)
    delay = answer.retry_after_seconds
    if delay is None:
        delay = read_retry_after(answer.headers, datetime.now(UTC))
    sentence = _sentence(row, answer)
    if row.kind == "retry" and delay is not None:
        return Verdict("retry_after", within_limits(delay), row.error_type, sentence)
    return Verdict(row.kind, None, row.error_type, sentence)


def _row_of(answer: _Answer) -> Row:
    if says_too_long(answer.status, answer.codes, answer.message):
        return TOO_LONG
    for code in answer.codes:
        if code in BY_CODE:
            return BY_CODE[code]
    if answer.status == HTTPStatus.BAD_REQUEST and "credit balance is too low" in answer.message:
        return OUT_OF_CREDIT
    row = BY_STATUS.get(answer.status) or (RETRY_UPSTREAM if answer.status >= SERVER_ERRORS else REFUSED)
    # The header is the provider's own word on its answer, where the status alone is ambiguous (both SDKs obey it).
    match answer.headers.get("x-should-retry"):
        case "false" if row.kind == "retry":
            return Row("fall_back", row.error_type, row.sentence)
        case "true" if row.kind == "never":
            return Row("retry", row.error_type, row.sentence)
    return row


def _sentence(row: Row, answer: _Answer) -> str:
    # A refused key is often quoted back in part, so the provider's words about keys are not passed on.
    words = "" if row is LOCKED_OUT else for_a_person(answer.message)
    return f"{row.sentence} (HTTP {answer.status}){': ' + words if words else '.'}"


def _read_answer(error: Exception) -> _Answer | None:
    if isinstance(error, ProviderError):
        return _Answer(error.status, (error.code,), error.message, {}, error.retry_after_seconds)
    names = class_names(type(error))
    if "anthropic.APIStatusError" in names or "openai.APIStatusError" in names or "httpx.HTTPStatusError" in names:
        return _from_response(error)
    if names[0] in ("anthropic.APIError", "openai.APIError"):
        return _from_body(getattr(error, "body", None), str(error), status=200, headers={})
    return None


def _from_response(error: Any) -> _Answer:
    headers = {str(name).lower(): str(value) for name, value in error.response.headers.items()}
    return _from_body(getattr(error, "body", None), str(error), status=error.response.status_code, headers=headers)


def _from_body(body: object, text: str, *, status: int, headers: Mapping[str, str]) -> _Answer:
    inner = body.get("error", body) if isinstance(body, dict) else body
    fields: dict[str, Any] = (
        inner if isinstance(inner, dict) else {"message": inner if isinstance(inner, str) else text}
    )
    details = fields.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    codes = tuple(str(value) for value in (code, fields.get("code"), fields.get("type")) if value)
    if status < HTTPStatus.BAD_REQUEST:
        status = next((STATUS_OF_TYPE[known] for known in codes if known in STATUS_OF_TYPE), _status_in(codes))
    return _Answer(status, codes, str(fields.get("message") or fields.get("detail") or ""), headers)


def _status_in(codes: tuple[str, ...]) -> int:
    """Compatible servers put the HTTP status into `code`; without one, a failure in mid-stream is the server's."""
    known = (int(code) for code in codes if re.fullmatch(r"[45]\d\d", code))
    return next(known, SERVER_ERRORS)
