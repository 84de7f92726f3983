"""What comes next: one pure function from the record to the next step.

Rules of this file: it reads the record and the load, changes nothing, and asks nobody. The workflow does what
it says and writes down what came of it; then it is asked again. So every rule about the order of things can be
tested by calling a function.
"""

from dataclasses import dataclass
from typing import Literal

from agent.batches import next_batch
from agent.entries import ModelFailed, Verdict
from agent.judgement import judge, must_examine
from agent.messages import ErrorInfo, FinishedReason, ToolCallState, ToolResultBlock
from agent.record import Record
from agent.results import cancelled_before_start, cancelled_outside
from agent.state import ReplyContext

BEHAVIOUR = 1
"""The newest version of these rules. A rule that changes what a live session does takes a new number, reads the
session's own (`AgentState.behaviour`) and keeps the old branch until no live session uses it."""

ROLL_OVER_EVENTS = 2_000
ROLL_OVER_BYTES = 4_000_000
CARRY_LIMIT = 1_750_000
"""Bytes of entries above which a session takes no more: it finishes what it can and says that it is full."""
ROLL_OVER_LIMIT = 2_000_000
"""Temporal terminates a workflow whose continue-as-new input is larger than 2 MiB; the rest is for refusals, which
have no weight (at most `ledger.KEPT_REFUSALS` of `bodies.MAX_REFUSAL_CHARS`). What came last may lie in between."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the record can't know: how long this run's history is, and which calls are running now."""

    events: int = 0
    bytes: int = 0
    roll_over_suggested: bool = False
    running: frozenset[str] = frozenset()
    """Call ids."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Start the first request of the queue: find tools and workspace."""

    reply_id: str


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model."""

    model: str


@dataclass(frozen=True, slots=True)
class Examine:
    """Look at these calls again before anybody decides on them."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Write these verdicts down."""

    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Start these calls; do not wait for them."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Park:
    """Wait until something is recorded."""

    waits_for: Literal["running calls", "person", "outside"]


@dataclass(frozen=True, slots=True)
class Finish:
    """End the reply."""

    reply_id: str
    reason: FinishedReason
    error: ErrorInfo | None = None
    closing: tuple[ToolResultBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do: wait for a request."""


@dataclass(frozen=True, slots=True)
class RollOver:
    """Go on in a new run with an empty history."""


Step = Prepare | Think | Examine | Judge | Act | Park | Finish | Idle | RollOver


def decide(record: Record, load: Load) -> Step:
    """The next step. Never `RollOver` while calls run, nor twice in a row on a fresh history."""
    if load.running:
        return _while_running(record, load)
    if _history_is_long(record, load):
        return RollOver()
    reply = record.reply
    if reply is None:
        return Prepare(record.queue[0].reply_id) if record.queue else Idle()
    if not reply.prepared:
        return Prepare(reply.reply_id)
    if _is_stopped(record, reply):
        return Finish(reply.reply_id, FinishedReason.INTERRUPTED, closing=_closing(reply))
    if reply.calls:
        return _next_of_calls(record, reply, load)
    return _next_of_reply(record, reply)


def must_refuse_more(record: Record) -> bool:
    """Whether the session is too full to take another message: it could not be carried over any more."""
    return record.weight > CARRY_LIMIT


def _history_is_long(record: Record, load: Load) -> bool:
    long = load.events > ROLL_OVER_EVENTS or load.bytes > ROLL_OVER_BYTES or load.roll_over_suggested
    return long and record.weight <= ROLL_OVER_LIMIT


def _is_stopped(record: Record, reply: ReplyContext) -> bool:
    return reply.interrupted or (reply.rejected and record.spec.react_config.stop_on_reject)


def _while_running(record: Record, load: Load) -> Step:
    """Siblings of running calls may start; everything else waits for them."""
    reply = record.reply
    if reply is None or _is_stopped(record, reply):
        return Park("running calls")
    return _next_of_calls(record, reply, load)


def _next_of_calls(record: Record, reply: ReplyContext, load: Load) -> Step:
    batch = next_batch(reply, record.tools, parallel=record.spec.react_config.parallel_tool_calls)
    undecided = [call for call in batch if call.state is ToolCallState.PENDING]
    if stale := [call.block.id for call in undecided if must_examine(call, record)]:
        return Examine(tuple(stale))
    if undecided:
        return Judge(tuple(judge(call, record) for call in undecided))
    ready = [call for call in batch if call.state is ToolCallState.ALLOWED and call.block.id not in load.running]
    if ready:
        return Act(tuple(call.block.id for call in ready))
    if load.running:
        return Park("running calls")
    asking = any(call.state is ToolCallState.ASKING for call in batch)
    return Park("person" if asking else "outside")


def _closing(reply: ReplyContext) -> tuple[ToolResultBlock, ...]:
    """A result for each call that has none: a transcript with an open call is refused by every provider."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return tuple(
        cancelled_outside(call.block) if call.state is ToolCallState.SUBMITTED else cancelled_before_start(call.block)
        for call in unfinished
    )


def _next_of_reply(record: Record, reply: ReplyContext) -> Step:
    react = record.spec.react_config
    if reply.answered:
        return Finish(reply.reply_id, FinishedReason.COMPLETED)
    if must_refuse_more(record):
        return Finish(reply.reply_id, FinishedReason.ERROR, FULL)
    if reply.cur_iter >= react.max_iters:
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    for model in (record.spec.model, record.spec.llm_config.fallback_model):
        if model is not None and model not in reply.failed_models:
            return Think(model)
    return Finish(reply.reply_id, FinishedReason.ERROR, _why_models_failed(record))


def _why_models_failed(record: Record) -> ErrorInfo:
    """A model is passed over only after its failure was recorded, so there is one in the log."""
    return next(entry.error for entry in reversed(record.log) if isinstance(entry, ModelFailed))


FULL = ErrorInfo(
    type="invalid_request",
    message=f"The session is full: its messages have reached {CARRY_LIMIT // 1000} kB, and it can't be carried any "
    "further. Start a new session and tell it what it has to know.",
)
