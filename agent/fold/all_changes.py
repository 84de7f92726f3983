"""Changes the ledger by each entry, one function per kind.

Rules of this file: what an entry does depends on the entry and the ledger alone; nothing here decides what
happens next (`agent.decision` does), and nobody but `Record` calls it.
"""

from collections.abc import Callable
from typing import Any, assert_never, cast, get_args

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold import (
    amounts,
    background,
    budget,
    calls,
    context,
    deadlines,
    doubts,
    hubs,
    message_ends,
    prepared,
    repairs,
    requests,
    server_questions,
    session_tools,
    signed_approvals,
    sleep,
    subagents,
)
from longhaul.agent.fold import life as kept
from longhaul.agent.fold import pausing as paused
from longhaul.agent.fold import stuck_detection as circles
from longhaul.agent.fold.ledger import words
from longhaul.agent.fold.ledger.agent_state import OpenCall
from longhaul.agent.fold.ledger.ledger import KEPT_REFUSALS, Ledger
from longhaul.agent.fold.ledger.ledger_values import Anchor, Heard
from longhaul.agent.fold.parallel_calls import too_many
from longhaul.agent.fold.reminders import stamped, standing_hints
from longhaul.agent.fold.rules import take_rules
from longhaul.agent.permission import rulebook
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.plain.times import iso
from longhaul.agent.plain.token_correction import believable
from longhaul.agent.values.conversation.hints import cut_short, hint_message
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.conversation.stop_reasons import REFUSALS
from longhaul.agent.values.permission import Scope


def apply(ledger: Ledger, entry: e.AnyEntry) -> None:
    kept.goes_on(ledger, entry)
    amounts.take(ledger, entry)
    budget.take(ledger, entry)
    _apply(ledger, entry)
    paused.end_of_step(ledger, entry)


_BY_SUBJECT: tuple[tuple[Any, Callable[[Ledger, Any], None]], ...] = (
    (e.CallEntry, calls.apply),
    (e.RequestEntry, requests.apply),
    (e.LifeEntry, kept.apply),
    (e.ContextEntry, context.apply),
    (e.OfferEntry, signed_approvals.apply),
    (e.InsideEntry, session_tools.apply),
    (e.DoubtEntry, doubts.apply),
    (e.PauseEntry, paused.apply),
    (e.SleepEntry, sleep.apply),
    (e.InputEntry, server_questions.apply),
    (e.ChildEntry, subagents.apply),
    (e.BackgroundEntry, background.apply),
    (e.BudgetAllotted, subagents.raise_later),
    (e.HubEntry, hubs.apply),
    (e.BudgetEntry, lambda _ledger, _entry: None),  # `budget.take` has heard of it
)
"""Unions of entries, and what knows them all, the first that has one; every other one is a SingleEntry."""

_KNOWN_BY: dict[type[Any], Callable[[Ledger, Any], None]] = {
    kind: known_by for kinds, known_by in reversed(_BY_SUBJECT) for kind in get_args(kinds) or (kinds,)
}


def _apply(ledger: Ledger, entry: e.AnyEntry) -> None:
    if (known_by := _KNOWN_BY.get(type(entry))) is not None:
        known_by(ledger, entry)
    else:
        _apply_single(ledger, cast(e.SingleEntry, entry))


def _apply_single(ledger: Ledger, entry: e.SingleEntry) -> None:
    match entry:
        case e.ModelSaid():
            words.take_shown(ledger, entry.words)
            _model_said(ledger, entry)
        case e.ModelFailed():
            _model_failed(ledger, entry)
        case e.Prepared():
            prepared.apply(ledger, entry)
        case e.Observed():
            _observe(ledger, entry)
        case e.Configured():
            _configure(ledger, entry)
        case e.RulesChanged():
            _change_rules(ledger, entry)
        case e.LetterRefused():
            _refuse(ledger, entry)
        case e.DeadlineReached():
            deadlines.apply(ledger, entry)
        case e.SessionOpened():
            pass
        case _ as never:
            assert_never(never)


def _observe(ledger: Ledger, entry: e.Observed) -> None:
    ledger.hear(stamped(entry.messages, entry))
    circles.note_observed(ledger)


def _change_rules(ledger: Ledger, entry: e.RulesChanged) -> None:
    new = rulebook.stamped(entry.add, Scope.SESSION, author=entry.by, reason=entry.why, at_ms=entry.at)
    left = rulebook.without(ledger.state.permission_context.rules, entry.revoked)
    take_rules(ledger, rulebook.added(left, new, entry.at))


def _configure(ledger: Ledger, entry: e.Configured) -> None:
    new = rulebook.stamped(entry.add_rules, Scope.SESSION, author=entry.by, at_ms=entry.at)
    take_rules(ledger, rulebook.added(ledger.state.permission_context.rules, new, entry.at))
    if entry.mode is not None:
        ledger.state.take_mode(entry.mode)
        ledger.rules.changed = entry.seq
        ledger.context.reminders = standing_hints(ledger)
    given = {"confirm": entry.confirm, "analyzers": entry.analyzers}
    if changes := {name: value for name, value in given.items() if value is not None}:
        ledger.state.permission_context = ledger.state.permission_context.model_copy(update=changes)
        ledger.rules.changed = entry.seq
    if entry.max_iters is not None:
        react = ledger.spec.react_config.model_copy(update={"max_iters": entry.max_iters})
        ledger.spec = ledger.spec.model_copy(update={"react_config": react})
    if entry.model is not None:
        ledger.spec = ledger.spec.model_copy(update={"model": entry.model})
    if entry.llm_config is not None:
        ledger.spec = ledger.spec.model_copy(update={"llm_config": entry.llm_config})
    if entry.middlewares is not None:
        ledger.spec = ledger.spec.model_copy(update={"middlewares": entry.middlewares})
        # Nobody has looked at these yet: who has nothing to say to an interrupt says nothing.
        ledger.provided.hooked_interrupts = ledger.provided.hooked_interrupts or bool(entry.middlewares)


def _cut_short(ledger: Ledger, entry: e.ModelSaid) -> None:
    """It stands in the transcript as far as clients have read it. No digest is known of it, and no provider would take
    back what it has not finished: the model is told in words. Its usage is the worker's own count."""
    ledger.spent.model_calls += 1
    reply, usage = ledger.current, entry.message.usage or Usage()
    reply.usage, ledger.spent.usage = reply.usage + usage, ledger.spent.usage + usage
    if entry.message.content:
        ledger.append((entry.message.model_copy(update={"id": reply.reply_id, "created_at": iso(entry.at)}),))
    ledger.append(stamped((hint_message(cut_short(entry.begun_calls), "interrupted"),), entry))


def _model_said(ledger: Ledger, entry: e.ModelSaid) -> None:
    context.take_marked(ledger, entry.marked)
    if entry.cut_short:
        _cut_short(ledger, entry)
        return
    if entry.repair is not None:
        repairs.apply(ledger, entry.repair)
    context.note_adjusted(ledger, entry)
    if entry.stop in REFUSALS:
        message_ends.refused(ledger, entry)
        return
    reply = ledger.current
    ledger.spent.model_calls += 1
    usage = entry.message.usage or Usage()
    _hear(ledger, entry, usage)
    told = {"id": reply.reply_id, "created_at": iso(entry.at), **message_ends.mark(entry)}
    message = entry.message.model_copy(update=told)
    ledger.append((message,), entry.digest, entry.tokens)
    # An Observed may have come while the model was thinking: it stands before this message, and the digest
    # knows nothing of it. Anchored there, no later model call would see it.
    if entry.context_digest and entry.context_length == ledger.context_length:
        ledger.context.anchor = Anchor(entry.context_digest, entry.context_length)
    reply.usage, ledger.spent.usage = reply.usage + usage, ledger.spent.usage + usage
    reply.failed_models, reply.overflow = [], ""
    message_ends.broke_off(ledger, entry)
    for block in message.get_tool_calls():
        ledger.calls.names[block.id] = block.name
        facts = message_ends.facts_of(entry, message, block.id)
        ledger.keep_unmarked(block.id, entry.unmarked.get(block.id, ""))
        reply.calls[block.id] = OpenCall(
            block=block,
            input=block.input,
            facts=CallFacts() if facts is None else facts,
            facts_at=entry.at,
            facts_stale=facts is None,
        )
    if entry.dropped_calls:
        ledger.context.deferred.extend(stamped((hint_message(too_many(entry.dropped_calls), "calls"),), entry))
    asked_again = message_ends.goes_on(ledger, entry) or circles.note_words(ledger, message)
    reply.answered = not reply.calls and not asked_again and not message_ends.lacks_its_form(reply)
    reply.cur_iter += not reply.calls


def _hear(ledger: Ledger, entry: e.ModelSaid, usage: Usage) -> None:
    """Take in what the provider says of the context's size. A report that can't be believed changes nothing: every
    estimate after it would be as wrong as it is."""
    guessed = usage.estimated and usage.input_tokens == entry.input_estimate
    if guessed or not believable(usage.input_tokens, entry.input_estimate):
        return
    counted = ledger.provided.fixed_tokens + ledger.context.tokens - _came_meanwhile(ledger, entry)
    ledger.context.heard = Heard(entry.input_estimate, usage.input_tokens, counted)


def _came_meanwhile(ledger: Ledger, entry: e.ModelSaid) -> int:
    """Tokens of what was observed while the model was thinking: what the provider reports is without them."""
    if not entry.context_length:
        return 0
    seen = entry.context_length - 1 - bool(ledger.state.summary)
    return sum(mark.tokens for mark in ledger.context.marks[seen:])


def _model_failed(ledger: Ledger, entry: e.ModelFailed) -> None:
    ledger.current.model_error = entry.error  # of a kind's own prompt no shorter context is an end
    too_long = entry.error.type == "context_overflow" and ledger.provided.window > 0 and not ledger.spec.kind
    if too_long and context.overflowed(ledger):
        return
    ledger.current.failed_models.append(entry.model)


def _refuse(ledger: Ledger, entry: e.LetterRefused) -> None:
    ledger.refused.count = max(ledger.refused.count + 1, entry.count)
    ledger.refused.newest = [*ledger.refused.newest[-KEPT_REFUSALS + 1 :], entry]
