"""The verdict on each call: allow, ask, deny or run elsewhere, from the call's analysis, the rules and people's earlier
decisions.

It also decides which verdicts, approvals and facts are too old to count, which later calls of a turn are asked
about early, and which quick reads run within the session's own workflow task. While such reads run, the session
handles no signal; so they are few and quick, and a read that passes a bound gets an activity of its own.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

from longhaul.agent.decisions import background_commands
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.decisions.session_tools.waiting_tools import SLEEP_TOOL, WAIT_FOR_TOOL
from longhaul.agent.decisions.structured_output import ruling_on
from longhaul.agent.decisions.subagent_start import why_not
from longhaul.agent.entries import CallRuling, ModelSaid, Ruling
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import (
    PermissionDecision,
    analyzers_of,
    decide_call,
    decide_plan_tool,
    decide_planning,
    stricter,
    warning_of,
)
from longhaul.agent.permission.preview import preview
from longhaul.agent.permission.rulebook import in_force
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.reducer.agent_state import OpenCall, effect_by, effect_of
from longhaul.agent.reducer.approval_digest import essence, material, terms
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock, ToolCallState
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, Effect, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, is_too_old
from longhaul.agent.values.plans import PLAN_ENTER, PLAN_EXIT, plan_file
from longhaul.agent.values.subagents import AGENT, RUN_PROGRAM
from longhaul.agent.values.tool_groups import hidden, why_hidden


def must_examine(call: OpenCall, journal: Journal, at_ms: int = 0) -> bool:
    """Whether the findings may no longer hold. Unknown tools and broken arguments need no findings."""
    tool = journal.provided.tools.get(call.block.name)
    if tool is None or (call.analysis.arguments_error and not (call.edited and call.analysis_stale)):
        return False
    # Once for the same findings: one that gave nothing counts as unknown. Not for what the session answers itself.
    return (
        call.analysis_stale
        or has_aged(call, at_ms)
        or (not (tool.inside or call.analyzed) and bool(analyzers_of(journal.permission)))
    )


def has_aged(call: OpenCall, at_ms: int) -> bool:
    """Whether an approved call has waited so long for its turn that its findings are made again before it runs."""
    return call.approved and is_too_old(call.analyzed_at, at_ms)


def must_judge_again(call: OpenCall, journal: Journal, at_ms: int) -> bool:
    """Whether other rules hold now than when the verdict was made, by an entry or by the passing of time."""
    now, then = in_force(journal.permission, at_ms or journal.latest_at), in_force(journal.permission, call.judged_at)
    return call.judged < journal.rules.changed or now.rules != then.rules


def findings_hold(call: OpenCall) -> bool:
    """An approval is for what was seen: it is void when fresh findings differ in what the call would touch."""
    seen = call.approved_analysis
    return call.approved and seen is not None and essence(call.analysis) == essence(seen)


def terms_hold(call: OpenCall, journal: Journal, tool: ToolDescriptor) -> bool:
    return call.approved_terms in ("", terms(tool, journal.permission))


MAX_UNSETTLED = 5
"""A world that keeps changing under a call would otherwise have it decided on for ever."""


def judge(call: OpenCall, journal: Journal, at_ms: int = 0, *, planning: bool | None = None) -> CallRuling:
    """The verdict on a call whose facts are fresh, by the rules that count at this time (0: at the newest entry's).
    `planning`: whether plan mode is on then; if not said, as it is now."""
    planning = journal.state.planning if planning is None else planning
    tool = journal.provided.tools.get(call.block.name)
    if tool is None:
        unseen = hidden(journal.spec.tool_groups, journal.state.tool_context.activated_groups)
        known = ", ".join(sorted(name for name in journal.provided.tools if name not in unseen)) or "none"
        return _ruling(call, "invalid", f"there is no tool {call.block.name!r}; the tools are: {known}")
    if (wrong := _why_not_now(call, journal, planning=planning)) or (wrong := call.analysis.arguments_error):
        return _ruling(call, "invalid", wrong)
    if tool.inside and tool.name == GENERATE_RESPONSE:
        return ruling_on(call)
    if call.times_unsettled > MAX_UNSETTLED:
        return _ruling(call, "invalid", f"each time it was about to run, something had changed: {call.changed}")
    decision = _permission(call, journal, tool, at_ms, planning=planning)
    match decision.behavior:
        case Behavior.DENY:
            return _ruling(call, "deny", decision.reason)
        case Behavior.ASK if not (findings_hold(call) and terms_hold(call, journal, tool)):
            # The verdict that a person is asked, with all that they will be shown.
            suggested = decision.suggested_rules
            return CallRuling(
                call_id=call.block.id,
                behavior="ask",
                reason=f"{_why_again(call)}{decision.reason}",
                suggested_rules=suggested,
                seen=material(call, tool, journal.permission, suggested),
                preview=preview(call.input, call.analysis, effect_of(call, tool), tool.name if tool.inside else ""),
            )
        case _:
            ruling = _ruling(call, "external" if tool.external else "allow", decision.reason)
            if decision.behavior is Behavior.ALLOW and decision.confined:
                ruling = ruling.model_copy(update={"confined": decision.confined})
            warning = "" if call.approved or tool.inside else warning_of(journal.permission, call.analysis)
            return ruling.model_copy(update={"warning": warning}) if warning else ruling


def _why_not_now(call: OpenCall, journal: Journal, *, planning: bool) -> str:
    """Why a tool that there is can't be called as things stand."""
    groups, activated = journal.spec.tool_groups, journal.state.tool_context.activated_groups
    if call.block.name in hidden(groups, activated):
        return why_hidden(call.block.name, groups, activated)
    tool = journal.provided.tools[call.block.name]
    if tool.inside and tool.name == PLAN_EXIT and not planning:
        return "plan mode is not on, so there is nothing to leave"
    return (
        ""
        if call.analysis.arguments_error
        else why_not(call, tool, journal) or background_commands.why_not(call, tool, journal)
    )


def _permission(
    call: OpenCall, journal: Journal, tool: ToolDescriptor, at_ms: int, *, planning: bool
) -> PermissionDecision:
    state, root = journal.state, journal.provided.workspace_root
    context = in_force(journal.permission, at_ms or journal.latest_at)
    if not planning:
        decision = decide_call(tool, call.input, call.analysis, context, root)
    else:
        file = plan_file(state.plan_mode_context, root)
        decision = decide_planning(tool, call.input, call.analysis, context, root, file)
    decision = decide_plan_tool(tool, context.mode, decision)
    return decision if tool.inside else stricter(decision, context, call.analysis)


_ASKED_BEFORE = "What it would touch has changed since it was asked about. "


def _why_again(call: OpenCall) -> str:
    if call.changed:
        return f"It was about to run when something had changed: {call.changed}. "
    if not call.approved and call.approvals:
        who = ", ".join(one.approver for one in call.approvals)
        return f"{who} has changed the arguments and approves them so; somebody else has to approve them too. "
    if not call.approved:
        return _ASKED_BEFORE if call.asked_at and call.state is not ToolCallState.ASKING else ""
    if findings_hold(call):
        return "The rules, or the tool itself, have changed since it was approved. "
    return "What it would touch has changed since it was approved. "


def _ruling(call: OpenCall, behavior: Ruling, reason: str) -> CallRuling:
    return CallRuling(call_id=call.block.id, behavior=behavior, reason=reason)


def with_own_call_ids(said: ModelSaid, journal: Journal) -> ModelSaid:
    """The entry as it came, or with new ids where one is empty, can't name a task or was used before.

    Results, decisions and effects are found by call id, so a repeated id would answer the wrong call. A changed
    message has no digest any more: it travels inline until a model call has seen it.
    """
    used = set[str]()
    analysis, unmarked = dict(said.analysis), dict(said.unmarked)
    content: list[ContentBlock] = []
    for block in said.message.content:
        if isinstance(block, ToolCallBlock) and (_is_unusable(block) or block.id in used or journal.had_call(block.id)):
            own = f"{'call' if _is_unusable(block) else block.id}-{journal.seq + 1}-{len(content)}"
            while own in used or journal.had_call(own):
                own += "-"
            if block.id in analysis and block.id not in used:
                analysis[own] = analysis[block.id]
            if block.id in unmarked and block.id not in used:
                unmarked[own] = unmarked.pop(block.id)
            block = block.model_copy(update={"id": own})  # noqa: PLW2901  the renamed one takes its place
        if isinstance(block, ToolCallBlock):
            used.add(block.id)
        content.append(block)
    if tuple(content) == said.message.content:
        return said
    message = said.message.model_copy(update={"content": tuple(content)})
    return said.model_copy(
        update={
            "message": message,
            "analysis": analysis,
            "unmarked": unmarked,
            "digest": "",
            "context_digest": "",
            "context_length": 0,
        }
    )


def _is_unusable(block: ToolCallBlock) -> bool:
    """Whether nothing can be called by its id: a sub-agent names its task by it in operations, to which more is no
    name.

    Gateways have written thousands of characters into ids, so other tools' ids stay: the model may need them back.
    """
    return not block.id or (block.name in (AGENT, RUN_PROGRAM) and len(block.id) > MAX_ID_CHARS)


ASKED_AT_ONCE = 32
"""Calls of one list. A person reads no more of them together, and what a turn can hold would not fit into one answer of
the query `pending`."""
ASKED_CHARS = 300_000
"""Of the arguments of one list: what stands behind them is asked about when these are answered."""
_SLEEPS = frozenset({SLEEP_TOOL.name, WAIT_FOR_TOOL.name})
_PLANNING = {PLAN_ENTER: True, PLAN_EXIT: False}


def ahead_of(batch: Sequence[OpenCall], journal: Journal) -> list[OpenCall]:
    """The calls behind the batch, up to what can be foreseen: nothing behind a sleep, for that is of another day, nor
    behind what the session answers itself at once."""
    if not batch or any(_comes_first(call, journal) for call in _with_in_workflow_tools(batch, journal)):
        return []
    calls = list(journal.open_calls.values())
    behind = calls[list(journal.open_calls).index(batch[-1].block.id) + 1 :]
    if not behind:
        return []
    listed, chars = list[OpenCall](), sum(len(call.input) for call in batch)
    for call in takewhile(lambda call: not _ends_list(call, journal), behind):
        chars += len(call.input)
        if len(batch) + len(listed) >= ASKED_AT_ONCE or chars > ASKED_CHARS:
            break
        listed.append(call)
    return listed


def is_unsettled(call: OpenCall, journal: Journal, at_ms: int) -> bool:
    """Of a call whose turn has not come: whether it is to be judged (again), so that a person sees what holds now."""
    match call.state:
        case ToolCallState.PENDING:
            # Of what nobody was asked about, nobody has to hear that it has changed: it is looked at in its turn.
            changed = call.analysis_stale and call.asked_at > 0
            return not call.judged or changed or must_judge_again(call, journal, at_ms)
        case ToolCallState.ASKING:
            return is_outdated(call)
        case _:
            return False


def unjudged(batch: Sequence[OpenCall]) -> list[OpenCall]:
    """Those whose turn it is and whose verdict is missing, or is not to be shown to a person any more."""
    may_be = [call for call in batch if call.state in (ToolCallState.PENDING, ToolCallState.ASKING)]
    return [call for call in may_be if call.state is ToolCallState.PENDING or is_outdated(call)]


def is_outdated(call: OpenCall) -> bool:
    """Of a call that a person is asked about: whether what they see may not be what there is, or what somebody said of
    another call of the list may have answered it."""
    return call.state is ToolCallState.ASKING and (call.analysis_stale or not call.judged)


def ruling_ahead(call: OpenCall, journal: Journal, at_ms: int) -> CallRuling:
    """The verdict on a call whose turn has not come: that a person is asked, or nothing yet. What is allowed, denied or
    external now is so for good when the calls before it have their results: they may change what it would touch."""
    ruling = judge(call, journal, at_ms, planning=_will_plan(call, journal))
    return _without_repeating(call, ruling) if _asks(ruling) else CallRuling(call_id=call.block.id, behavior="later")


def judged(call: OpenCall, journal: Journal, at_ms: int) -> CallRuling:
    """The verdict on a call whose turn it is."""
    return _without_repeating(call, judge(call, journal, at_ms))


def _without_repeating(call: OpenCall, ruling: CallRuling) -> CallRuling:
    """Who is asked already is not asked again about the same thing."""
    if call.state is ToolCallState.ASKING and _asks(ruling) and ruling.seen == call.seen:
        return CallRuling(call_id=call.block.id, behavior="stands", reason=ruling.reason)
    return ruling


def _asks(ruling: CallRuling) -> bool:
    return ruling.behavior == "ask"


def _comes_first(call: OpenCall, journal: Journal) -> bool:
    """Of a call whose turn it is: whether it has its result before anybody is asked about those behind it."""
    if not _is_inside(call, journal):
        return False
    if call.block.name in _SLEEPS:
        return True
    return call.state is not ToolCallState.ASKING and not _asks(judge(call, journal))


def _ends_list(call: OpenCall, journal: Journal) -> bool:
    return _is_inside(call, journal) and call.block.name in _SLEEPS


def _will_plan(call: OpenCall, journal: Journal) -> bool:
    """Whether plan mode is on when it is this call's turn, if the calls before it come to what they ask for."""
    before = takewhile(lambda other: other.block.id != call.block.id, journal.open_calls.values())
    changes = [other.block.name for other in before if _is_inside(other, journal) and other.block.name in _PLANNING]
    return _PLANNING[changes[-1]] if changes else journal.state.planning


def _with_in_workflow_tools(batch: Sequence[OpenCall], journal: Journal) -> list[OpenCall]:
    """By name first: a turn may have hundreds of calls of one tool."""
    tools = journal.provided.tools
    names = {call.block.name for call in batch}
    inside = [name for name in names if name in tools and tools[name].inside]
    return [call for call in batch if call.block.name in inside] if inside else []


def _is_inside(call: OpenCall, journal: Journal) -> bool:
    tool = journal.provided.tools.get(call.block.name)
    return tool is not None and tool.inside and call.state is not ToolCallState.FINISHED


MOST_FUSED = 8
"""Calls of a turn: what they answer leaves the worker together, with the task."""
LONGEST_RULES_CHARS = 2_000
"""Of rules that are sent with each model call."""
RULE_CHARS = 60
"""Of a rule beside its pattern."""
LONGEST_INPUT_CHARS = 2_000
"""Longer arguments may have to be asked of the session, which can't answer in the midst of its task."""


def are_fused(ready: Sequence[OpenCall], journal: Journal, load: Load) -> bool:
    """Whether these allowed calls, which nobody has started, are to be read so: all of their turn or none."""
    turn = journal.current.calls
    return (
        not journal.spec.host
        and journal.spec.seal is None
        and not load.running
        and len(ready) == len(turn) <= MOST_FUSED
        and all(_may_be(call, journal, load) for call in ready)
    )


def rules_sent_along(journal: Journal, unfused: Collection[str]) -> PermissionContext | None:
    """What the reads of the next answer are judged by beforehand, where its activity may make them at once; None where
    it may not. What they answer counts only when the session itself allows them."""
    spec = journal.spec
    if unfused or journal.state.planning:
        return None
    if spec.host or spec.seal or spec.secrets or spec.postprocess:
        return None
    if not any(tool.quick for tool in journal.provided.tools.values()):
        return None  # each model call would carry them for nothing
    context = in_force(journal.permission, journal.latest_at)
    length = sum(len(rule.rule_content or "") + RULE_CHARS for rule in context.rules)
    return None if analyzers_of(context) or length > LONGEST_RULES_CHARS else context


def are_read_along(
    calls: Sequence[ToolCallBlock],
    analysis: Mapping[str, CallAnalysis],
    tools: Mapping[str, ToolDescriptor],
    context: PermissionContext,
    root: str,
) -> bool:
    """Whether all calls of an answer are quick reads that are allowed by these rules, and can be made together."""
    known = [tools[call.name] for call in calls if call.name in tools]
    return (
        len({call.id for call in calls if call.id}) == len(known) == len(calls)
        and (len(known) == 1 or all(tool.concurrency_safe for tool in known))
        and all(
            call.id in analysis and _is_let_read(call, analysis[call.id], tool, context, root)
            for call, tool in zip(calls, known, strict=True)
        )
    )


def _is_let_read(
    call: ToolCallBlock, analysis: CallAnalysis, tool: ToolDescriptor, context: PermissionContext, root: str
) -> bool:
    if not _is_quick_read(tool, analysis, call.input):
        return False
    decision = stricter(decide_call(tool, call.input, analysis, context, root), context, analysis)
    return decision.behavior is Behavior.ALLOW and not decision.confined


def _may_be(call: OpenCall, journal: Journal, load: Load) -> bool:
    tool = journal.provided.tools[call.block.name]
    goes_its_own_way = tool.name in load.unfused or call.block.id in load.tried
    return not goes_its_own_way and _is_quick_read(tool, call.analysis, call.input)


def _is_quick_read(tool: ToolDescriptor, analysis: CallAnalysis, arguments: str) -> bool:
    reads = tool.quick and not tool.external and effect_by(analysis, tool) is Effect.READ
    return reads and len(arguments) <= LONGEST_INPUT_CHARS
