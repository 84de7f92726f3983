"""What comes next: one pure function from the record to the next step.

Rules of this file: it reads the record and the load, changes nothing, and asks nobody. The workflow does what
it says and writes down what came of it; then it is asked again. So every rule about the order of things can be
tested by calling a function.
"""

from agent.batches import next_batch
from agent.compaction import must_compress, next_cut, too_big_without_context
from agent.fold_stuck import is_watched
from agent.inside import answer
from agent.interrupting import must_ask_hooks, parting_words
from agent.judgement import judge, must_examine, must_judge_again
from agent.keeping import CARRY_LIMIT, Load, close, history_is_long, idle_for_long, roll_over, should_save
from agent.ledger import COMPRESSING, RESTORING, SUPERVISED
from agent.messages import ErrorInfo, FinishedReason, ToolCallState, ToolResultBlock
from agent.notifying import should_notify
from agent.pausing import unless_paused
from agent.record import Record
from agent.requests import to_join
from agent.results import cancelled_before_start, cancelled_outside
from agent.settling import blocking, to_probe
from agent.standing import to_be_told
from agent.state import OpenCall, ReplyContext
from agent.steps import (
    Act,
    Answer,
    Checkpoint,
    Compress,
    Examine,
    Finish,
    HandleInterrupt,
    Idle,
    Join,
    Judge,
    Park,
    Prepare,
    Probe,
    Remind,
    Restore,
    Step,
    TakeIn,
    Think,
    Verify,
)
from agent.stuck import stuck, why

BEHAVIOUR = 3
"""The newest version of these rules. A rule that changes what a live session does takes a new number, reads the
session's own (`AgentState.behaviour`) and keeps the old branch until no live session uses it."""


def decide(record: Record, load: Load) -> Step:
    """The next step. Never `RollOver` while calls run, nor twice in a row on a fresh history."""
    return unless_paused(_next(record, load), record, load)


def _next(record: Record, load: Load) -> Step:  # noqa: C901, PLR0911, PLR0912  one line per question, in their order
    if not record.restored:
        return Park("person") if record.hold else Restore()
    if load.running:
        return Checkpoint() if _must_tell(record, load) else _while_running(record, load)
    if history_is_long(record, load):
        return Park("checkpoint") if load.checkpointing else roll_over(record, load)
    if record.hold:
        return Park("person")
    if (doubt := to_probe(record)) and not _is_interrupted(record):
        return Probe(doubt.call_id)
    if _must_tell(record, load):
        return Checkpoint()
    reply = record.reply
    if reply is None:
        return _between_replies(record, load)
    if not reply.prepared:
        return Prepare(reply.reply_id)
    if _is_stopped(record, reply):
        return HandleInterrupt() if must_ask_hooks(record) else _stopped(record, reply)
    if reply.calls:
        return _next_of_calls(record, reply, load)
    if blocking(record):
        return Checkpoint() if should_save(record, load) else Park("person")
    if joining := to_join(record, reply):
        return Join(joining)
    return _next_of_reply(record, reply)


def _is_interrupted(record: Record) -> bool:
    """Whoever interrupts does not wait for a look: it is made when the reply has ended."""
    return record.reply is not None and record.reply.interrupted


def _must_tell(record: Record, load: Load) -> bool:
    """People hear of what waits for them by a checkpoint, which runs beside whatever else is to be done."""
    return not load.checkpointing and should_notify(record)


def must_refuse_more(record: Record) -> bool:
    """Whether the session is too full to take another message: it could not be carried over any more."""
    return record.format < RESTORING and record.weight > CARRY_LIMIT


def _is_stopped(record: Record, reply: ReplyContext) -> bool:
    return reply.interrupted or (reply.rejected and record.spec.react_config.stop_on_reject)


def _stopped(record: Record, reply: ReplyContext) -> Finish:
    closing, said = _closing(reply), parting_words(record)
    return Finish(reply.reply_id, FinishedReason.INTERRUPTED, closing=closing, said=said)


def _while_running(record: Record, load: Load) -> Step:
    """Siblings of running calls may start; everything else waits for them."""
    reply = record.reply
    if reply is None or _is_stopped(record, reply):
        return Park("running calls")
    return _next_of_calls(record, reply, load)


def _next_of_calls(record: Record, reply: ReplyContext, load: Load) -> Step:
    if record.offers:
        return Verify(next(iter(record.offers)))
    batch = next_batch(reply, record.tools, parallel=record.spec.react_config.parallel_tool_calls)
    undecided = [call for call in batch if _is_undecided(call, record, load)]
    if stale := [call.block.id for call in undecided if must_examine(call, record)]:
        return Examine(tuple(stale))
    if undecided:
        return Judge(tuple(judge(call, record, load.at) for call in undecided))
    ready = [call for call in batch if call.state is ToolCallState.ALLOWED and call.block.id not in load.running]
    if ready:
        return _started(ready, record)
    if received := [call for call in batch if call.received is not None]:
        return TakeIn(received[0].block.id)
    if load.running:
        return Park("running calls")
    if should_save(record, load):
        return Checkpoint()
    asking = any(call.state is ToolCallState.ASKING for call in batch)
    return Park("person" if asking else "outside")


def _started(ready: list[OpenCall], record: Record) -> Step:
    inside = [call for call in ready if record.tools[call.block.name].inside]
    if inside and record.state.behaviour >= SUPERVISED:
        return Answer(answer(inside[0], record))
    return Act(tuple(call.block.id for call in ready))


def _is_undecided(call: OpenCall, record: Record, load: Load) -> bool:
    """Also when it was allowed and did not start at once, as at a roll-over: rules may have come, gone or expired."""
    if call.state is ToolCallState.PENDING:
        return True
    waits = call.state is ToolCallState.ALLOWED and call.block.id not in load.running
    return waits and record.state.behaviour >= SUPERVISED and must_judge_again(call, record, load.at)


def _closing(reply: ReplyContext) -> tuple[ToolResultBlock, ...]:
    """A result for each call that has none: a transcript with an open call is refused by every provider."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return tuple(
        cancelled_outside(call.block, call.pieces)
        if call.state is ToolCallState.SUBMITTED
        else cancelled_before_start(call.block)
        for call in unfinished
    )


def _between_replies(record: Record, load: Load) -> Step:
    # A request that waits is no reason: what it comes to is written down in a moment. A mark of closing is.
    if should_save(record, load) and record.finished and (not record.queue or record.closing or _unsaved_end(record)):
        return Checkpoint()
    if record.compress_asked is not None and (shorter := _shorter(record)):
        return shorter
    if record.queue:
        return Prepare(record.queue[0].reply_id)
    if idle_for_long(record):
        return close(record, load)
    return Idle()


def _unsaved_end(record: Record) -> bool:
    return record.mirrored < record.ended


def _shorter(record: Record) -> Compress | None:
    cut = next_cut(record) if record.state.behaviour >= COMPRESSING else None
    return Compress(cut) if cut is not None else None


def _next_of_reply(record: Record, reply: ReplyContext) -> Step:
    react = record.spec.react_config
    if reply.answered:
        over = reply.cur_iter > react.max_iters
        reason = FinishedReason.EXCEED_MAX_ITERS if over else FinishedReason.COMPLETED
        return _stuck(record, reply) or Finish(reply.reply_id, reason)
    if stopped := _stuck(record, reply):
        return stopped
    if must_refuse_more(record):
        return Finish(reply.reply_id, FinishedReason.ERROR, FULL)
    over = reply.cur_iter >= react.max_iters
    if over and (record.state.behaviour < COMPRESSING or reply.failed_models):
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    if shorter := _shorter(record):
        return shorter
    if must_compress(record):
        return Finish(reply.reply_id, FinishedReason.ERROR, reply.model_error)
    if record.state.behaviour >= COMPRESSING and (too_big := too_big_without_context(record)):
        return Finish(reply.reply_id, FinishedReason.ERROR, too_big)
    return _next_to_hear(record, reply, closing=over)


def _stuck(record: Record, reply: ReplyContext) -> Finish | None:
    seen = stuck(record.state.watch, record.spec.stuck) if is_watched(record) else None
    return Finish(reply.reply_id, FinishedReason.STUCK, why(seen)) if seen else None


def _next_to_hear(record: Record, reply: ReplyContext, *, closing: bool) -> Step:
    if record.state.behaviour >= SUPERVISED and (told := to_be_told(record)):
        return Remind(told)
    for model in (record.spec.model, record.spec.llm_config.fallback_model):
        if model is not None and model not in reply.failed_models:
            return Think(model, closing=closing)
    return Finish(reply.reply_id, FinishedReason.ERROR, reply.model_error)


FULL = ErrorInfo(
    type="invalid_request",
    message=f"The session is full: its messages have reached {CARRY_LIMIT // 1000} kB, and it can't be carried any "
    "further. Start a new session and tell it what it has to know.",
)
