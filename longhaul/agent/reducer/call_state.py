"""Changes the session state by entries about tool calls: facts, verdicts, decisions, questions of MCP servers,
deadlines and results.
"""

import json
from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import CallAnswered, InputAnswered, InputAsked, InputEntry, InWorkflowEntry, Reminded
from longhaul.agent.permission.call_analysis import brings_in
from longhaul.agent.permission.decision_table import risk_of
from longhaul.agent.permission.rulebook import accepted, added
from longhaul.agent.plain.measures import iso
from longhaul.agent.reducer import notification_state, reminder_state, subagent_state
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.approval_digest import essence, terms
from longhaul.agent.reducer.context_state import note_adjusted
from longhaul.agent.reducer.reminder_state import (
    notebook_reminders,
    stamped,
    standing_reminders,
    take_rules,
    take_user_rules,
)
from longhaul.agent.reducer.session_state import KEPT_REQUESTS, SessionState
from longhaul.agent.reducer.synthetic_results import denied_by_permission, denied_by_person, expired, not_a_call
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
from longhaul.agent.values.tool_groups import hidden


def approvals_with(
    session: SessionState, call: OpenCall, decision: e.DecisionGiven, approver: str, key: str
) -> tuple[Approval, ...]:
    """The approvals of the call once this one is in. An edit makes another call of it, that nobody else has approved;
    and what was approved under other rules counts no more."""
    tool = session.provided.tools.get(call.block.name)
    now = terms(tool, session.permission) if tool else ""
    voided = is_edit(call, decision) or call.approved_terms not in ("", now)
    return with_one_more(() if voided else call.approvals, approver, key)


def is_edit(call: OpenCall, decision: e.DecisionGiven) -> bool:
    return decision.input is not None and decision.input != call.input


def note_decision(session: SessionState, call: OpenCall, decision: e.DecisionGiven, entry: e.HumanDecided) -> None:
    """Before the decision is acted on: how many approvals there are is counted with this one."""
    needed = session.state.permission_context.approvers(call.block.name)
    count = len(approvals_with(session, call, decision, entry.approver, entry.key))
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
    session.state.decisions = (*session.state.decisions[-KEPT_DECISIONS + 1 :], made)


def count(session: SessionState, sampled: Sampled | None) -> None:
    """What each model has used, and what the budget has left, `amounts` and `budget` say."""
    if sampled is not None:
        session.current.usage, session.spent.usage = (
            session.current.usage + sampled.usage,
            session.spent.usage + sampled.usage,
        )
        session.spent.samples += sampled.calls


def apply_call(session: SessionState, entry: e.CallEntry) -> None:
    match entry:
        case e.CallsExamined():
            _examined(session, entry)
        case e.CallsJudged():
            _judged(session, entry)
        case e.HumanDecided():
            _decided(session, entry)
        case e.ToolReturned():
            _returned(session, entry)
        case e.ResultReceived():
            call = session.current.calls[entry.result.id]
            # Of a Temporal tool it was allowed, and would be started again.
            call.received, call.state = entry.result, ToolCallState.SUBMITTED
        case e.DeltaReceived():
            call = session.current.calls[entry.call_id]
            call.pieces = (*call.pieces, entry.text)
        case e.CallUnsettled():
            _unsettled(session, entry)
        case _ as never:
            assert_never(never)


def _examined(session: SessionState, entry: e.CallsExamined) -> None:
    note_adjusted(session, entry)
    if entry.usage is not None:
        session.spent.usage += entry.usage
        session.spent.analyses += len(entry.analysis)
        if session.reply is not None:
            session.reply.usage += entry.usage
    # A host that was away may answer when the reply is over.
    calls = session.reply.calls if session.reply is not None else {}
    for call_id, analysis in entry.analysis.items():
        if call := calls.get(call_id):
            if call.state is ToolCallState.ASKING and essence(analysis) != essence(call.analysis):
                # What a person is looking at is no more: they are asked again, and who has approved it has not.
                call.state, call.approvals = ToolCallState.PENDING, ()
            call.analysis, call.analyzed_at, call.analysis_stale, call.analyzed = analysis, entry.at, False, True
            if call_id in entry.marked:
                runs = session.calls.unmarked.get(call_id, call.input)
                session.keep_unmarked(call_id, "" if session.marks_secrets else runs)
                call.input = entry.marked[call_id]
            if call.approved and call.approved_analysis is None:
                call.approved_analysis = analysis
    # Last: these findings were made before anybody knew of the rules that came with them.
    if entry.user_rules is not None:
        take_user_rules(session, entry.user_rules, entry.user_rules_digest)


def _judged(session: SessionState, entry: e.CallsJudged) -> None:
    asked: list[OpenCall] = []
    for ruling in entry.rulings:
        call = session.current.calls[ruling.call_id]
        call.judged, call.judged_at = entry.seq, entry.at
        if ruling.behavior == "later":
            call.state = ToolCallState.PENDING
            continue
        call.reason, call.confined = ruling.reason, ruling.confined
        match ruling.behavior:
            case "allow":
                call.state = ToolCallState.ALLOWED
            case "ask":
                call.state = ToolCallState.ASKING
                call.suggested_rules, call.seen = ruling.suggested_rules, ruling.seen
                call.approvals = () if call.approved else call.approvals
                call.approved, call.approved_analysis, call.changed = False, None, ""
                asked.append(call)
            case "stands":
                pass
            case "external":
                call.state = ToolCallState.SUBMITTED
                asked.append(call)
            case "deny":
                close(session, call, denied_by_permission(call.block, ruling.reason), entry)
            case "invalid":
                close(session, call, not_a_call(call.block, ruling.reason), entry)
            case _ as never:
                assert_never(never)
    for call in asked:
        begin_to_wait(session, call, entry.at)
    notification_state.begin_notifications(session, asked, entry.seq)


def begin_to_wait(session: SessionState, call: OpenCall, at: int) -> None:
    """What is asked again waits again, from now. The deadline is kept with the call: settings may change meanwhile."""
    call.asked_at, call.reminded_at, call.escalated_at, call.expired_at = at, 0, 0, 0
    tool = session.provided.tools.get(call.block.name)
    call.deadline = deadline_of(
        call.block.name,
        tool.deadline if tool else None,
        session.state.permission_context.deadline,
        _risk(session, call, tool),
    )


def _risk(session: SessionState, call: OpenCall, tool: ToolDescriptor | None) -> RiskFound | None:
    """Of what a person decides on; how long an outside system takes is no matter of risk, nor looks anybody at what the
    session answers itself."""
    if call.waits_for != "person" or tool is None or tool.inside:
        return None
    risk = risk_of(session.state.permission_context, call.analysis)
    return risk.value if risk else None


def _decided(session: SessionState, entry: e.HumanDecided) -> None:
    for decision in entry.decisions:
        call = session.current.calls[decision.call_id]
        call.approver = entry.approver
        note_decision(session, call, decision, entry)
        if decision.allow:
            _approve(session, call, decision, entry)
        else:
            call.reason = decision.reason
            session.current.rejected = True
            close(session, call, denied_by_person(call.block, decision.reason, entry.approver), entry)
        if decision.rules:
            taken = accepted(decision.rules, entry.approver, decision.reason, entry.at)
            take_rules(session, added(session.state.permission_context.rules, taken, entry.at))
            # Accepted with one call of a list, a rule may answer the others: whoever accepts it sees them too.
            judge_again(session)


def judge_again(session: SessionState) -> None:
    """What people are asked about: whether they still have to be."""
    for call in session.current.calls.values():
        call.judged = 0 if call.state is ToolCallState.ASKING else call.judged


def _approve(session: SessionState, call: OpenCall, decision: e.DecisionGiven, entry: e.HumanDecided) -> None:
    """An edit is another call: who makes it is the first to approve that one, and it is judged before a second may."""
    call.approvals = approvals_with(session, call, decision, entry.approver, entry.key)
    call.approved = len(call.approvals) >= session.state.permission_context.approvers(call.block.name)
    tool = session.provided.tools.get(call.block.name)
    if tool is not None:
        call.approved_terms = terms(tool, session.permission)
    if not call.approved and not is_edit(call, decision):
        return
    call.state, call.approved_analysis, call.judged = ToolCallState.PENDING, call.analysis, 0
    if decision.input is not None and decision.input != call.input:
        call.input, call.analysis_stale, call.approved_analysis = decision.input, True, None
        # What its server was answered was about the call as it was.
        call.unchanged = call.asked = None
        session.keep_unmarked(call.block.id, "")
    if is_too_old(call.analyzed_at, entry.at):
        call.analysis_stale = True


def _returned(session: SessionState, entry: e.ToolReturned) -> None:
    count(session, entry.sampled)
    if entry.cwd is not None:
        session.state.tool_context.cwd = entry.cwd
    if (connection := entry.result.metadata.get(CONNECTION)) and (server := server_of(entry.result.name)):
        known = session.state.tool_context.mcp_connections
        session.state.tool_context.mcp_connections = {**known, server: str(connection)}
    if entry.result.metadata.get(TOOLS_CHANGED) and (server := server_of(entry.result.name)):
        session.provided.outdated = tuple(dict.fromkeys((*session.provided.outdated, server)))
    call = session.current.calls[entry.result.id]
    name = call.block.name
    if not session.state.tainted:
        session.state.tainted = brings_in(session.provided.tools.get(name), call.analysis, name, outside=entry.outside)
    call.response = "" if entry.outside or _is_others_word(session, call) else response_in(entry.result)
    for other in session.current.calls.values():
        if entry.cwd is not None or (other.analysis.before and not call.analysis.read_only):
            other.analysis_stale = True
    close(session, call, entry.result, entry, entry.digest, entry.tokens)


def _is_others_word(session: SessionState, call: OpenCall) -> bool:
    """Of servers, and of tools that bring in what others wrote: none of them may speak as the agent."""
    tool = session.provided.tools.get(call.block.name)
    return tool is None or tool.untrusted or call.block.name.startswith(MCP)


def _unsettled(session: SessionState, entry: e.CallUnsettled) -> None:
    call = session.current.calls[entry.call_id]
    call.analysis, call.analyzed_at, call.state = entry.analysis, entry.at, ToolCallState.PENDING
    call.analysis_stale, call.approved, call.approvals, call.changed = False, False, (), entry.reason
    call.analyzed = False
    call.times_unsettled += 1
    if entry.input is not None:
        call.unchanged = call.input if call.unchanged is None else call.unchanged
        call.input = entry.input


def close(
    session: SessionState, call: OpenCall, result: ToolResultBlock, entry: e.AnyEntry, digest: str = "", tokens: int = 0
) -> None:
    reply = session.current
    call.state = ToolCallState.FINISHED
    if call.block.name == PLAN_EXIT:  # Those behind it were judged as if the plan were approved.
        judge_again(session)
    message = Msg(
        name=session.spec.name,
        role="assistant",
        content=(result,),
        id=reply.reply_id,
        created_at=iso(entry.at),
    )
    session.append((message,), digest, tokens)
    reminder_state.note_call(session, call.block, result)
    if result.state is not ToolResultState.UNKNOWN:
        session.keep_unmarked(result.id, "")
    else:
        runs_on = isinstance(entry, e.ToolReturned) and entry.runs_on
        notification_state.begin_unknown_outcome(session, call, result, entry.at, runs_on=runs_on)
    if all(other.state is ToolCallState.FINISHED for other in reply.calls.values()):
        reply.response = next((other.response for other in reply.calls.values() if other.response), "")
        reply.calls = {}
        reply.cur_iter += 1
        reminder_state.note_turn(session)
        session.append(tuple(session.context.deferred))
        session.context.deferred = []


def apply_server_question(session: SessionState, entry: InputEntry) -> None:
    match entry:
        case InputAsked():
            count(session, entry.sampled)
            call = session.current.calls[entry.call_id]
            call.asked, call.state, call.reason = entry.asked, ToolCallState.SUBMITTED, in_words(entry.asked)
            begin_to_wait(session, call, entry.at)
            notification_state.begin_notifications(session, [call], entry.seq)
        case InputAnswered():
            _answer_question(session, entry)
        case _ as never:
            assert_never(never)


def _answer_question(session: SessionState, entry: InputAnswered) -> None:
    """Judged again, and not just run: rules may have come while a person thought."""
    call = session.current.calls[entry.call_id]
    if call.asked is None:
        raise ValueError("an answer to a question that was never asked")
    before = call.asked.answers if call.asked.from_start else {}
    answers = {**before, **json.loads(entry.answers)}
    call.asked = call.asked.model_copy(update={"waits": False, "answers": answers})
    call.state, call.judged = ToolCallState.PENDING, 0
    call.analysis_stale |= is_too_old(call.analyzed_at, entry.at)


def apply_deadline(session: SessionState, entry: e.DeadlineReached) -> None:
    notification_state.due(session, entry)
    for due in entry.due:
        call = session.current.calls[due.call_id]
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
            session.calls.expired[due.call_id] = entry.at
            while len(session.calls.expired) > KEPT_REQUESTS:
                del session.calls.expired[next(iter(session.calls.expired))]
            session.current.rejected |= due.waits_for == "person"
            close(session, call, expired(call.block, due), entry)


def apply_session_tool(session: SessionState, entry: InWorkflowEntry) -> None:
    match entry:
        case CallAnswered():
            _answer_call(session, entry)
        case Reminded():
            if session.compaction.changed_at == session.messages_total:
                # These words alone are no reason to compress once more.
                session.compaction.changed_at += len(entry.messages)
            session.context.reminders = ()
            reminder_state.note_warned(session)
            if session.reply is not None:
                session.reply.to_go_on = ""
            session.append(stamped(entry.messages, entry))
        case _ as never:
            assert_never(never)


KEPT_FOUND = 50
"""Tools that a model has looked up: those that it is told of again after a compression."""


def _answer_call(session: SessionState, entry: CallAnswered) -> None:
    if entry.tasks is not None or entry.plans is not None:
        session.state.tasks_context = reminder_state.changed(session.state.tasks_context, entry)
    if entry.plan is not None:
        session.state.take_plan(entry.plan)
        session.rules.changed = entry.seq
        judge_again(session)
    if entry.groups is not None:
        were = (*session.context.shown_groups, *session.state.tool_context.activated_groups)
        unseen = hidden(session.spec.tool_groups, were)
        still = hidden(session.spec.tool_groups, (*were, *entry.groups))
        reminder_state.tell_tools(session, entry, [name for name in unseen if name not in still])
        session.context.shown_groups = tuple(dict.fromkeys(group for group in were if group not in entry.groups))
        session.state.tool_context.activated_groups = entry.groups
    if entry.found:
        before = (name for name in session.state.tool_context.found if name not in entry.found)
        session.state.tool_context.found = (*before, *entry.found)[-KEPT_FOUND:]
    if entry.structured_output is not None:
        session.current.structured_output = entry.structured_output
    subagent_state.stop_subagents(session, entry.unwanted)
    subagent_state.stop_commands(session, entry.unwanted)
    subagent_state.say_later(session, entry.seq, entry.sent)
    close(session, session.current.calls[entry.result.id], entry.result, entry)
    if session.context.reminders:
        session.context.reminders = standing_reminders(session)
    elif entry.groups is not None:
        session.context.reminders = notebook_reminders(session)


KEPT_OUTCOMES = 50
TOO_LATE = "the reply had ended before it was checked"


def apply_signed_decision(session: SessionState, entry: e.UnverifiedEntry) -> None:
    if isinstance(entry, e.DecisionsReceived):
        session.unverified.waiting[entry.seq] = entry
    else:
        session.unverified.waiting.pop(entry.decisions_at, None)
        _note(session, entry.decisions_at, entry.why)


def end_of_reply(session: SessionState) -> None:
    """Nobody waits for them any more."""
    for number in session.unverified.waiting:
        _note(session, number, TOO_LATE)
    session.unverified.waiting = {}


def _note(session: SessionState, number: int, why: str) -> None:
    session.unverified.resolved[number] = why
    while len(session.unverified.resolved) > KEPT_OUTCOMES:
        del session.unverified.resolved[next(iter(session.unverified.resolved))]
