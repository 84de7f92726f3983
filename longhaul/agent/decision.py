"""Decides what comes next: one pure function from the record to the next step.

Rules of this file: it reads the record and the load, changes nothing, and asks nobody. The workflow does what it says,
writes down what came of it, and asks again. So every rule about the order of things is tested by calling a function.
"""

from itertools import islice

from longhaul.agent.decisions.background_commands import to_take_over
from longhaul.agent.decisions.budget_limits import within_budget
from longhaul.agent.decisions.call_verdicts import (
    ahead_of,
    are_fused,
    foreseen,
    has_aged,
    is_unsettled,
    judged,
    must_examine,
    must_judge_again,
    unjudged,
)
from longhaul.agent.decisions.compaction import must_compress, next_cut, too_big_without_context
from longhaul.agent.decisions.deadline_steps import should_notify
from longhaul.agent.decisions.model_turn import (
    in_grace,
    is_stopped,
    memorised,
    must_ask_hooks,
    must_close,
    must_list_anew,
    next_model,
    parting_words,
    too_often,
    was_closed,
    why_overdue,
    without_a_model,
)
from longhaul.agent.decisions.rollover import (
    Load,
    close,
    history_is_long,
    idle_for_long,
    roll_over,
    should_save,
    to_tell_hub,
)
from longhaul.agent.decisions.session_tools.all_session_tools import answer
from longhaul.agent.decisions.session_tools.waiting_tools import woken
from longhaul.agent.decisions.structured_output import ended as ended_in_form
from longhaul.agent.decisions.structured_output import must_call
from longhaul.agent.decisions.subagent_start import (
    closes_with_answer,
    ends_with_report,
    owes_report,
    put_aside_first,
    to_tell,
    to_tell_asker,
)
from longhaul.agent.fold.agent_state import OpenCall, ReplyContext
from longhaul.agent.fold.all_changes import CALLS_AT_ONCE, next_batch
from longhaul.agent.fold.reminder_state import is_watched, to_be_told
from longhaul.agent.fold.synthetic_results import left_open
from longhaul.agent.letters.request_operations import to_join, unless_paused
from longhaul.agent.letters.result_operations import blocking, to_probe
from longhaul.agent.record import Record
from longhaul.agent.steps import (
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
    Report,
    Restore,
    Step,
    TakeIn,
    TellAsker,
    Think,
    Verify,
)
from longhaul.agent.values.conversation.messages import FinishedReason, ToolCallState, ToolResultBlock
from longhaul.agent.values.stuck_detection import stuck, why

BEHAVIOUR = 1
"""The newest version of these rules. A rule that changes what a live session does takes a new number, asks for the
session's own (`AgentState.behaviour`) and keeps its old branch until no live session uses it (CONTRIBUTING.md)."""


def decide(record: Record, load: Load) -> Step:
    """The next step. Never `RollOver` while calls run, nor twice in a row on a fresh history."""
    step = unless_paused(memorised(_next(record, load), record), record, load)
    return put_aside_first(within_budget(step, record, load), record, load)


def _next(record: Record, load: Load) -> Step:  # noqa: C901, PLR0911, PLR0912  one line per question, in their order
    if not record.life.restored:
        return Park("person") if record.life.hold else Restore()
    if owes_report(record):
        return Report()
    if asker := to_tell_asker(record):
        return TellAsker(asker.request_id)
    if telling := to_tell(record, load) or to_tell_hub(record) or to_take_over(record, load):
        return telling
    if load.running:
        return Checkpoint() if _must_tell(record, load) else _while_running(record, load)
    if history_is_long(record, load) and not load.brought:
        return Park("checkpoint") if load.checkpointing else roll_over(record, load)
    if record.life.hold:
        return Park("person")
    if (doubt := to_probe(record)) and not record.interrupted:
        return Probe(doubt.call_id)  # whoever interrupts does not wait for it: it is made when the reply has ended
    if _must_tell(record, load):
        return Checkpoint()
    reply = record.reply
    if reply is None:
        return _between_replies(record, load)
    if not reply.prepared:
        return Prepare(reply.reply_id)
    if is_stopped(record, reply):
        return HandleInterrupt() if must_ask_hooks(record) else _stopped(record, reply)
    if reply.calls:
        return _next_of_calls(record, reply, load)
    if blocking(record):
        return Checkpoint() if should_save(record, load) else Park("person")
    if joining := to_join(record, reply):
        return Join(joining)
    return Prepare(reply.reply_id) if must_list_anew(record, reply) else _next_of_reply(record, reply)


def _must_tell(record: Record, load: Load) -> bool:
    """People hear of what waits for them by a checkpoint, which runs beside whatever else is to be done."""
    return not load.checkpointing and should_notify(record)


def _stopped(record: Record, reply: ReplyContext) -> Finish | TakeIn:
    for call in reply.calls.values():
        if call.received is not None and call.state is not ToolCallState.FINISHED:
            return TakeIn(call.block.id)  # it has run, and the model has to know what came of it
    closing, said = _closing(record, reply), parting_words(record)
    reason = FinishedReason.INTERRUPTED if record.interrupted else FinishedReason.REJECTED
    return Finish(reply.reply_id, reason, why_overdue(record), closing=closing, said=said)


def _while_running(record: Record, load: Load) -> Step:
    """Siblings of running calls may start; everything else waits for them."""
    reply = record.reply
    if reply is None or is_stopped(record, reply):
        return Park("running calls")
    return _next_of_calls(record, reply, load)


def _next_of_calls(record: Record, reply: ReplyContext, load: Load) -> Step:
    if record.offers.waiting:
        return Verify(next(iter(record.offers.waiting)))
    batch = next_batch(reply, record.provided.tools, parallel=record.spec.react_config.parallel_tool_calls)
    ready = _may_start(batch, record, load)
    undecided = unjudged(batch)
    # Of one that was allowed and did not start at once, as at a roll-over: rules may have come, gone or expired, and
    # what it would touch may have changed.
    undecided += [
        call for call in ready if call.facts_stale or has_aged(call, load.at) or must_judge_again(call, record, load.at)
    ]
    ahead = [call for call in ahead_of(batch, record) if is_unsettled(call, record, load.at)]
    if stale := [call.block.id for call in (*undecided, *ahead) if must_examine(call, record, load.at)]:
        return Examine(tuple(stale))
    if undecided or ahead:
        now = [judged(call, record, load.at) for call in undecided]
        return Judge((*now, *(foreseen(call, record, load.at) for call in ahead)))
    if ready:
        return _started(ready, record, load)
    if answered := _answered_meanwhile(batch, record):
        return answered
    if load.running:
        return Park("running calls")
    if should_save(record, load):
        return Checkpoint()
    asking = any(call.state is ToolCallState.ASKING for call in batch)
    return Park("person" if asking else "outside")


def _answered_meanwhile(batch: list[OpenCall], record: Record) -> Step | None:
    """What is to be done of calls that have waited: somebody has handed in a result, or their sleep is over."""
    for call in batch:
        if (awake := woken(call, record)) is not None:
            return Answer(awake)
        if call.received is not None:
            return TakeIn(call.block.id)
    return None


def _may_start(batch: list[OpenCall], record: Record, load: Load) -> list[OpenCall]:
    """Those that are allowed and for which there is room; the others wait for one that runs to end. None on a history
    that is long: when all that run have ended, the session goes on in a fresh one, and they start there."""
    if load.running and history_is_long(record, load):
        return []
    waiting = (call for call in batch if call.state is ToolCallState.ALLOWED and call.block.id not in load.running)
    return list(islice(waiting, max(CALLS_AT_ONCE - len(load.running), 0)))


def _started(ready: list[OpenCall], record: Record, load: Load) -> Step:
    inside = [call for call in ready if record.provided.tools[call.block.name].inside]
    if inside:
        return Answer(answer(inside[0], record))
    return Act(tuple(call.block.id for call in ready), fused=are_fused(ready, record, load))


def _closing(record: Record, reply: ReplyContext) -> tuple[ToolResultBlock, ...]:
    """A result for each call that has none: a transcript with an open call is refused by every provider."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return tuple(left_open(call, record.children) for call in unfinished)


def _between_replies(record: Record, load: Load) -> Step:
    if ends_with_report(record) or closes_with_answer(record):
        return close(record, load)
    # A request that waits is no reason: what it comes to is written down in a moment. A mark of closing is.
    if (
        should_save(record, load)
        and record.requests.finished
        and (not record.requests.queue or record.keeping.closing or record.keeping.mirrored < record.requests.ended)
    ):
        return Checkpoint()
    if record.compaction.asked is not None and (shorter := _shorter(record)):
        return shorter
    if record.requests.queue:
        return Prepare(record.requests.queue[0].reply_id)
    if idle_for_long(record):
        return close(record, load)
    return Idle()


def _shorter(record: Record) -> Compress | None:
    return None if (cut := next_cut(record)) is None else Compress(cut)


def _next_of_reply(record: Record, reply: ReplyContext) -> Step:
    if finished := ended_in_form(record, reply):
        return finished
    if reply.answered:
        reason = FinishedReason.EXCEED_MAX_ITERS if was_closed(record, reply) else FinishedReason.COMPLETED
        return _stuck(record, reply) or Finish(reply.reply_id, reason)
    if stopped := _stuck(record, reply) or too_often(record, reply):
        return stopped
    closing = must_close(record, reply)
    if closing and reply.failed_models:
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    if shorter := _shorter(record):
        return shorter
    if must_compress(record):
        return Finish(reply.reply_id, FinishedReason.ERROR, reply.model_error)
    if too_big := too_big_without_context(record):
        return Finish(reply.reply_id, FinishedReason.ERROR, too_big)
    return _next_to_hear(record, reply, closing=closing)


def _stuck(record: Record, reply: ReplyContext) -> Finish | None:
    seen = stuck(record.state.watch, record.spec.stuck) if is_watched(record) else None
    return Finish(reply.reply_id, FinishedReason.STUCK, why(seen)) if seen else None


def _next_to_hear(record: Record, reply: ReplyContext, *, closing: bool) -> Step:
    if told := to_be_told(record, closing=closing, must_finish=in_grace(record, reply)):
        return Remind(told)
    model = next_model(record, reply)
    if model is None:
        return without_a_model(reply)
    return Think(model, closing=closing, must_finish=must_call(record, reply))
