"""Finds what a sub-agent works with: its own settings as its agent file says them, and of the session that starts it
all that binds: rules that deny or ask, the mode, analyzers, approvals, secrets, sandbox, middlewares.

Rules of this file: nothing here may give a sub-agent what the session that starts it does not have, but for what the
agent file itself says of it: its tools, and its own allow rules.
"""

from collections.abc import Sequence
from typing import Literal

from longhaul.agent.decisions.budget import seconds_of
from longhaul.agent.record import Record
from longhaul.agent.values.amount import child_key
from longhaul.agent.values.approvals import ToolApproval
from longhaul.agent.values.budget import NEW_ACCOUNT, Budget
from longhaul.agent.values.permission import (
    Behavior,
    Confirmation,
    PermissionContext,
    PermissionMode,
    PermissionRule,
    Risk,
)
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig, Secrets
from longhaul.agent.values.spec.workspace import Seal, Workspace, branch_of
from longhaul.agent.values.subagents import MOST_LEVELS, Child

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
_SANDBOXES: tuple[Literal["off", "proven", "all"], ...] = ("off", "proven", "all")
_POLICIES = ("never", "risky", "always")
_RISKS = (Risk.LOW, Risk.MEDIUM, Risk.HIGH)


def inherited(record: Record, own: AgentSpec, call_id: str = "") -> AgentSpec:
    """The settings with which the sub-agent's session of that call begins."""
    above, workspace = record.spec, _workspace(record, own.workspace)
    return own.model_copy(
        update={
            **model_of(above, own),
            "system_prompt": f"{own.system_prompt}\n\n{_where(record)}{_of_its_own(workspace)}",
            "permission": permission(record, own.permission),
            "secrets": secrets(above.secrets, own.secrets),
            "sandbox": max(above.sandbox, own.sandbox, key=_SANDBOXES.index),
            "sandbox_network": _network(above.sandbox_network, own.sandbox_network),
            "middlewares": tuple(dict.fromkeys((*above.middlewares, *own.middlewares))),
            "on_doubt": "ask" if "ask" in (above.on_doubt, own.on_doubt) else "tell",
            "team": own.team or above.team,
            "budget": budget(record, own.budget, call_id),
            "offloader": above.offloader,
            "workspace": workspace,
            "idle_close_seconds": own.idle_close_seconds if says_when_to_close(own) else IDLE_SECONDS,
        }
    )


def _workspace(record: Record, own: Workspace | None) -> Workspace:
    """The folder of the session, on the same host; or a working tree of it, where the agent file wants one.

    Below a session in a sandbox it is that sandbox, whatever the agent file says: elsewhere tools run as the worker.
    """
    above, root = record.spec.workspace, record.provided.workspace_root
    host = above.host if above is not None else ""
    if above is not None and above.place == "sandbox":
        seal = _narrower(above.seal, own.seal) if own is not None and own.place == "sandbox" else above.seal
        return above.model_copy(update={"root": root or above.root, "seal": seal})
    if own is None:
        place: Literal["local", "shared"] = "local" if host else "shared"
        return Workspace(root=root, place=place, host=host, snapshots=above is not None and above.snapshots)
    return own if own.root else own.model_copy(update={"root": root, "host": own.host or host})


def files_of(record: Record, child: Child) -> str:
    """Where to find what a sub-agent has made that can't say it any more; empty where it worked in the same files."""
    own, above = record.spec.agents.get(child.agent), record.spec.workspace
    boxed = above is not None and above.place == "sandbox"
    if own is None or own.workspace is None or own.workspace.place != "worktree" or boxed:
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
        "and they go to whoever merges your branch."
    )


_IDLE: int = AgentSpec.model_fields["idle_close_seconds"].default


def says_when_to_close(own: AgentSpec) -> bool:
    """Whether the agent file of a sub-agent says for how long its session stays open behind its task."""
    return own.idle_close_seconds != _IDLE


def _where(record: Record) -> str:
    path = (*(record.parent.path if record.parent else ()), record.spec.name)
    return (
        f"You are a sub-agent of {record.spec.name!r}, at level {len(path)} of at most {MOST_LEVELS}. Your last "
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


def permission(record: Record, own: PermissionContext) -> PermissionContext:
    """The user's own rules are not in it: they hold in each session of that user."""
    above = record.state.permission_context
    return own.model_copy(
        update={
            "mode": mode(record.state.mode, own.mode),
            "rules": (*_strict(above.rules, record.state.session_id), *own.rules),
            "working_directories": _common(above.working_directories, own.working_directories),
            "grantable": tuple(each for each in own.grantable if each in above.grantable),
            "tools": _approvals(above.tools, own.tools),
            "confirm": _confirmation(above.confirm, own.confirm),
            "analyzers": tuple(dict.fromkeys((*above.analyzers, *own.analyzers))),
            # Judged by whom the session is judged by, whatever the sub-agent itself is.
            "analyzer_model": above.analyzer_model or (record.spec.model if above.analyzers else own.analyzer_model),
            "approvals": "signed" if "signed" in (above.approvals, own.approvals) else "any",
            "deadline": own.deadline or above.deadline,
        }
    )


def budget(record: Record, own: Budget | None, call_id: str) -> Budget | None:
    """Its own limits; of those that the session has, what is put aside for it."""
    above, account = record.spec.budget, record.account or NEW_ACCOUNT
    amount = account.spending.reserved.get(child_key(call_id))
    if above is None or amount is None:
        return own
    mine = {f"max_{name}": limit for name, limit in own.limits()} if own is not None else {}
    for name, limit in above.limits():
        if name == "seconds":
            left = max(limit - seconds_of(account, record, record.latest_at), 1.0)
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
    policy = max(above.policy, own.policy, key=_POLICIES.index)
    risky = [each.threshold for each in (above, own) if each.policy == "risky"]
    threshold = min(risky, key=_RISKS.index) if risky else above.threshold
    return Confirmation(policy=policy, threshold=threshold)


def secrets(above: Secrets | None, own: Secrets | None) -> Secrets | None:
    """By name: of those that the session has, those that the agent file asks for; all where it says nothing."""
    if own is None or above is None:
        return above
    tools = {tool: tuple(name for name in names if name in above.names) for tool, names in own.tools.items()}
    allow = tuple(name for name in own.allow if name in above.names)
    return Secrets(allow=allow, tools=tools, mark=above.mark or own.mark)


def _network(above: bool | None, own: bool | None) -> bool | None:  # noqa: FBT001  the setting itself
    return False if False in (above, own) else above
