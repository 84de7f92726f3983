"""Decides about a failed model call: reads any exception that a call can end in against the table of verdicts.

Rows are looked up along the class's ancestors: a subclass that an SDK adds later gets its parent's verdict.
"""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from longhaul.activities.models.failures.error_bodies import (
    ServerWords,
    for_a_person,
    read_retry_after,
    said_in,
    within_limits,
)
from longhaul.activities.models.failures.error_meanings import (
    OF_CONTENT,
    RefusedContent,
    is_filtered,
    is_filtered_image,
    is_spent,
    read_refusal,
    says_too_long,
)
from longhaul.activities.models.failures.status_table import (
    BAD_ADDRESS,
    BY_CATEGORY,
    BY_CLASS,
    BY_CODE,
    BY_STATUS,
    FILTERED,
    LOCKED_OUT,
    NO_ACCOUNT,
    NO_MODEL,
    OUT_OF_CREDIT,
    REFUSED,
    REPAIRABLE,
    RETRY_UPSTREAM,
    SERVER_ERRORS,
    STATUS_OF_TYPE,
    TOO_LONG,
    TOO_MANY_TOOLS,
    UNREACHABLE,
    FailureRow,
    HeldBack,
    IncompleteStreamError,
    Kind,
    NoReplyError,
    ProviderError,
    ScriptError,
    SetupError,
    ToldError,
)


@dataclass(frozen=True, slots=True)
class FailureAction:
    kind: Kind
    """`few_tries`: as `retry`, and never waited for as for an outage. `fall_back`: another model may take the call;
    without one it is a `never`. `repair`: it may take the call without part of the conversation."""
    delay_seconds: float | None
    """Only with `retry_after`: 0 to 3600."""
    error_type: str
    """One of `agent.values.conversation.messages.ErrorInfo`'s types."""
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
    param: str = ""
    """The field that it names."""


def judge(error: Exception) -> FailureAction:
    """Say what to do about `error`, whatever it is; what we do not know is `never` and `internal`."""
    match error:
        case SetupError():
            return FailureAction("never", None, "setup", str(error))
        case ScriptError():
            return FailureAction("never", None, "invalid_request", str(error))
        case HeldBack():
            return FailureAction("retry_after", within_limits(error.seconds), "rate_limit", str(error))
        case IncompleteStreamError():
            return FailureAction("retry", None, "connection", str(error))
        case NoReplyError(media_type=media_type, words=words):
            what = f"The model's provider answered with no reply of a model but with {media_type or 'something else'}"
            said = for_a_person(said_in(None, words).message)
            return FailureAction("few_tries", None, "upstream", f"{what}{': ' + said if said else '.'}")
        case _:
            return _judge_foreign(error)


def _judge_foreign(error: Exception) -> FailureAction:
    answer = _read_answer(error)
    if answer is not None:
        action = _judge_answer(answer, refusal_in(error)[0])
        if isinstance(error, ToldError) and not error.in_stream and _is_of_no_kind(answer, action):
            return replace(action, kind="few_tries")
        return action
    row = _find_row(error)
    if row is UNREACHABLE:
        return _judge_connection(error)
    if row is None:
        return FailureAction("never", None, "internal", f"The model call failed unexpectedly ({type(error).__name__}).")
    return FailureAction(row.kind, None, row.error_type, row.sentence)


def _judge_connection(error: Exception) -> FailureAction:
    """Why a provider could not be reached: a wrong name, port or certificate is no outage, and nobody waits for it."""
    causes = list(_causes_of(error))
    url = next((url for cause in causes if (url := getattr(getattr(cause, "request", None), "url", None))), None)
    port = getattr(url, "port", None)
    where = f"{url.host}{f':{port}' if port else ''}" if url is not None else "the model's provider"
    for cause in causes:
        match cause:
            case socket.gaierror(errno=socket.EAI_NONAME | socket.EAI_NODATA):
                return FailureAction("few_tries", None, "connection", f"No server is named {where}; check base_url.")
            case ssl.SSLCertVerificationError(verify_message=why):
                sentence = f"The certificate of {where} is not accepted: {for_a_person(str(why))}."
                return FailureAction("fall_back", None, "setup", sentence)
            case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
                sentence = f"{where} does not speak TLS; write http:// into base_url, or another port."
                return FailureAction("fall_back", None, "setup", sentence)
            case ConnectionRefusedError():
                return FailureAction("retry", None, "connection", f"No server accepts connections at {where}.")
            case _ if "httpx.ProxyError" in class_names(type(cause)):
                return _judge_proxy(for_a_person(str(cause)))
    return FailureAction("retry", None, "connection", f"The connection to {where} failed.")


def _judge_proxy(words: str) -> FailureAction:
    told = f"The proxy of the worker did not connect it to the model's provider: {words or 'it gave no reason'}."
    if words.startswith("407"):
        return FailureAction("fall_back", None, "setup", f"{told} Write user and password into the proxy's address.")
    return FailureAction("retry", None, "connection", told)


def _causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error, and those behind it."""
    seen = list[BaseException]()
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        seen.append(cause)
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_of_no_kind(answer: _Answer, action: FailureAction) -> bool:
    """Whether nothing in the provider's words says that it is busy or broken: it is only taken to be."""
    known = {*STATUS_OF_TYPE, *BY_CODE}
    told = any(code in known or re.fullmatch(r"[45]\d\d", code) for code in answer.codes)
    return action.kind == "retry" and not told


def is_turned_away(error: BaseException) -> bool:
    """Whether the provider has certainly not started to answer: it was never reached, or has refused with a status of
    its own. Such a call is not billed. Of one that ran out of time on the way, or failed in the midst, nobody knows."""
    for cause in _causes_of(error):
        names = class_names(type(cause))
        if isinstance(cause, SetupError | ScriptError | HeldBack) or not _NEVER_REACHED.isdisjoint(names):
            return True
    if isinstance(error, ProviderError):
        status: object = error.status
    else:
        status = getattr(error, "status_code", None) or getattr(getattr(error, "response", None), "status_code", None)
    had_started = status in _OUT_OF_TIME or getattr(error, "in_stream", False)
    return isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST and not had_started


_TOO_MANY_TOOLS = re.compile(
    r"'tools': array too long"  # OpenAI
    r"|(?:too many|maximum number of) (?:tools|functions?)\b"
    r"|(?:maximum of|at most|more than|up to) \d+ (?:tools|functions|function declarations)\b",
    re.IGNORECASE,
)
_OF_ACCOUNTS = frozenset({400, 403, 404})
_NOT_VERIFIED = re.compile(r"organi[sz]ation must be verified to (?:stream|use)", re.IGNORECASE)
_NO_SUCH_MODEL = re.compile(
    r"invalid model name passed in model=|no such model|model .{1,100} does not exist", re.IGNORECASE
)
_OUT_OF_TIME = frozenset({408, 499, 504, 522, 524})
_NEVER_REACHED = {"httpx.ConnectError", "httpx.ConnectTimeout", "httpx.PoolTimeout", "socket.gaierror"}
_NEVER_REACHED |= {"botocore.EndpointConnectionError", "botocore.ConnectTimeoutError"}


def _find_row(error: BaseException) -> FailureRow | None:
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


def refusal_in(error: Exception) -> tuple[RefusedContent | None, str]:
    """Which content the provider refuses, if that is what it says, and its words for a person."""
    answer = _read_answer(error)
    if answer is None or (row := _row_of(answer)) is TOO_LONG or row is OUT_OF_CREDIT:
        return None, ""
    if row is FILTERED and not is_filtered_image(answer.status, answer.codes, answer.message):
        return None, ""
    codes = (code for code in answer.codes if any(kind in code for kind in OF_CONTENT))
    # The body of the request, as long as the client has it.
    request = getattr(error, "request", None) or getattr(error.__cause__, "request", None)
    content = getattr(request, "content", b"")
    sent = content if isinstance(content, bytes) else b""
    refusal = read_refusal(answer.status, " ".join((answer.param, *codes, answer.message)), sent)
    if refusal is None and row is FILTERED:
        refusal = RefusedContent("attachments")
    return refusal, _sentence(REPAIRABLE, answer)


def said_of_request(error: Exception) -> ServerWords | None:
    """What a provider says of a request that it refuses for its form; None where it refuses the conversation, the
    account or the model, or has failed itself."""
    answer = _read_answer(error)
    if answer is None or _row_of(answer) is not REFUSED:
        return None
    return ServerWords(answer.codes, answer.message, answer.param, status=answer.status)


def _judge_answer(answer: _Answer, refusal: RefusedContent | None) -> FailureAction:
    row = _row_of(answer) if refusal is None else REPAIRABLE
    in_headers = read_retry_after(answer.headers, datetime.now(UTC), limited=row.error_type == "rate_limit")
    told = [seconds for seconds in (in_headers, answer.retry_after_seconds) if seconds is not None]
    delay = max(told, default=None)
    sentence = _sentence(row, answer)
    if row.kind == "retry" and delay is not None:
        return FailureAction("retry_after", within_limits(delay), row.error_type, sentence)
    return FailureAction(row.kind, None, row.error_type, sentence)


def _row_of_words(answer: _Answer) -> FailureRow | None:
    """By what the provider says, where that says more than the status."""
    words = (answer.status, answer.codes, answer.message)
    by_code = [BY_CODE[code] for code in answer.codes if code in BY_CODE]
    of_account = answer.status in _OF_ACCOUNTS
    rows = (
        (TOO_LONG, says_too_long(*words)),
        (TOO_MANY_TOOLS, _TOO_MANY_TOOLS.search(answer.message)),
        *((row, True) for row in by_code[:1]),
        (OUT_OF_CREDIT, is_spent(*words)),
        (FILTERED, is_filtered(*words)),
        (NO_ACCOUNT, of_account and _NOT_VERIFIED.search(answer.message)),
        (NO_MODEL, of_account and _NO_SUCH_MODEL.search(answer.message)),
    )
    return next((row for row, fits in rows if fits), None)


def _row_of(answer: _Answer) -> FailureRow:
    if (said := _row_of_words(answer)) is not None:
        return said
    row = BY_STATUS.get(answer.status) or (RETRY_UPSTREAM if answer.status >= SERVER_ERRORS else REFUSED)
    # The header is the provider's own word on its answer, where the status alone is ambiguous (both SDKs obey it).
    match answer.headers.get("x-should-retry"):
        case "false" if row.kind == "retry":
            return FailureRow("fall_back", row.error_type, row.sentence)
        case "true" if row.kind == "never":
            return FailureRow("retry", row.error_type, row.sentence)
    return row


def _sentence(row: FailureRow, answer: _Answer) -> str:
    # A refused key is often quoted back in part, so the provider's words about keys are not passed on.
    words = "" if row is LOCKED_OUT else for_a_person(answer.message)
    return f"{row.sentence} (HTTP {answer.status}){': ' + words if words else '.'}"


def _read_answer(error: Exception) -> _Answer | None:
    if isinstance(error, ProviderError):
        return _Answer(error.status, (error.code,), error.message, {}, error.retry_after_seconds)
    if isinstance(error, ToldError):
        return _from_body(error.body, "", status=200, headers={})
    names = class_names(type(error))
    category = next((name for name in names if name in BY_CATEGORY or name in BY_CLASS), "")
    if category in BY_CATEGORY:
        return _from_library(error, category)
    if "anthropic.APIStatusError" in names or "openai.APIStatusError" in names or "httpx.HTTPStatusError" in names:
        return _from_response(error)
    if names[0] in ("anthropic.APIError", "openai.APIError"):
        return _from_body(getattr(error, "body", None), str(error), status=200, headers={})
    return None


def _from_response(error: Any) -> _Answer:
    headers = {str(name).lower(): str(value) for name, value in error.response.headers.items()}
    return _from_body(getattr(error, "body", None), str(error), status=error.response.status_code, headers=headers)


def _from_library(error: Any, category: str) -> _Answer:
    """Of pydantic-ai, which has read each vendor's own errors into classes of its own."""
    status, code = BY_CATEGORY[category]
    headers = {str(name).lower(): str(value) for name, value in (getattr(error, "headers", None) or {}).items()}
    answer = _from_body(error.body, str(error), status=getattr(error, "status_code", status), headers=headers)
    told = [seconds for seconds in (answer.retry_after_seconds, error.retry_after) if seconds is not None]
    return replace(
        answer, codes=(code, *answer.codes) if code else answer.codes, retry_after_seconds=max(told, default=None)
    )


def _from_body(body: object, text: str, *, status: int, headers: Mapping[str, str]) -> _Answer:
    said = said_in(body, text)
    if status < HTTPStatus.BAD_REQUEST:
        status = next(
            (STATUS_OF_TYPE[known] for known in said.codes if known in STATUS_OF_TYPE), _status_in(said.codes)
        )
    return _Answer(status, said.codes, said.message, headers, said.retry_after_seconds, said.param)


def _status_in(codes: tuple[str, ...]) -> int:
    """Compatible servers put the HTTP status into `code`; without one, a failure in mid-stream is the server's."""
    known = (int(code) for code in codes if re.fullmatch(r"[45]\d\d", code))
    return next(known, SERVER_ERRORS)
