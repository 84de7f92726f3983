"""Decides what comes next: one pure function from the journal to the next step.

Rules of this file: it reads the journal and the load, changes nothing, and asks nobody. The workflow does what it says,
writes down what came of it, and asks again. So every rule about the order of things is tested by calling a function.
"""

from itertools import islice

from longhaul.agent.decisions.background_commands import to_take_over
from longhaul.agent.decisions.budget_limits import within_budget
from longhaul.agent.decisions.call_rulings import (
    ahead_of,
    are_fused,
    has_aged,
    is_unsettled,
    judged,
    must_examine,
    must_judge_again,
    ruling_ahead,
    unjudged,
)
from longhaul.agent.decisions.compaction import must_compress, next_cut, too_big_without_context
from longhaul.agent.decisions.continue_as_new import (
    Load,
    close,
    continue_as_new,
    history_is_long,
    idle_for_long,
    should_save,
    to_tell_hub,
)
from longhaul.agent.decisions.deadline_steps import should_notify
from longhaul.agent.decisions.model_turn import (
    in_grace,
    is_stopped,
    memorised,
    must_ask_hooks,
    must_close,
    must_list_again,
    next_model,
    parting_words,
    too_often,
    was_closed,
    why_overdue,
    without_a_model,
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
from longhaul.agent.journal import Journal
from longhaul.agent.operations.request_operations import to_join, unless_paused
from longhaul.agent.operations.result_operations import blocking, to_probe
from longhaul.agent.reducer.agent_state import OpenCall, ReplyContext
from longhaul.agent.reducer.all_changes import CALLS_AT_ONCE, next_batch
from longhaul.agent.reducer.reminder_state import is_watched, to_be_told
from longhaul.agent.reducer.synthetic_results import left_open
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


def decide(journal: Journal, load: Load) -> Step:
    """The next step. Never `ContinueAsNew` while calls run, nor twice in a row on a fresh history."""
    step = unless_paused(memorised(_next(journal, load), journal), journal, load)
    return put_aside_first(within_budget(step, journal, load), journal, load)


def _next(journal: Journal, load: Load) -> Step:  # noqa: C901, PLR0911, PLR0912  one line per question, in their order
    if not journal.incarnation.restored:
        return Park("person") if journal.incarnation.quarantine else Restore()
    if owes_report(journal):
        return Report()
    if asker := to_tell_asker(journal):
        return TellAsker(asker.request_id)
    if telling := to_tell(journal, load) or to_tell_hub(journal) or to_take_over(journal, load):
        return telling
    if load.running:
        return Checkpoint() if _must_tell(journal, load) else _while_running(journal, load)
    if history_is_long(journal, load) and not load.brought:
        return Park("checkpoint") if load.checkpointing else continue_as_new(journal, load)
    if journal.incarnation.quarantine:
        return Park("person")
    if (unknown_outcome := to_probe(journal)) and not journal.interrupted:
        return Probe(
            unknown_outcome.call_id
        )  # whoever interrupts does not wait for it: it is made when the reply has ended
    if _must_tell(journal, load):
        return Checkpoint()
    reply = journal.reply
    if reply is None:
        return _between_replies(journal, load)
    if not reply.prepared:
        return Prepare(reply.reply_id)
    if is_stopped(journal, reply):
        return HandleInterrupt() if must_ask_hooks(journal) else _stopped(journal, reply)
    if reply.calls:
        return _next_of_calls(journal, reply, load)
    if blocking(journal):
        return Checkpoint() if should_save(journal, load) else Park("person")
    if joining := to_join(journal, reply):
        return Join(joining)
    return Prepare(reply.reply_id) if must_list_again(journal, reply) else _next_of_reply(journal, reply)


def _must_tell(journal: Journal, load: Load) -> bool:
    """People hear of what waits for them by a checkpoint, which runs beside whatever else is to be done."""
    return not load.checkpointing and should_notify(journal)


def _stopped(journal: Journal, reply: ReplyContext) -> Finish | TakeIn:
    for call in reply.calls.values():
        if call.received is not None and call.state is not ToolCallState.FINISHED:
            return TakeIn(call.block.id)  # it has run, and the model has to know what came of it
    closing, said = _closing(journal, reply), parting_words(journal)
    reason = FinishedReason.INTERRUPTED if journal.interrupted else FinishedReason.REJECTED
    return Finish(reply.reply_id, reason, why_overdue(journal), closing=closing, said=said)


def _while_running(journal: Journal, load: Load) -> Step:
    """Siblings of running calls may start; everything else waits for them."""
    reply = journal.reply
    if reply is None or is_stopped(journal, reply):
        return Park("running calls")
    return _next_of_calls(journal, reply, load)


def _next_of_calls(journal: Journal, reply: ReplyContext, load: Load) -> Step:
    if journal.unverified.waiting:
        return Verify(next(iter(journal.unverified.waiting)))
    batch = next_batch(reply, journal.provided.tools, parallel=journal.spec.react_config.parallel_tool_calls)
    ready = _may_start(batch, journal, load)
    undecided = unjudged(batch)
    # Of one that was allowed and did not start at once, as at a continue-as-new: rules may have come, gone or expired,
    # and what it would touch may have changed.
    undecided += [
        call
        for call in ready
        if call.analysis_stale or has_aged(call, load.at) or must_judge_again(call, journal, load.at)
    ]
    ahead = [call for call in ahead_of(batch, journal) if is_unsettled(call, journal, load.at)]
    if stale := [call.block.id for call in (*undecided, *ahead) if must_examine(call, journal, load.at)]:
        return Examine(tuple(stale))
    if undecided or ahead:
        now = [judged(call, journal, load.at) for call in undecided]
        return Judge((*now, *(ruling_ahead(call, journal, load.at) for call in ahead)))
    if ready:
        return _started(ready, journal, load)
    if answered := _answered_meanwhile(batch, journal):
        return answered
    if load.running:
        return Park("running calls")
    if should_save(journal, load):
        return Checkpoint()
    asking = any(call.state is ToolCallState.ASKING for call in batch)
    return Park("person" if asking else "outside")


def _answered_meanwhile(batch: list[OpenCall], journal: Journal) -> Step | None:
    """What is to be done of calls that have waited: somebody has handed in a result, or their sleep is over."""
    for call in batch:
        if (awake := woken(call, journal)) is not None:
            return Answer(awake)
        if call.received is not None:
            return TakeIn(call.block.id)
    return None


def _may_start(batch: list[OpenCall], journal: Journal, load: Load) -> list[OpenCall]:
    """Those that are allowed and for which there is room; the others wait for one that runs to end. None on a history
    that is long: when all that run have ended, the session goes on in a fresh one, and they start there."""
    if load.running and history_is_long(journal, load):
        return []
    waiting = (call for call in batch if call.state is ToolCallState.ALLOWED and call.block.id not in load.running)
    return list(islice(waiting, max(CALLS_AT_ONCE - len(load.running), 0)))


def _started(ready: list[OpenCall], journal: Journal, load: Load) -> Step:
    inside = [call for call in ready if journal.provided.tools[call.block.name].inside]
    if inside:
        return Answer(answer(inside[0], journal))
    return Act(tuple(call.block.id for call in ready), fused=are_fused(ready, journal, load))


def _closing(journal: Journal, reply: ReplyContext) -> tuple[ToolResultBlock, ...]:
    """A result for each call that has none: a transcript with an open call is refused by every provider."""
    unfinished = [call for call in reply.calls.values() if call.state is not ToolCallState.FINISHED]
    return tuple(left_open(call, journal.children) for call in unfinished)


def _between_replies(journal: Journal, load: Load) -> Step:
    if ends_with_report(journal) or closes_with_answer(journal):
        return close(journal, load)
    # A request that waits is no reason: what it comes to is written down in a moment. A mark of closing is.
    if (
        should_save(journal, load)
        and journal.requests.finished
        and (not journal.requests.queue or journal.keeping.closing or journal.keeping.mirrored < journal.requests.ended)
    ):
        return Checkpoint()
    if journal.compaction.asked is not None and (shorter := _shorter(journal)):
        return shorter
    if journal.requests.queue:
        return Prepare(journal.requests.queue[0].reply_id)
    if idle_for_long(journal):
        return close(journal, load)
    return Idle()


def _shorter(journal: Journal) -> Compress | None:
    return None if (cut := next_cut(journal)) is None else Compress(cut)


def _next_of_reply(journal: Journal, reply: ReplyContext) -> Step:
    if finished := ended_in_form(journal, reply):
        return finished
    if reply.answered:
        reason = FinishedReason.EXCEED_MAX_ITERS if was_closed(journal, reply) else FinishedReason.COMPLETED
        return _stuck(journal, reply) or Finish(reply.reply_id, reason)
    if stopped := _stuck(journal, reply) or too_often(journal, reply):
        return stopped
    closing = must_close(journal, reply)
    if closing and reply.failed_models:
        return Finish(reply.reply_id, FinishedReason.EXCEED_MAX_ITERS)
    if shorter := _shorter(journal):
        return shorter
    if must_compress(journal):
        return Finish(reply.reply_id, FinishedReason.ERROR, reply.model_error)
    if too_big := too_big_without_context(journal):
        return Finish(reply.reply_id, FinishedReason.ERROR, too_big)
    return _next_to_hear(journal, reply, closing=closing)


def _stuck(journal: Journal, reply: ReplyContext) -> Finish | None:
    seen = stuck(journal.state.watch, journal.spec.stuck) if is_watched(journal) else None
    return Finish(reply.reply_id, FinishedReason.STUCK, why(seen)) if seen else None


def _next_to_hear(journal: Journal, reply: ReplyContext, *, closing: bool) -> Step:
    if told := to_be_told(journal, closing=closing, must_finish=in_grace(journal, reply)):
        return Remind(told)
    model = next_model(journal, reply)
    if model is None:
        return without_a_model(reply)
    return Think(model, closing=closing, must_finish=must_call(journal, reply))
