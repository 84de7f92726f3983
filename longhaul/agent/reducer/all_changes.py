"""Changes the session state by each entry, one function for each kind of entry, and picks the calls of a turn that may
run together.

What an entry does depends on the entry and the session state alone. Nothing here decides what happens next
(`agent.decision` does), and only `Journal` calls it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never, cast, get_args

from longhaul.agent import entries as e
from longhaul.agent.permission import rulebook
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.measures import believable, iso
from longhaul.agent.reducer import (
    approval_digest,
    budget_state,
    call_state,
    context_state,
    incarnation_state,
    notification_state,
    reminder_state,
    request_state,
    subagent_state,
)
from longhaul.agent.reducer.agent_state import OpenCall, ReplyContext
from longhaul.agent.reducer.reminder_state import stamped, standing_reminders, take_rules
from longhaul.agent.reducer.session_state import KEPT_REFUSALS, CachedPrefix, Heard, SessionState
from longhaul.agent.values.conversation.messages import REFUSALS, ContentBlock, ToolCallBlock, ToolCallState, Usage
from longhaul.agent.values.conversation.prompt import cut_short, hint_message
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Scope

CALLS_AT_ONCE = 32
"""Under way together; the next one starts when one has ended. More of them help nobody, and the server holds no more
than 2,000 of a session: with those its task would fail for ever."""
CALLS_OF_A_TURN = 256
"""The first ones of a model's turn, in its order. What stands behind them is neither run nor recorded, and the model is
told: each call is a piece of a session's history, and ten thousand would be the end of it."""


def next_batch(reply: ReplyContext, tools: Mapping[str, ToolDescriptor], *, parallel: bool) -> list[OpenCall]:
    """The first batch with a call that has no result: its open calls, in order; empty when all are answered.

    A call whose tool is not concurrency-safe is a batch of its own. A call of an unknown tool runs nothing, so
    it joins its neighbours.
    """
    calls = list(reply.calls.values())
    alone = [name for name in {call.block.name for call in calls} if not _shares(name, tools)]
    first = next((index for index, call in enumerate(calls) if call.state is not ToolCallState.FINISHED), len(calls))
    if not parallel or (first < len(calls) and calls[first].block.name in alone):
        return calls[first : first + 1]
    behind = next((index for index in range(first, len(calls)) if calls[index].block.name in alone), len(calls))
    return [call for call in calls[first:behind] if call.state is not ToolCallState.FINISHED]


def without_too_many(content: Sequence[ContentBlock]) -> tuple[tuple[ContentBlock, ...], int]:
    """What a model said with no more than CALLS_OF_A_TURN calls, and how many were dropped."""
    kept, calls = list[ContentBlock](), 0
    for block in content:
        calls += isinstance(block, ToolCallBlock)
        if calls <= CALLS_OF_A_TURN or not isinstance(block, ToolCallBlock):
            kept.append(block)
    return tuple(kept), max(calls - CALLS_OF_A_TURN, 0)


def too_many(dropped: int) -> str:
    """What the model is told behind the results of the calls that were kept."""
    return (
        f"Your last turn had {CALLS_OF_A_TURN + dropped:,} calls, and {CALLS_OF_A_TURN} are the most. The first "
        f"{CALLS_OF_A_TURN} were taken; the {dropped:,} behind them were dropped, and none of those ran. Make fewer "
        "calls at a time, or one that does the work of many."
    )


def _shares(name: str, tools: Mapping[str, ToolDescriptor]) -> bool:
    tool = tools.get(name)
    return tool is None or tool.concurrency_safe or tool.external


def apply(session: SessionState, entry: e.AnyEntry) -> None:
    incarnation_state.goes_on(session, entry)
    budget_state.count_amounts(session, entry)
    budget_state.settle_budget(session, entry)
    if (known_by := _KNOWN_BY.get(type(entry))) is not None:
        known_by(session, entry)
    else:
        _apply_single(session, cast(e.SingleEntry, entry))
    request_state.end_of_step(session, entry)
    if session.askers:
        subagent_state.note_for_askers(session, entry)


_BY_SUBJECT: tuple[tuple[Any, Callable[[SessionState, Any], None]], ...] = (
    (e.CallEntry, call_state.apply_call),
    (e.RequestEntry, request_state.apply_request),
    (e.IncarnationEntry, incarnation_state.apply),
    (e.ContextEntry, context_state.apply_context),
    (e.UnverifiedEntry, call_state.apply_signed_decision),
    (e.InWorkflowEntry, call_state.apply_session_tool),
    (e.OutcomeEntry, notification_state.apply_unknown_outcome),
    (e.PauseEntry, request_state.apply_pause),
    (e.SleepEntry, notification_state.apply_sleep),
    (e.InputEntry, call_state.apply_server_question),
    (e.ChildEntry, subagent_state.apply_subagent),
    (e.AskEntry, subagent_state.apply_ask),
    (e.BackgroundEntry, subagent_state.apply_background),
    (e.BudgetAllotted, subagent_state.raise_later),
    (e.HubEntry, request_state.apply_hub),
    (e.BudgetEntry, lambda _session, _entry: None),  # `budget.take` has heard of it
)
"""Unions of entries, and what knows them all, the first that has one; every other one is a SingleEntry."""

_KNOWN_BY: dict[object, Callable[[SessionState, Any], None]] = {
    kind: known_by for kinds, known_by in reversed(_BY_SUBJECT) for kind in get_args(kinds) or (kinds,)
}


def _apply_single(session: SessionState, entry: e.SingleEntry) -> None:
    match entry:
        case e.ModelSaid():
            approval_digest.take_shown(session, entry.words)
            _model_said(session, entry)
        case e.ModelFailed():
            _model_failed(session, entry)
        case e.Prepared():
            reminder_state.apply(session, entry)
        case e.Observed():
            session.hear(stamped(entry.messages, entry))
            reminder_state.note_observed(session)
        case e.Configured():
            _configure(session, entry)
        case e.RulesChanged():
            new = rulebook.stamped(entry.add, Scope.SESSION, author=entry.by, reason=entry.why, at_ms=entry.at)
            left = rulebook.without(session.state.permission_context.rules, entry.revoked)
            take_rules(session, rulebook.added(left, new, entry.at))
        case e.OperationRefused():
            session.refused.count = max(session.refused.count + 1, entry.count)
            session.refused.newest = [*session.refused.newest[-KEPT_REFUSALS + 1 :], entry]
        case e.DeadlineReached():
            call_state.apply_deadline(session, entry)
        case e.SessionOpened():
            pass
        case _ as never:
            assert_never(never)


def _configure(session: SessionState, entry: e.Configured) -> None:
    new = rulebook.stamped(entry.add_rules, Scope.SESSION, author=entry.by, at_ms=entry.at)
    take_rules(session, rulebook.added(session.state.permission_context.rules, new, entry.at))
    if entry.mode is not None:
        session.state.take_mode(entry.mode)
        session.rules.changed = entry.seq
        session.context.reminders = standing_reminders(session)
    given = {"confirm": entry.confirm, "analyzers": entry.analyzers}
    if changes := {name: value for name, value in given.items() if value is not None}:
        session.state.permission_context = session.state.permission_context.model_copy(update=changes)
        session.rules.changed = entry.seq
    if entry.max_iters is not None:
        react = session.spec.react_config.model_copy(update={"max_iters": entry.max_iters})
        session.spec = session.spec.model_copy(update={"react_config": react})
    if entry.model is not None:
        session.spec = session.spec.model_copy(update={"model": entry.model})
        session.provided.take_told_prompt()
    if entry.llm_config is not None:
        session.spec = session.spec.model_copy(update={"llm_config": entry.llm_config})
    if entry.middlewares is not None:
        session.spec = session.spec.model_copy(update={"middlewares": entry.middlewares})
        # Nobody has looked at these yet: who has nothing to say to an interrupt says nothing.
        session.provided.hooked_interrupts = session.provided.hooked_interrupts or bool(entry.middlewares)


def _cut_short(session: SessionState, entry: e.ModelSaid) -> None:
    """It stands in the transcript as far as clients have read it. No digest is known of it, and no provider would take
    back what it has not finished: the model is told in words. Its usage is the worker's own count."""
    session.spent.model_calls += 1
    reply, usage = session.current, entry.message.usage or Usage()
    reply.usage, session.spent.usage = reply.usage + usage, session.spent.usage + usage
    if entry.message.content:
        session.append((entry.message.model_copy(update={"id": reply.reply_id, "created_at": iso(entry.at)}),))
    session.append(stamped((hint_message(cut_short(entry.started_calls), "interrupted"),), entry))


def _model_said(session: SessionState, entry: e.ModelSaid) -> None:
    context_state.take_marked(session, entry.marked)
    if entry.cut_short:
        _cut_short(session, entry)
        return
    if entry.repair is not None:
        context_state.apply_repair(session, entry.repair)
    context_state.note_adjusted(session, entry)
    if entry.stop in REFUSALS:
        context_state.refused(session, entry)
        return
    reply = session.current
    session.spent.model_calls += 1
    usage = entry.message.usage or Usage()
    context_state.note_sent(session, entry, usage)
    _hear(session, entry, usage)
    told = {"id": reply.reply_id, "created_at": iso(entry.at), **context_state.mark(entry)}
    message = entry.message.model_copy(update=told)
    session.append((message,), entry.digest, entry.tokens)
    # An Observed may have come while the model was thinking: it stands before this message, and the digest
    # knows nothing of it. Anchored there, no later model call would see it.
    if entry.context_digest and entry.context_length == session.context_length:
        session.context.cached_prefix = CachedPrefix(entry.context_digest, entry.context_length)
    reply.usage, session.spent.usage = reply.usage + usage, session.spent.usage + usage
    reply.failed_models, reply.overflow = [], ""
    context_state.broke_off(session, entry)
    for block in message.get_tool_calls():
        session.calls.names[block.id] = block.name
        analysis = context_state.analysis_of(entry, message, block.id)
        session.keep_unmarked(block.id, entry.unmarked.get(block.id, ""))
        reply.calls[block.id] = OpenCall(
            block=block,
            input=block.input,
            analysis=CallAnalysis() if analysis is None else analysis,
            analyzed_at=entry.at,
            analysis_stale=analysis is None,
        )
    if entry.dropped_calls:
        session.context.deferred.extend(stamped((hint_message(too_many(entry.dropped_calls), "calls"),), entry))
    asked_again = context_state.goes_on(session, entry) or reminder_state.note_words(session, message)
    reply.answered = not reply.calls and not asked_again and not context_state.lacks_its_form(reply)
    reply.cur_iter += not reply.calls


def _hear(session: SessionState, entry: e.ModelSaid, usage: Usage) -> None:
    """Take in what the provider says of the context's size. A report that can't be believed changes nothing: every
    estimate after it would be as wrong as it is."""
    guessed = usage.estimated and usage.input_tokens == entry.input_estimate
    if guessed or not believable(usage.input_tokens, entry.input_estimate):
        return
    counted = session.provided.fixed_tokens + session.context.tokens - _came_meanwhile(session, entry)
    session.context.heard = Heard(entry.input_estimate, usage.input_tokens, counted)


def _came_meanwhile(session: SessionState, entry: e.ModelSaid) -> int:
    """Tokens of what was observed while the model was thinking: what the provider reports is without them."""
    if not entry.context_length:
        return 0
    seen = entry.context_length - 1 - bool(session.state.summary)
    return sum(mark.tokens for mark in session.context.marks[seen:])


def _model_failed(session: SessionState, entry: e.ModelFailed) -> None:
    session.current.model_error = entry.error  # of a custom agent's own prompt no shorter context is an end
    too_long = entry.error.type == "context_overflow" and session.provided.window > 0 and not session.spec.custom_agent
    if too_long and context_state.overflowed(session):
        return
    session.current.failed_models.append(entry.model)
