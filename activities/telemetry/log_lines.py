"""Log lines as JSON: what happened, where and for whom, and never what people, models and tools have said.

A line's words are those of the code. What was filled into them is told when it is a name or a number; sentences, and
the words of exceptions, are not, for they may quote anything.

A line of the log for each attempt of an activity and for each reply that has ended, with the names of both.
"""

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from pythonjsonlogger.core import LogData
from pythonjsonlogger.json import JsonFormatter
from temporalio import activity, workflow
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.telemetry import attempts
from longhaul.activities.telemetry.attempts import call_id_in, class_of, header_in, read_along
from longhaul.activities.worker_output import MasksItself
from longhaul.agent.entries import AnyEntry, ContextCompressed, ModelSaid, ReplyFinished, ToolReturned
from longhaul.agent.plain.ids import names_in, place_of_reply
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import Usage

MOST_MESSAGE_CHARS = 300
MOST_FRAMES = 20
NOT_TOLD = "…"
_NAME = re.compile(r"[\w./:@%+~#=-]{1,200}", re.ASCII)
_FIELDS = ("asctime", "levelname", "name", "message")
_RENAMED = {"asctime": "time", "levelname": "level", "name": "logger"}
_OURS = "longhaul"
"""Name of the field in which our own lines bring what they are about."""

_ABOUT: ContextVar[Mapping[str, Any]] = ContextVar("longhaul_log_about", default={})  # noqa: B039  never changed in place


@contextmanager
def about(fields: Mapping[str, Any]) -> Iterator[None]:
    """Lines that are written within have these fields, also those of tools and libraries."""
    token = _ABOUT.set(fields)
    try:
        yield
    finally:
        _ABOUT.reset(token)


def fields(**known: Any) -> dict[str, Any]:
    """What a line of ours says beside its words, for `extra`; what is None or empty is left out."""
    return {_OURS: {key: value for key, value in known.items() if value not in {None, ""}}}


class JsonLines(JsonFormatter, MasksItself):
    def __init__(self) -> None:
        super().__init__(_FIELDS, rename_fields=_RENAMED, json_ensure_ascii=False)

    def format(self, record: logging.LogRecord) -> str:
        # A copy of our own: other handlers of this record show it as they please.
        # The first line of what was said, with the names and numbers that were filled in.
        words = str(record.msg)
        if record.args:
            with suppress(TypeError, ValueError, KeyError):  # a line that was badly made is better than none
                words %= _harmless_args(record.args)
        shown = logging.makeLogRecord(
            {**record.__dict__, "msg": words.partition("\n")[0][:MOST_MESSAGE_CHARS], "args": None}
        )
        shown.exc_info = shown.exc_text = shown.stack_info = None
        for name in [*vars(shown)]:
            if name not in _PLAIN:
                delattr(shown, name)
        found = {**_of_session(record), **_ABOUT.get(), **_own(record), **_error(record)}
        masked = {key: self.masker.masked(value) if isinstance(value, str) else value for key, value in found.items()}
        shown.__dict__.update(masked)
        shown.msg = self.masker.masked(str(shown.msg))
        return super().format(shown)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  the library's name
        """RFC 3339 in UTC, to the millisecond."""
        del datefmt
        return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")

    def process_log_record(self, log_data: LogData) -> LogData:
        """The library leaves out nothing that is empty."""
        return {key: value for key, value in log_data.items() if value is not None}


_PLAIN = frozenset(logging.makeLogRecord({}).__dict__)


def without_details_in_words() -> None:
    """The SDK's own lines repeat in their words what stands in fields here."""
    activity.logger.activity_info_on_message = False
    workflow.logger.workflow_info_on_message = False


def _harmless_args(args: Any) -> Any:
    if isinstance(args, Mapping):
        return {key: _harmless(value) for key, value in args.items()}
    return tuple(_harmless(value) for value in (args if isinstance(args, tuple) else (args,)))


def _harmless(value: object) -> object:
    match value:
        case bool() | int() | float() | None:
            return value
        case BaseException():
            return type(value).__name__
        case _ if _NAME.fullmatch(text := str(value)):
            return text
        case _:
            return NOT_TOLD


def _own(record: logging.LogRecord) -> Mapping[str, Any]:
    found = getattr(record, _OURS, None)
    return found if isinstance(found, Mapping) else {}


def _of_session(record: logging.LogRecord) -> dict[str, Any]:
    """What the SDK knows of a line from workflow or activity code, and of its own."""
    if (own := getattr(record, "temporal_log", None)) is not None:
        return {"run_id": run_id} if (run_id := own.fields.get("run_id")) else {}
    known = getattr(record, "temporal_workflow", None) or getattr(record, "temporal_activity", None)
    workflow_id = known.get("workflow_id") if isinstance(known, Mapping) else None
    return session_fields(workflow_id) if isinstance(workflow_id, str) else {}


def session_fields(workflow_id: str) -> dict[str, Any]:
    names = names_in(workflow_id)
    found = {"session": names.session, "agent": names.agent, "user": names.user, "workflow_id": workflow_id}
    return {key: value for key, value in found.items() if value}


def _error(record: logging.LogRecord) -> dict[str, Any]:
    """Kind and place of an exception, without its words."""
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return {}
    frames = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error_type": type(error).__name__, "error_at": places}


log = logging.getLogger(__name__)


class LoggedActivities(Interceptor):
    """`traced`: whether this worker sends traces, so that a reply's own trace can be found somewhere."""

    def __init__(self, *, traced: bool) -> None:
        self._traced = traced

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Logged(next, traced=self._traced)


class _Logged(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, *, traced: bool) -> None:  # noqa: A002  the SDK's name
        super().__init__(next)
        self._traced = traced

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        heard = _Ended()
        attempts.listen(heard)
        began = time.perf_counter()
        with about(_about(input, traced=self._traced)):
            try:
                result = await super().execute_activity(input)
            except (Exception, asyncio.CancelledError) as error:
                seconds = round(time.perf_counter() - began, 3)
                log.warning("attempt failed", extra=fields(seconds=seconds, error_type=class_of(error)))
                raise
            log.info("attempt ended", extra=fields(seconds=round(time.perf_counter() - began, 3), **_of(result)))
            for call, read in read_along(result):
                log.info("attempt ended", extra=fields(activity=call.name, call=call.id, **_of(read)))
            for reply in heard.replies:
                log.info("reply ended", extra=reply)
        return result


class _Ended:
    def __init__(self) -> None:
        self.replies: list[dict[str, Any]] = []

    def written(self, entries: Sequence[AnyEntry], session: SessionState) -> None:
        self.replies = [_reply(entry, session) for entry in entries if isinstance(entry, ReplyFinished)]


def _reply(entry: ReplyFinished, session: SessionState) -> dict[str, Any]:
    ended = session.requests.finished.get(entry.reply_id)
    usage = ended.usage if ended else Usage()
    return fields(
        reply=entry.reply_id,
        finish_reason=entry.reason.value,
        error_type=entry.error.type if entry.error else None,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _about(input: ExecuteActivityInput, *, traced: bool) -> dict[str, Any]:  # noqa: A002  the SDK's name
    info, header = activity.info(), header_in(input.headers)
    # There is none where nobody sends it anywhere.
    trace = place_of_reply(header.reply, header.parent).trace if header.reply and (traced or header.parent) else ""
    known = {
        **session_fields(info.workflow_id or ""),
        "run_id": info.workflow_run_id,
        "activity": info.activity_type,
        "attempt": info.attempt,
        "reply": header.reply,
        "call": call_id_in(input),
        "trace_id": trace,
    }
    return {key: value for key, value in known.items() if value}


def _of(result: Any) -> dict[str, Any]:
    match result:
        case ModelSaid():
            usage = result.message.usage or Usage()
            tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            return {"model": result.model, "stop_reason": result.stop_reason, **tokens}
        case ToolReturned():
            return {"state": result.result.state.value}
        case ContextCompressed():
            return {"model": result.model, "condenser": result.condenser}
        case _:
            return {}
