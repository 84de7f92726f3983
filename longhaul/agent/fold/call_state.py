"""Changes the ledger by entries about tool calls: facts, verdicts, decisions, questions of MCP servers, deadlines
and results.
"""

import json
from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import CallAnswered, InputAnswered, InputAsked, InputEntry, InsideEntry, Reminded
from longhaul.agent.fold import notification_state, reminder_state, subagent_state
from longhaul.agent.fold.agent_state import OpenCall
from longhaul.agent.fold.approval_digest import essence, terms
from longhaul.agent.fold.context_state import note_adjusted
from longhaul.agent.fold.ledger import KEPT_REQUESTS, Ledger
from longhaul.agent.fold.reminder_state import notebook_hints, stamped, standing_hints, take_rules, take_user_rules
from longhaul.agent.fold.synthetic_results import denied_by_permission, denied_by_person, expired, not_a_call
from longhaul.agent.permission.call_facts import brings_in
from longhaul.agent.permission.decision_table import risk_of
from longhaul.agent.permission.rulebook import accepted, added
from longhaul.agent.plain.measures import iso
from longhaul.agent.values.conversation.messages import (
    Msg,
    ToolCallState,
    ToolResultBlock,
    ToolResultState,
    in_words,
    response_in,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.deadlines import RiskFound, deadline_of
from longhaul.agent.values.permission import KEPT_DECISIONS, Approval, DecisionMade, is_too_old, with_one_more
from longhaul.agent.values.plans import PLAN_EXIT
from longhaul.agent.values.spec.known_names import MCP
from longhaul.agent.values.spec.mcp import CONNECTION, TOOLS_CHANGED, Sampled, server_of


def approvals_with(
    ledger: Ledger, call: OpenCall, decision: e.DecisionGiven, approver: str, key: str
) -> tuple[Approval, ...]:
    """The approvals of the call once this one is in. An edit makes another call of it, that nobody else has approved;
    and what was approved under other rules counts no more."""
    tool = ledger.provided.tools.get(call.block.name)
    now = terms(tool, ledger.permission) if tool else ""
    voided = is_edit(call, decision) or call.approved_terms not in ("", now)
    return with_one_more(() if voided else call.approvals, approver, key)


def is_edit(call: OpenCall, decision: e.DecisionGiven) -> bool:
    return decision.input is not None and decision.input != call.input


def note_decision(ledger: Ledger, call: OpenCall, decision: e.DecisionGiven, entry: e.HumanDecided) -> None:
    """Before the decision is acted on: how many approvals there are is counted with this one."""
    needed = ledger.state.permission_context.approvers(call.block.name)
    count = len(approvals_with(ledger, call, decision, entry.approver, entry.key))
    made = DecisionMade(
        call_id=decision.call_id,
        tool=call.block.name,
        decision="allow" if decision.allow else "deny",
        approver=entry.approver,
        at=iso(entry.at),
        reason=decision.reason,
        digest=decision.digest,
        edited=is_edit(call, decision),
        rules=tuple(rule.spelt() for rule in decision.rules),
        key=entry.key,
        counts=f"{count} of {needed}" if decision.allow and needed > 1 else "",
    )
    ledger.state.decisions = (*ledger.state.decisions[-KEPT_DECISIONS + 1 :], made)


def count(ledger: Ledger, sampled: Sampled | None) -> None:
    """What each model has used, and what the budget has left, `amounts` and `budget` say."""
    if sampled is not None:
        ledger.current.usage, ledger.spent.usage = (
            ledger.current.usage + sampled.usage,
            ledger.spent.usage + sampled.usage,
        )
        ledger.spent.samples += sampled.calls


def apply_call(ledger: Ledger, entry: e.CallEntry) -> None:
    match entry:
        case e.CallsExamined():
            _examined(ledger, entry)
        case e.CallsJudged():
            _judged(ledger, entry)
        case e.HumanDecided():
            _decided(ledger, entry)
        case e.ToolReturned():
            _returned(ledger, entry)
        case e.ResultReceived():
            call = ledger.current.calls[entry.result.id]
            # Of a Temporal tool it was allowed, and would be started again.
            call.received, call.state = entry.result, ToolCallState.SUBMITTED
        case e.PieceReceived():
            call = ledger.current.calls[entry.call_id]
            call.pieces = (*call.pieces, entry.text)
        case e.CallUnsettled():
            _unsettled(ledger, entry)
        case _ as never:
            assert_never(never)


def _examined(ledger: Ledger, entry: e.CallsExamined) -> None:
    note_adjusted(ledger, entry)
    if entry.usage is not None:
        ledger.spent.usage += entry.usage
        ledger.spent.analyses += len(entry.facts)
        if ledger.reply is not None:
            ledger.reply.usage += entry.usage
    # A host that was away may answer when the reply is over.
    calls = ledger.reply.calls if ledger.reply is not None else {}
    for call_id, facts in entry.facts.items():
        if call := calls.get(call_id):
            if call.state is ToolCallState.ASKING and essence(facts) != essence(call.facts):
                # What a person is looking at is no more: they are asked anew, and who has approved it has not.
                call.state, call.approvals = ToolCallState.PENDING, ()
            call.facts, call.facts_at, call.facts_stale, call.analyzed = facts, entry.at, False, True
            if call_id in entry.marked:
                runs = ledger.calls.unmarked.get(call_id, call.input)
                ledger.keep_unmarked(call_id, "" if ledger.marks_secrets else runs)
                call.input = entry.marked[call_id]
            if call.approved and call.approved_facts is None:
                call.approved_facts = facts
    # Last: these findings were made before anybody knew of the rules that came with them.
    if entry.user_rules is not None:
        take_user_rules(ledger, entry.user_rules, entry.user_rules_digest)


def _judged(ledger: Ledger, entry: e.CallsJudged) -> None:
    asked: list[OpenCall] = []
    for verdict in entry.verdicts:
        call = ledger.current.calls[verdict.call_id]
        call.judged, call.judged_at = entry.seq, entry.at
        if verdict.behavior == "later":
            call.state = ToolCallState.PENDING
            continue
        call.reason, call.confined = verdict.reason, verdict.confined
        match verdict.behavior:
            case "allow":
                call.state = ToolCallState.ALLOWED
            case "ask":
                call.state = ToolCallState.ASKING
                call.suggested_rules, call.seen = verdict.suggested_rules, verdict.seen
                call.approvals = () if call.approved else call.approvals
                call.approved, call.approved_facts, call.changed = False, None, ""
                asked.append(call)
            case "stands":
                pass
            case "external":
                call.state = ToolCallState.SUBMITTED
                asked.append(call)
            case "deny":
                close(ledger, call, denied_by_permission(call.block, verdict.reason), entry)
            case "invalid":
                close(ledger, call, not_a_call(call.block, verdict.reason), entry)
            case _ as never:
                assert_never(never)
    for call in asked:
        begin_to_wait(ledger, call, entry.at)
    notification_state.begin_notices(ledger, asked, entry.seq)


def begin_to_wait(ledger: Ledger, call: OpenCall, at: int) -> None:
    """What is asked again waits anew, from now. The deadline is kept with the call: settings may change meanwhile."""
    call.asked_at, call.reminded_at, call.escalated_at, call.expired_at = at, 0, 0, 0
    tool = ledger.provided.tools.get(call.block.name)
    call.deadline = deadline_of(
        call.block.name,
        tool.deadline if tool else None,
        ledger.state.permission_context.deadline,
        _risk(ledger, call, tool),
    )


def _risk(ledger: Ledger, call: OpenCall, tool: ToolDescriptor | None) -> RiskFound | None:
    """Of what a person decides on; how long an outside system takes is no matter of risk, nor looks anybody at what the
    session answers itself."""
    if call.waits_for != "person" or tool is None or tool.inside:
        return None
    risk = risk_of(ledger.state.permission_context, call.facts)
    return risk.value if risk else None


def _decided(ledger: Ledger, entry: e.HumanDecided) -> None:
    for decision in entry.decisions:
        call = ledger.current.calls[decision.call_id]
        call.approver = entry.approver
        note_decision(ledger, call, decision, entry)
        if decision.allow:
            _approve(ledger, call, decision, entry)
        else:
            call.reason = decision.reason
            ledger.current.rejected = True
            close(ledger, call, denied_by_person(call.block, decision.reason, entry.approver), entry)
        if decision.rules:
            taken = accepted(decision.rules, entry.approver, decision.reason, entry.at)
            take_rules(ledger, added(ledger.state.permission_context.rules, taken, entry.at))
            # Accepted with one call of a list, a rule may answer the others: whoever accepts it sees them too.
            judge_again(ledger)


def judge_again(ledger: Ledger) -> None:
    """What people are asked about: whether they still have to be."""
    for call in ledger.current.calls.values():
        call.judged = 0 if call.state is ToolCallState.ASKING else call.judged


def _approve(ledger: Ledger, call: OpenCall, decision: e.DecisionGiven, entry: e.HumanDecided) -> None:
    """An edit is another call: who makes it is the first to approve that one, and it is judged before a second may."""
    call.approvals = approvals_with(ledger, call, decision, entry.approver, entry.key)
    call.approved = len(call.approvals) >= ledger.state.permission_context.approvers(call.block.name)
    tool = ledger.provided.tools.get(call.block.name)
    if tool is not None:
        call.approved_terms = terms(tool, ledger.permission)
    if not call.approved and not is_edit(call, decision):
        return
    call.state, call.approved_facts, call.judged = ToolCallState.PENDING, call.facts, 0
    if decision.input is not None and decision.input != call.input:
        call.input, call.facts_stale, call.approved_facts = decision.input, True, None
        # What its server was answered was about the call as it was.
        call.unchanged = call.asked = None
        ledger.keep_unmarked(call.block.id, "")
    if is_too_old(call.facts_at, entry.at):
        call.facts_stale = True


def _returned(ledger: Ledger, entry: e.ToolReturned) -> None:
    count(ledger, entry.sampled)
    if entry.cwd is not None:
        ledger.state.tool_context.cwd = entry.cwd
    if (connection := entry.result.metadata.get(CONNECTION)) and (server := server_of(entry.result.name)):
        known = ledger.state.tool_context.mcp_connections
        ledger.state.tool_context.mcp_connections = {**known, server: str(connection)}
    if entry.result.metadata.get(TOOLS_CHANGED) and (server := server_of(entry.result.name)):
        ledger.provided.outdated = tuple(dict.fromkeys((*ledger.provided.outdated, server)))
    call = ledger.current.calls[entry.result.id]
    name = call.block.name
    if not ledger.state.tainted:
        ledger.state.tainted = brings_in(ledger.provided.tools.get(name), call.facts, name, outside=entry.outside)
    call.response = "" if entry.outside or _is_others_word(ledger, call) else response_in(entry.result)
    for other in ledger.current.calls.values():
        if entry.cwd is not None or (other.facts.before and not call.facts.read_only):
            other.facts_stale = True
    close(ledger, call, entry.result, entry, entry.digest, entry.tokens)


def _is_others_word(ledger: Ledger, call: OpenCall) -> bool:
    """Of servers, and of tools that bring in what others wrote: none of them may speak as the agent."""
    tool = ledger.provided.tools.get(call.block.name)
    return tool is None or tool.untrusted or call.block.name.startswith(MCP)


def _unsettled(ledger: Ledger, entry: e.CallUnsettled) -> None:
    call = ledger.current.calls[entry.call_id]
    call.facts, call.facts_at, call.state = entry.facts, entry.at, ToolCallState.PENDING
    call.facts_stale, call.approved, call.approvals, call.changed = False, False, (), entry.reason
    call.analyzed = False
    call.times_unsettled += 1
    if entry.input is not None:
        call.unchanged = call.input if call.unchanged is None else call.unchanged
        call.input = entry.input


def close(
    ledger: Ledger, call: OpenCall, result: ToolResultBlock, entry: e.AnyEntry, digest: str = "", tokens: int = 0
) -> None:
    reply = ledger.current
    call.state = ToolCallState.FINISHED
    if call.block.name == PLAN_EXIT:  # Those behind it were judged as if the plan were approved.
        judge_again(ledger)
    message = Msg(
        name=ledger.spec.name,
        role="assistant",
        content=(result,),
        id=reply.reply_id,
        created_at=iso(entry.at),
    )
    ledger.append((message,), digest, tokens)
    reminder_state.note_call(ledger, call.block, result)
    if result.state is not ToolResultState.UNKNOWN:
        ledger.keep_unmarked(result.id, "")
    else:
        runs_on = isinstance(entry, e.ToolReturned) and entry.runs_on
        notification_state.begin_doubt(ledger, call, result, entry.at, runs_on=runs_on)
    if all(other.state is ToolCallState.FINISHED for other in reply.calls.values()):
        reply.response = next((other.response for other in reply.calls.values() if other.response), "")
        reply.calls = {}
        reply.cur_iter += 1
        reminder_state.note_turn(ledger)
        ledger.append(tuple(ledger.context.deferred))
        ledger.context.deferred = []


def apply_server_question(ledger: Ledger, entry: InputEntry) -> None:
    match entry:
        case InputAsked():
            count(ledger, entry.sampled)
            call = ledger.current.calls[entry.call_id]
            call.asked, call.state, call.reason = entry.asked, ToolCallState.SUBMITTED, in_words(entry.asked)
            begin_to_wait(ledger, call, entry.at)
            notification_state.begin_notices(ledger, [call], entry.seq)
        case InputAnswered():
            _answer_question(ledger, entry)
        case _ as never:
            assert_never(never)


def _answer_question(ledger: Ledger, entry: InputAnswered) -> None:
    """Judged anew, and not just run: rules may have come while a person thought."""
    call = ledger.current.calls[entry.call_id]
    if call.asked is None:
        raise ValueError("an answer to a question that was never asked")
    before = call.asked.answers if call.asked.from_start else {}
    answers = {**before, **json.loads(entry.answers)}
    call.asked = call.asked.model_copy(update={"waits": False, "answers": answers})
    call.state, call.judged = ToolCallState.PENDING, 0
    call.facts_stale |= is_too_old(call.facts_at, entry.at)


def apply_deadline(ledger: Ledger, entry: e.DeadlineReached) -> None:
    notification_state.due(ledger, entry)
    for due in entry.due:
        call = ledger.current.calls[due.call_id]
        # A later stage stands for the earlier ones: they are not made up for.
        match due.stage:
            case "remind":
                call.reminded_at = entry.at
            case "escalate":
                call.escalated_at = entry.at
                call.reminded_at = call.reminded_at or entry.at
            case "expire":
                call.expired_at = entry.at
        if due.closes:
            ledger.calls.expired[due.call_id] = entry.at
            while len(ledger.calls.expired) > KEPT_REQUESTS:
                del ledger.calls.expired[next(iter(ledger.calls.expired))]
            ledger.current.rejected |= due.waits_for == "person"
            close(ledger, call, expired(call.block, due), entry)


def apply_session_tool(ledger: Ledger, entry: InsideEntry) -> None:
    match entry:
        case CallAnswered():
            _answer_call(ledger, entry)
        case Reminded():
            if ledger.compaction.changed_at == ledger.messages_total:
                # These words alone are no reason to compress once more.
                ledger.compaction.changed_at += len(entry.messages)
            ledger.context.reminders = ()
            reminder_state.note_warned(ledger)
            if ledger.reply is not None:
                ledger.reply.to_go_on = ""
            ledger.append(stamped(entry.messages, entry))
        case _ as never:
            assert_never(never)


KEPT_FOUND = 50
"""Tools that a model has looked up: those that it is told of again after a compression."""


def _answer_call(ledger: Ledger, entry: CallAnswered) -> None:
    if entry.tasks is not None or entry.plans is not None:
        ledger.state.tasks_context = reminder_state.changed(ledger.state.tasks_context, entry)
    if entry.plan is not None:
        ledger.state.take_plan(entry.plan)
        ledger.rules.changed = entry.seq
        judge_again(ledger)
    if entry.groups is not None:
        were = (*ledger.context.shown_groups, *ledger.state.tool_context.activated_groups)
        ledger.context.shown_groups = tuple(dict.fromkeys(group for group in were if group not in entry.groups))
        ledger.state.tool_context.activated_groups = entry.groups
    if entry.found:
        before = (name for name in ledger.state.tool_context.found if name not in entry.found)
        ledger.state.tool_context.found = (*before, *entry.found)[-KEPT_FOUND:]
    if entry.structured_output is not None:
        ledger.current.structured_output = entry.structured_output
    subagent_state.stop_subagents(ledger, entry.unwanted)
    subagent_state.stop_commands(ledger, entry.unwanted)
    subagent_state.say_later(ledger, entry.seq, entry.sent)
    close(ledger, ledger.current.calls[entry.result.id], entry.result, entry)
    if ledger.context.reminders:
        ledger.context.reminders = standing_hints(ledger)
    elif entry.groups is not None:
        ledger.context.reminders = notebook_hints(ledger)


KEPT_OUTCOMES = 50
TOO_LATE = "the reply had ended before it was checked"


def apply_signed_decision(ledger: Ledger, entry: e.OfferEntry) -> None:
    if isinstance(entry, e.DecisionsOffered):
        ledger.offers.waiting[entry.seq] = entry
    else:
        ledger.offers.waiting.pop(entry.offer, None)
        _note(ledger, entry.offer, entry.why)


def end_of_reply(ledger: Ledger) -> None:
    """Nobody waits for them any more."""
    for number in ledger.offers.waiting:
        _note(ledger, number, TOO_LATE)
    ledger.offers.waiting = {}


def _note(ledger: Ledger, number: int, why: str) -> None:
    ledger.offers.settled[number] = why
    while len(ledger.offers.settled) > KEPT_OUTCOMES:
        del ledger.offers.settled[next(iter(ledger.offers.settled))]
