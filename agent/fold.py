"""What each entry does to the ledger, one function per kind.

Rules of this file: what an entry does depends on the entry and the ledger alone; nothing here decides what
happens next (`agent.decision` does), and nobody but `Record` calls it.
"""

from agent import entries as e
from agent import fold_calls as calls
from agent import fold_context as context
from agent import fold_doubts as doubts
from agent import fold_inside as inside
from agent import fold_kept as kept
from agent import fold_paused as paused
from agent import fold_requests as requests
from agent import fold_stuck as circles
from agent import fold_waiting as waiting
from agent.fold_rules import take_rules, take_user_rules
from agent.ledger import COMPRESSING, KEPT_REFUSALS, SUPERVISED, Ledger
from agent.ledger_values import Anchor, Heard
from agent.messages import Usage
from agent.permission import rulebook
from agent.permission.facts import CallFacts
from agent.permission.rules import Scope
from agent.standing import stamped, standing_hints
from agent.state import OpenCall
from agent.times import iso


def apply(ledger: Ledger, entry: e.AnyEntry) -> None:
    kept.goes_on(ledger, entry)
    _apply(ledger, entry)
    paused.end_of_step(ledger, entry)


def _apply(ledger: Ledger, entry: e.AnyEntry) -> None:  # noqa: C901, PLR0912, PLR0915  one line per kind of entry
    match entry:
        case e.SessionOpened():
            pass
        case e.RequestAccepted() | e.RequestDropped() | e.Joined() | e.ReplyStarted():
            requests.apply(ledger, entry)
        case e.InterruptAsked() | e.InterruptHandled() | e.ReplyFinished():
            requests.apply(ledger, entry)
        case e.Observed():
            _observe(ledger, entry)
        case e.Configured():
            _configure(ledger, entry)
        case e.RulesChanged():
            _change_rules(ledger, entry)
        case e.Prepared():
            _prepare(ledger, entry)
        case e.ModelSaid():
            _model_said(ledger, entry)
        case e.ModelFailed():
            _model_failed(ledger, entry)
        case e.Refused():
            _refuse(ledger, entry)
        case e.CompressAsked() | e.ContextCompressed() | e.CompressionFailed():
            context.apply(ledger, entry)
        case e.CallsExamined() | e.CallsJudged() | e.HumanDecided() | e.DecisionsOffered() | e.OfferSettled():
            calls.apply(ledger, entry)
        case e.ToolReturned() | e.ResultReceived() | e.PieceReceived() | e.CallUnsettled():
            calls.apply(ledger, entry)
        case e.CallAnswered() | e.Reminded():
            inside.apply(ledger, entry)
        case e.DoubtProbed() | e.DoubtSettled():
            doubts.apply(ledger, entry)
        case e.DeadlineReached():
            waiting.apply(ledger, entry)
        case e.Paused() | e.Unpaused() | e.StepAsked() | e.StepBegun():
            paused.apply(ledger, entry)
        case _:
            kept.apply(ledger, entry)


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
        ledger.ruled = entry.seq
        ledger.reminders = standing_hints(ledger)
    given = {"confirm": entry.confirm, "analyzers": entry.analyzers}
    if changes := {name: value for name, value in given.items() if value is not None}:
        ledger.state.permission_context = ledger.state.permission_context.model_copy(update=changes)
        ledger.ruled = entry.seq
    if entry.max_iters is not None:
        react = ledger.spec.react_config.model_copy(update={"max_iters": entry.max_iters})
        ledger.spec = ledger.spec.model_copy(update={"react_config": react})
    if entry.model is not None:
        ledger.spec = ledger.spec.model_copy(update={"model": entry.model})
    if entry.middlewares is not None:
        ledger.spec = ledger.spec.model_copy(update={"middlewares": entry.middlewares})
        # Nobody has looked at these yet: who has nothing to say to an interrupt says nothing.
        ledger.hooked_interrupts = ledger.hooked_interrupts or bool(entry.middlewares)


def _prepare(ledger: Ledger, entry: e.Prepared) -> None:
    ledger.current.prepared = True
    ledger.state.behaviour = entry.behaviour
    if entry.user_rules is not None:
        take_user_rules(ledger, entry.user_rules, entry.user_rules_digest)
    ledger.spec_digest = entry.spec_digest
    ledger.indexed = max(ledger.indexed, entry.indexed)
    ledger.fixed_tokens, ledger.window = entry.fixed_tokens, entry.context_length
    if entry.system_prompt is not None:
        ledger.system_prompt, ledger.prompt_digest = entry.system_prompt, entry.prompt_digest
    if entry.tools is not None:
        ledger.tools = {tool.name: tool for tool in entry.tools}
    ledger.workspace_root, ledger.workspace_nonce = entry.workspace_root, entry.workspace_nonce
    ledger.state.tool_context.cwd = ledger.state.tool_context.cwd or entry.workspace_root
    ledger.wrapped, ledger.hooked_interrupts = entry.wrapped, entry.hooked_interrupts
    ledger.append(stamped(entry.hints, entry))
    ledger.reminders = standing_hints(ledger)


def _model_said(ledger: Ledger, entry: e.ModelSaid) -> None:
    reply = ledger.current
    ledger.model_calls += 1
    usage = entry.message.usage or Usage()
    if entry.input_estimate:
        counted = ledger.fixed_tokens + ledger.context_tokens - _came_meanwhile(ledger, entry)
        ledger.heard = Heard(entry.input_estimate, usage.input_tokens, counted)
    message = entry.message.model_copy(update={"id": reply.reply_id, "created_at": iso(entry.at)})
    ledger.append((message,), entry.digest, entry.tokens)
    # An Observed may have come while the model was thinking: it stands before this message, and the digest
    # knows nothing of it. Anchored there, no later model call would see it.
    if entry.context_digest and entry.context_length == ledger.context_length:
        ledger.anchor = Anchor(entry.context_digest, entry.context_length)
    reply.usage, ledger.usage = reply.usage + usage, ledger.usage + usage
    reply.failed_models, reply.overflow = [], ""
    for block in message.get_tool_calls():
        ledger.call_names[block.id] = block.name
        facts = entry.facts.get(block.id)
        reply.calls[block.id] = OpenCall(
            block=block,
            input=block.input,
            facts=CallFacts() if facts is None else facts,
            facts_at=entry.at,
            facts_stale=facts is None,
        )
    asked_again = circles.note_words(ledger, message)
    reply.answered = not reply.calls and not asked_again
    reply.cur_iter += not reply.calls


def _came_meanwhile(ledger: Ledger, entry: e.ModelSaid) -> int:
    """Tokens of what was observed while the model was thinking: what the provider reports is without them."""
    if ledger.state.behaviour < SUPERVISED or not entry.context_length:
        return 0
    seen = entry.context_length - 1 - bool(ledger.state.summary)
    return sum(mark.tokens for mark in ledger.marks[seen:])


def _model_failed(ledger: Ledger, entry: e.ModelFailed) -> None:
    ledger.current.model_error = entry.error
    may_shorten = ledger.state.behaviour >= COMPRESSING and ledger.window > 0
    if entry.error.type == "context_overflow" and may_shorten and context.overflowed(ledger):
        return
    ledger.current.failed_models.append(entry.model)


def _refuse(ledger: Ledger, entry: e.Refused) -> None:
    ledger.refused_count = max(ledger.refused_count + 1, entry.count)
    ledger.refusals = [*ledger.refusals[-KEPT_REFUSALS + 1 :], entry]
