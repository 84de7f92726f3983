"""Decides about sub-agents: which tasks may start, with which settings and budget, and when a sub-agent has to
report.

A sub-agent never gets what the session that starts it does not have, except what its own agent file says: its
tools and its own allow rules. Budget that is reserved for it can be spent by nobody else, and what is left comes
back at the end of its task; so a tree of sessions spends no more than its root allows.

A workflow of an application that asks for a reply hears of its end by what the session's workflow returns, which costs
nothing, if the session was started for it and nothing keeps the session open; else by a signal. So a queued message, a
pause, an unknown outcome or a command in the background never keeps whoever asked waiting.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError, field_validator

from longhaul.agent import entries as e
from longhaul.agent.decisions.background_commands import wanted_by, woken
from longhaul.agent.decisions.budget_limits import lacking, need_of, seconds_of
from longhaul.agent.decisions.continue_as_new import Load, should_save
from longhaul.agent.decisions.model_turn import is_stopped
from longhaul.agent.journal import Journal
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.ids import child_session, opaque_child_id, reply_id, workflow_id
from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.plain.values import OpenValue, digest_of
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.synthetic_results import lost_child, not_a_call
from longhaul.agent.steps import Act, Book, Checkpoint, Park, Step, Tell
from longhaul.agent.values.budget import NEW_ACCOUNT, NOTHING, Account, Amount, Budget, LimitName, child_key
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultBlock, UserMsg
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import (
    Behavior,
    Confirmation,
    PermissionContext,
    PermissionMode,
    PermissionRule,
    Risk,
    Threshold,
    ToolApproval,
)
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig, ModelConfig, ReActConfig, Secrets
from longhaul.agent.values.spec.workspace import SANDBOXES, Seal, Workspace, branch_of
from longhaul.agent.values.subagents import (
    AGENT,
    LONGEST_TASK_CHARS,
    MOST_LEVELS,
    PROGRAM,
    RUN_PROGRAM,
    Asker,
    Child,
    Parent,
)
from longhaul.agent.values.tool_groups import hidden, in_groups

IDLE_SECONDS = 3_600
"""A sub-agent's session closes an hour after its last work, where its agent file says nothing else."""
Mode = PermissionMode
WITHIN: dict[PermissionMode, frozenset[PermissionMode]] = {
    Mode.BYPASS: frozenset(Mode) - {Mode.DEFAULT},
    Mode.ACCEPT_EDITS: frozenset({Mode.ACCEPT_EDITS, Mode.DONT_ASK, Mode.EXPLORE, Mode.PLAN}),
    Mode.DEFAULT: frozenset({Mode.EXPLORE, Mode.PLAN}),
    Mode.DONT_ASK: frozenset({Mode.EXPLORE}),
    Mode.EXPLORE: frozenset(),
    Mode.PLAN: frozenset(),
}
"""By the mode of the session: those that a sub-agent may have instead, for each allows no more. `default` in an agent
file is what says nothing."""
_POLICIES, _RISKS = ("never", "risky", "always"), (Risk.LOW, Risk.MEDIUM, Risk.HIGH)


def inherited(journal: Journal, own: AgentSpec, call_id: str = "") -> AgentSpec:
    """The settings with which the sub-agent's session of that call begins."""
    above, workspace = journal.spec, _workspace(journal, own.workspace)
    return own.model_copy(
        update={
            **model_of(above, own),
            "system_prompt": f"{own.system_prompt}\n\n{_where(journal)}{_of_its_own(workspace)}",
            "permission": permission(journal, own.permission),
            "secrets": secrets(above.secrets, own.secrets),
            "sandbox": max(above.sandbox, own.sandbox, key=SANDBOXES.index),
            "sandbox_network": _network(above.sandbox_network, own.sandbox_network),
            "middlewares": tuple(dict.fromkeys((*above.middlewares, *own.middlewares))),
            "on_unknown_outcome": "ask" if "ask" in (above.on_unknown_outcome, own.on_unknown_outcome) else "tell",
            **{name: getattr(own, name) or getattr(above, name) for name in ("team", "priority", "fairness_key")},
            "budget": budget(journal, own.budget, call_id),
            "offloader": above.offloader,
            "workspace": workspace,
            "idle_close_seconds": own.idle_close_seconds if says_when_to_close(own) else IDLE_SECONDS,
        }
    )


def _workspace(journal: Journal, own: Workspace | None) -> Workspace:
    """The folder of the session, on the same host; or a working tree of it, where the agent file wants one.

    Below a session in a sandbox it is that sandbox, whatever the agent file says: elsewhere tools run as the worker.
    """
    above, root = journal.spec.workspace, journal.provided.workspace_root
    host = above.host if above is not None else ""
    if above is not None and above.place == "sandbox":
        seal = _narrower(above.seal, own.seal) if own is not None and own.place == "sandbox" else above.seal
        return above.model_copy(update={"root": root or above.root, "seal": seal})
    if own is None:
        place: Literal["local", "shared"] = "local" if host else "shared"
        return Workspace(root=root, place=place, host=host, snapshots=above is not None and above.snapshots)
    return own if own.root else own.model_copy(update={"root": root, "host": own.host or host})


def files_of(journal: Journal, child: Child) -> str:
    """Where to find what a sub-agent has made that can't say it any more; empty where it worked in the same files."""
    own, above = journal.spec.agents.get(child.agent), journal.spec.workspace
    sandboxed = above is not None and above.place == "sandbox"
    if own is None or own.workspace is None or own.workspace.place != "worktree" or sandboxed:
        return ""
    branch = branch_of(child.workflow_id)
    return (
        f" What it had written by then lies on branch {branch}; `longhaul worktree list` says where, if it came so far."
    )


def _narrower(above: Seal, own: Seal) -> Seal:
    names = ("memory_mb", "processes", "file_mb", "workspace_mb")
    limits = {name: (getattr(above, name), getattr(own, name)) for name in names}
    lower = {name: min((one for one in both if one is not None), default=None) for name, both in limits.items()}
    return Seal.model_validate({"network": above.network and own.network, "image": above.image or own.image, **lower})


def _of_its_own(workspace: Workspace) -> str:
    if workspace.place != "worktree":
        return ""
    return (
        " You work in a git working tree of your own: it begins with what was committed, nobody else sees your files, "
        "and they go to the person who merges your branch."
    )


_IDLE: int = AgentSpec.model_fields["idle_close_seconds"].default


def says_when_to_close(own: AgentSpec) -> bool:
    """Whether the agent file of a sub-agent says for how long its session stays open behind its task."""
    return own.idle_close_seconds != _IDLE


def _where(journal: Journal) -> str:
    path = (*(journal.parent.path if journal.parent else ()), journal.spec.name)
    return (
        f"You are a sub-agent of {journal.spec.name!r}, at level {len(path)} of at most {MOST_LEVELS}. Your last "
        "message is all that it reads of your work, so that it has to be whole in itself. Nobody answers questions in "
        "it: where something is unclear, decide, and say what you have assumed."
    )


def model_of(above: AgentSpec, own: AgentSpec) -> dict[str, object]:
    """Fields of the agent's settings: one that names no model has that of the agent above it, called in the same way;
    each knows its profiles."""
    models = {**above.models, **own.models}
    if own.model:
        return {"models": models}
    config = above.llm_config if own.llm_config == ModelConfig() else own.llm_config
    return {"models": models, "model": above.model, "llm_config": config}


def permission(journal: Journal, own: PermissionContext) -> PermissionContext:
    """The user's own rules are not in it: they hold in each session of that user."""
    above = journal.state.permission_context
    return own.model_copy(
        update={
            "mode": mode(journal.state.mode, own.mode),
            "rules": (*_strict(above.rules, journal.state.session_id), *own.rules),
            "working_directories": _common(above.working_directories, own.working_directories),
            "grantable": tuple(each for each in own.grantable if each in above.grantable),
            "tools": _approvals(above.tools, own.tools),
            "confirm": _confirmation(above.confirm, own.confirm),
            "analyzers": tuple(dict.fromkeys((*above.analyzers, *own.analyzers))),
            # Judged by whom the session is judged by, whatever the sub-agent itself is.
            "analyzer_model": above.analyzer_model or (journal.spec.model if above.analyzers else own.analyzer_model),
            "approvals": "signed" if "signed" in (above.approvals, own.approvals) else "any",
            "deadline": own.deadline or above.deadline,
        }
    )


def budget(journal: Journal, own: Budget | None, call_id: str) -> Budget | None:
    """Its own limits; of those that the session has, what is put aside for it."""
    above, account = journal.spec.budget, journal.account or NEW_ACCOUNT
    amount = account.spending.reserved.get(child_key(call_id))
    if above is None or amount is None:
        return own
    mine = {f"max_{name}": limit for name, limit in own.limits()} if own is not None else {}
    for name, limit in above.limits():
        if name == "seconds":
            left = max(limit - seconds_of(account, journal, journal.latest_at), 1.0)
            mine["max_seconds"] = min(mine.get("max_seconds", left), left)
        else:
            mine[f"max_{name}"] = amount.of(name)
    return Budget.model_validate({**mine, "on_exhaustion": (own or above).on_exhaustion})


def mode(above: PermissionMode, own: PermissionMode) -> PermissionMode:
    """In plan mode nothing may change: a sub-agent explores, for its plan would be nobody's to approve."""
    taken = own if own in WITHIN[above] else above
    return Mode.EXPLORE if taken is Mode.PLAN and above is Mode.PLAN else taken


def _strict(rules: Sequence[PermissionRule], session: str) -> tuple[PermissionRule, ...]:
    source = f"session {session}"[:200]
    return tuple(
        rule.model_copy(update={"source": rule.source or source})
        for rule in rules
        if rule.behavior is not Behavior.ALLOW
    )


def _common(above: tuple[str, ...], own: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(folder for folder in own if folder in above) if own else above


def _approvals(above: dict[str, ToolApproval], own: dict[str, ToolApproval]) -> dict[str, ToolApproval]:
    found = dict(own)
    for name, approval in above.items():
        mine = own.get(name)
        found[name] = approval if mine is None or mine.approvers < approval.approvers else mine
    return found


def _confirmation(above: Confirmation, own: Confirmation) -> Confirmation:
    stricter = max(above, own, key=lambda one: _POLICIES.index(one.policy))
    risky: list[Threshold] = [each.threshold for each in (above, own) if each.policy == "risky"]
    threshold: Threshold = min(risky, key=_RISKS.index) if risky else above.threshold
    return Confirmation(policy=stricter.policy, threshold=threshold)


def secrets(above: Secrets | None, own: Secrets | None) -> Secrets | None:
    """By name: of those that the session has, those that the agent file asks for; all where it says nothing."""
    if own is None or above is None:
        return above
    tools = {tool: tuple(name for name in names if name in above.names) for tool, names in own.tools.items()}
    allow = tuple(name for name in own.allow if name in above.names)
    return Secrets(allow=allow, tools=tools, mark=above.mark or own.mark)


def _network(above: bool | None, own: bool | None) -> bool | None:  # noqa: FBT001  the setting itself
    return False if False in (above, own) else above


class GivenTask(OpenValue):
    """Arguments of a call of `Agent`."""

    agent: str
    task: str = Field(min_length=1, max_length=LONGEST_TASK_CHARS)
    run_in_background: bool = False
    answer_schema: dict[str, Any] | None = None

    @field_validator("answer_schema")
    @classmethod
    def _can_be_asked_for(cls, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        if schema is not None and (why := why_unusable(schema)):
            raise ValueError(why)
        return schema


class _GivenProgram(OpenValue):
    """Arguments of a call of `RunProgram`."""

    program: str = Field(min_length=1, max_length=LONGEST_TASK_CHARS)


def _task_of(call: OpenCall) -> GivenTask:
    """Raises ValidationError."""
    if call.block.name == RUN_PROGRAM:
        return GivenTask(agent=PROGRAM, task=_GivenProgram.model_validate_json(call.input).program)
    return GivenTask.model_validate_json(call.input)


def _agent_of(call: OpenCall, journal: Journal) -> AgentSpec:
    """The settings of the sub-agent that the call starts, as its file says. That of a program has what the session has,
    its rules too: each call within is judged as the session's own would be."""
    spec = journal.spec
    if call.block.name != RUN_PROGRAM:
        return spec.agents[_task_of(call).agent]
    tools = journal.provided.tools
    unseen = hidden(spec.tool_groups, journal.state.tool_context.activated_groups)
    left_out = {*unseen, *(name for name, tool in tools.items() if tool.inside or tool.child)}
    allow = [rule for rule in journal.state.permission_context.rules if rule.behavior is Behavior.ALLOW]
    return AgentSpec(
        name=PROGRAM,
        custom_agent=PROGRAM,
        tools=tuple(name for name in (*spec.tools, *in_groups(spec.tool_groups)) if name not in left_out),
        mcps=spec.mcps,
        permission=journal.state.permission_context.model_copy(update={"rules": tuple(allow)}),
        react_config=ReActConfig(max_iters=MOST_PROGRAM_STEPS),
        context_config=ContextConfig(tool_result_limit=PROGRAM_RESULT_TOKENS),
        skills=spec.skills,
    )


MOST_PROGRAM_STEPS = 1_000
"""Calls that a program may make, one after the other."""
PROGRAM_RESULT_TOKENS = 100_000
"""What is cut of a result is not there for the program either; a model never reads it."""


class Beginning(NamedTuple):
    """A sub-agent's session as it is started."""

    child: Child
    parent: Parent
    spec: AgentSpec
    request: e.RequestAccepted


def why_not(call: OpenCall, tool: ToolDescriptor, journal: Journal) -> str:
    """Why this task can't be given to a sub-agent; empty when it can, or when the call is of another tool."""
    if not tool.child:
        return ""
    try:
        task = _task_of(call)
    except ValidationError as error:
        return what_is_wrong(error)
    if call.block.name != RUN_PROGRAM and task.agent not in journal.spec.agents:
        return f"there is no agent {task.agent[:100]!r}; {did_you_mean(task.agent, journal.spec.agents)}"
    if task.run_in_background and journal.parent is not None:
        return "run_in_background: a sub-agent waits for those that it starts; leave it out"
    if _count(call, journal) > journal.spec.max_children:
        return f"this reply has started as many sub-agents as it may, and that is {journal.spec.max_children}"
    return ""


def _count(call: OpenCall, journal: Journal) -> int:
    """Which sub-agent of its reply this one would be: from 1 on, in the order of the calls."""
    reply = journal.current
    turn = [one for one in reply.calls if reply.calls[one].block.name in (AGENT, RUN_PROGRAM)]
    earlier = [one for one in journal.children.values() if one.reply_id == reply.reply_id and one.call_id not in turn]
    return len(earlier) + turn.index(call.block.id) + 1


def beginning(journal: Journal, call: OpenCall, own_workflow: str) -> Beginning:
    """What a call's sub-agent begins with. Its session follows from this one and the call: it is started once."""
    task = _task_of(call)
    call_id, state = call.block.id, journal.state
    session = child_session(state.session_id, call_id)
    workflow = opaque_child_id(own_workflow, call_id) or workflow_id(task.agent, state.user_id, session)
    reply, own = journal.current.reply_id, _agent_of(call, journal)
    by_result = not says_when_to_close(own)
    message = UserMsg(journal.spec.name, task.task)
    parent = Parent(
        workflow_id=own_workflow,
        session_id=state.session_id,
        call_id=call_id,
        path=(*(journal.parent.path if journal.parent else ()), journal.spec.name),
        tainted=state.tainted,
        allotted=_allotted(journal, call_id),
        ends_at=journal.latest_at + round(own.task_seconds * 1000) if own.task_seconds else 0,
        by_result=by_result,
    )
    request = e.RequestAccepted(
        request_id=call_id,
        reply_id=reply_id(workflow, call_id),
        body_digest=digest_of([message.model_dump(mode="json")]),
        messages=(message,),
        structured_schema=task.answer_schema,
    )
    child = Child(
        call_id=call_id,
        agent=task.agent,
        session_id=session,
        workflow_id=workflow,
        reply_id=reply,
        at=journal.latest_at,
        background=task.run_in_background,
        by_result=by_result,
    )
    return Beginning(child, parent, inherited(journal, own, call_id), request)


def _allotted(journal: Journal, call_id: str) -> tuple[LimitName, ...]:
    """The limits of which something is put aside for it here."""
    budget, account = journal.spec.budget, journal.account
    if budget is None or account is None or child_key(call_id) not in account.spending.reserved:
        return ()
    return tuple(name for name, _ in budget.limits())


def to_tell(journal: Journal, load: Load) -> Tell | None:
    """What sub-agents have not heard yet: that nobody waits for them any more, or that everything stands still."""
    at_work = [one for one in journal.children.values() if not one.outcome and one.call_id not in load.running]
    if not at_work:
        return None
    reply, calls = journal.reply, journal.open_calls
    stopped = reply is not None and is_stopped(journal, reply)
    if over := [one.call_id for one in at_work if not one.stopped and _is_over(journal, one, calls, stopped=stopped)]:
        return Tell("interrupt", tuple(over))
    if addressed := [one.call_id for one in at_work if one.words and not one.stopped]:
        return Tell("observe", tuple(addressed))
    if raised := [one.call_id for one in at_work if one.raises and not one.stopped]:
        return Tell("budget", tuple(raised))
    paused = journal.pause is not None
    if others := [one.call_id for one in at_work if not one.stopped and one.paused is not paused]:
        return Tell("pause" if paused else "resume", tuple(others))
    return None


def _is_over(journal: Journal, child: Child, calls: dict[str, OpenCall], *, stopped: bool) -> bool:
    if child.background:
        return child.unwanted or journal.interrupted
    call = calls.get(child.call_id)
    return call is None or call.state is ToolCallState.FINISHED or stopped


def owes_report(journal: Journal) -> bool:
    """Whether this is a sub-agent whose task has ended, and whoever gave it is to be told by operation."""
    return _is_due(journal) and not ends_with_report(journal)


def ends_with_report(journal: Journal) -> bool:
    """Whether it is to close now, and what its workflow returns is the report: nobody waits for anything else of it,
    and it can be written down."""
    parent = journal.parent
    return parent is not None and parent.by_result and _is_due(journal) and is_done(journal)


def is_done(journal: Journal) -> bool:
    """Whether nobody waits for anything else of this session, and it can be written down."""
    return (
        journal.reply is None
        and not journal.requests.queue
        and journal.compaction.asked is None
        and journal.pause is None
        and journal.keeping.failed is None
        and not any(unknown_outcome.open for unknown_outcome in journal.unknown_outcomes.values())
        and not at_work(journal)
        and all(command.fate for command in journal.commands.values())
    )


def says_at_its_end(journal: Journal) -> bool:
    """Whether what its workflow returns is the report: also that of an operation which found nobody, for whoever asks
    when this session has closed."""
    return ends_with_report(journal) or (journal.parent is not None and bool(journal.parent.error))


def _is_due(journal: Journal) -> bool:
    """Whether the end of the task has not been reported in any way."""
    return journal.parent is not None and not journal.parent.told and task_reply(journal) is not None


def task_reply(journal: Journal) -> str | None:
    """The reply that has ended and is to be reported, or that nobody was there to hear of; None while there is none."""
    parent = journal.parent
    if parent is None or (parent.told and not parent.error) or parent.call_id not in journal.requests.handled:
        return None
    reply = journal.requests.handled[parent.call_id].reply_id
    return reply if reply in journal.requests.finished else None


def answered(journal: Journal) -> Asker | None:
    """The first asker whose request has ended, or was refused, and who was not told; None: there is none."""
    return next((asker for asker in journal.askers.values() if not asker.error and _has_ended(journal, asker)), None)


def to_tell_asker(journal: Journal) -> Asker | None:
    """The same, of those who are told by a signal."""
    asker = answered(journal) if journal.askers else None
    return None if asker is None or closes_with_answer(journal) else asker


def closes_with_answer(journal: Journal) -> bool:
    """Whether the session is to close now, and what its workflow returns is the answer."""
    waiting = [asker for asker in journal.askers.values() if not asker.error]
    return (
        len(waiting) == 1
        and waiting[0].by_result
        and not waiting[0].refused
        and _has_ended(journal, waiting[0])
        and is_done(journal)
        and not journal.incarnation.quarantine
        and not any(known.owed for known in journal.hubs.values())
    )


def _has_ended(journal: Journal, asker: Asker) -> bool:
    handled = journal.requests.handled.get(asker.request_id)
    return bool(asker.refused) or (handled is not None and handled.reply_id in journal.requests.finished)


def at_work(journal: Journal) -> tuple[Child, ...]:
    """Sub-agents whose end is not known."""
    return tuple(child for child in journal.children.values() if not child.outcome)


def started(journal: Journal, child: Child) -> tuple[e.AnyEntry, ...]:
    """That it is there; the call of one in the background has its result with that, if it has none yet."""
    started = e.ChildStarted(child=child)
    call = journal.open_calls.get(child.call_id)
    if not child.background or call is None or call.state is ToolCallState.FINISHED:
        return (started,)
    text = (
        f"The sub-agent {child.agent!r} works on it in the background; its id is {child.call_id!r}. Its last message "
        "comes by itself when it is ready. Go on with other work, or end your turn: you are woken then."
    )
    return (started, e.ToolReturned(result=ToolResultBlock(id=child.call_id, name=call.block.name, output=text)))


def last_word(child: Child, how: str, words: str, own_workflow: str) -> e.RequestAccepted | e.Observed:
    """What a sub-agent in the background says last; one that somebody has stopped begins no reply with it."""
    head = f"The sub-agent {child.agent!r} (id {child.call_id!r}) has ended its task in the background: {how}."
    message = hint_message(f"{head}{wanted_by(child.stopped_by)}\n{words}", "sub-agent")
    if child.stopped_by:
        return e.Observed(messages=(message,))
    return woken(f"end of sub-agent {child.call_id}", message, own_workflow)


def not_started(call: OpenCall, child: Child, why: str) -> e.ToolReturned:
    """The result of a call whose sub-agent could not be started."""
    return e.ToolReturned(result=not_a_call(call.block, f"session {child.session_id!r} could not be started: {why}"))


def lost(journal: Journal, child: Child, why: str, own_workflow: str = "") -> tuple[e.AnyEntry, ...]:
    """The end of a sub-agent whose session is gone; nothing for one that has said how it ended."""
    known = journal.children.get(child.call_id, child)
    if known.outcome:
        return ()
    ended = e.ChildEnded(call_id=child.call_id, outcome="lost", session_id=child.session_id)
    call = journal.open_calls.get(child.call_id)
    if known.is_heard and (call is None or call.state is ToolCallState.FINISHED):
        words = f"Its session {child.session_id!r} was ended from outside ({why}). It may have done part of its task."
        words += files_of(journal, known)
        return (ended, last_word(known, "lost", words, own_workflow))
    if call is None or call.state is ToolCallState.FINISHED:
        return (ended,)
    return (ended, e.ToolReturned(result=lost_child(call.block, child, why, files_of(journal, known))))


LEAST = Amount(tokens=1, nanos=1, calls=1, steps=2)
"""Steps: one of the sub-agent, and the one in which it is started."""


def put_aside_first(step: Step, journal: Journal, load: Load) -> Step:
    """The step, or what a session with a budget does before it."""
    if not isinstance(step, Act):
        return step
    budget, account = journal.spec.budget, journal.account or NEW_ACCOUNT
    call = None if budget is None else _next_task(step, journal, account)
    if budget is None or call is None:
        return step
    if account.question:
        return Checkpoint() if should_save(journal, load) else Park("person")
    # What the last call of the reply will take is kept, so that it can be made.
    kept = need_of(journal, journal.spec.model) if budget.on_exhaustion == "summarise" else NOTHING
    if not (lacks := lacking(budget, account, journal, load.at, LEAST + kept)):
        return Book(e.BudgetAllotted(call_id=call.block.id, amount=_amount(call, journal, budget, account, kept)))
    if budget.on_exhaustion == "ask" and not account.end:
        return Book(e.BudgetExhausted(lacks=lacks, then="ask"))
    why = f"the budget of this session does not do for a sub-agent: {'; '.join(lack.told() for lack in lacks)}"
    return Book(e.ToolReturned(result=not_a_call(call.block, why)))


def _next_task(step: Act, journal: Journal, account: Account) -> OpenCall | None:
    """The first sub-agent that would be started and that nothing is put aside for."""
    for call_id in step.call_ids:
        call = journal.open_calls[call_id]
        if _starts_child(call, journal) and child_key(call_id) not in account.spending.reserved:
            return call
    return None


def _starts_child(call: OpenCall, journal: Journal) -> bool:
    tool = journal.provided.tools.get(call.block.name)
    return tool is not None and tool.child


def _amount(call: OpenCall, journal: Journal, budget: Budget, account: Account, kept: Amount) -> Amount:
    """As its own table says, as far as it is there; where that says nothing, an even share of what is left, for the
    sub-agents of this turn that are still to be started and for the session itself."""
    own = _agent_of(call, journal).budget
    left = budget.rest(account.spending.held + kept, account.steps + journal.current.cur_iter + 1)
    parts = 1 + sum(_is_to_begin(one, journal, account) for one in journal.open_calls.values())
    wanted = own.rest(NOTHING, 0) if own is not None else NOTHING
    return Amount(
        tokens=_share(wanted.tokens, left.tokens, parts),
        nanos=_share(wanted.nanos, left.nanos, parts),
        calls=_share(wanted.calls, left.calls, parts),
        steps=_share(wanted.steps, left.steps, parts),
    )


def _share(wanted: int, left: int, parts: int) -> int:
    """At least one where one is left."""
    return min(wanted or -(-left // parts), left)


def _is_to_begin(call: OpenCall, journal: Journal, account: Account) -> bool:
    open_still = call.state is not ToolCallState.FINISHED and call.block.id not in journal.children
    return open_still and _starts_child(call, journal) and child_key(call.block.id) not in account.spending.reserved
