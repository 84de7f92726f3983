"""A line of the log for each attempt of an activity and for each reply that has ended, with the names of both."""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from longhaul.activities.attempt import measures
from longhaul.activities.telemetry.attempt_names import call_id_in, header_in, read_along
from longhaul.activities.telemetry.failure_class import class_of
from longhaul.activities.telemetry.log_lines import about, fields, session_fields
from longhaul.agent.entries import AnyEntry, ContextCompressed, ModelSaid, ReplyFinished, ToolReturned
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.plain.ids import TraceHeader, place_of_reply
from longhaul.agent.values.conversation.messages import Usage

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
        measures.listen(heard)
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

    def written(self, entries: Sequence[AnyEntry], ledger: Ledger) -> None:
        self.replies = [_reply(entry, ledger) for entry in entries if isinstance(entry, ReplyFinished)]


def _reply(entry: ReplyFinished, ledger: Ledger) -> dict[str, Any]:
    ended = ledger.requests.finished.get(entry.reply_id)
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
    known = {
        **session_fields(info.workflow_id or ""),
        "run_id": info.workflow_run_id,
        "activity": info.activity_type,
        "attempt": info.attempt,
        "reply": header.reply,
        "call": call_id_in(input),
        "trace_id": _trace(header, traced=traced),
    }
    return {key: value for key, value in known.items() if value}


def _trace(header: TraceHeader, *, traced: bool) -> str:
    """Empty where nobody sends that trace anywhere."""
    return place_of_reply(header.reply, header.parent).trace if header.reply and (traced or header.parent) else ""


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
