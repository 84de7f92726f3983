"""Finds the session that a command means and its settings: flags before the agent file before the settings.

`--set KEY=VALUE` says how the models of one session are called, beside what its agent says.
"""

import getpass
import json
import secrets
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.plain.errors import LonghaulError, what_is_wrong
from longhaul.agent.plain.text import did_you_mean, nearest
from longhaul.agent.values.budget import Budget
from longhaul.agent.values.permission import PermissionMode
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, find_of_all
from longhaul.starter.client.agent_files import FOLDER, agent_names, find_agent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.connection.storage_places import as_workers_see, roots_of_workers
from longhaul.starter.visible import one_line


def fields_of(pairs: Sequence[str]) -> dict[str, JsonValue]:
    """By field of [model_config]; None is its default. Raises Misuse."""
    given: dict[str, JsonValue] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise Misuse(f"--set: {pair!r} is no KEY=VALUE; write it as max_output_tokens=16000")
        name = key.strip()
        if name not in ModelConfig.model_fields:
            raise Misuse(f"--set: model_config has no {name!r}; {did_you_mean(name, ModelConfig.model_fields)}")
        given[name] = _value(value.strip())
    return given


def called_otherwise(config: ModelConfig, given: Mapping[str, JsonValue]) -> ModelConfig:
    """Raises Misuse."""
    try:
        return config.called_otherwise(given)
    except ValidationError as error:
        raise Misuse(f"--set: {what_is_wrong(error)}") from None


def _value(text: str) -> JsonValue:
    """A number where it is one, None for none and for `null`, else the text: an effort, a model's name, an address."""
    try:
        number: JsonValue = json.loads(text)
    except ValueError:
        return text or None
    if number is None:
        return None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else text


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the flags say; None where they say nothing."""

    agent: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    workspace: str | None = None
    mode: str | None = None
    max_iters: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    priority: int | None = None
    called: tuple[str, ...] = ()
    """How its models are called, as KEY=VALUE."""


async def open_session(app: Longhaul, wishes: Wishes) -> Session:
    """The session to talk to, new or there already. One that runs is told about another model or mode. Raises
    Misuse."""
    spec = spec_of(wishes, app.settings.model)
    session = app.session(wishes.session or fresh_name(), user=wishes.user, agent=spec)
    if wishes.session is not None and (there := await _of_that_name(app, session, wishes)) is not None:
        await adjust(app, there, wishes)
        return there
    _mention_missing_file(wishes.agent)
    if not (spec.model or spec.custom_agent):
        raise Misuse(
            "no model is set; name one with --model (like anthropic:NAME, openai:NAME or scripted:FILE), "
            "as `model` in the agent file, or as LONGHAUL_MODEL"
        )
    if wishes.workspace is None and spec.workspace is not None:
        return session
    return app.session(session.id, user=wishes.user, agent=await in_workspace(app, spec, wishes.workspace))


async def agent_to_begin(app: Longhaul, wishes: Wishes) -> AgentSpec:
    """The agent of sessions that begin later, with model and workspace. Raises Misuse, BadAgent and Untrusted."""
    return await in_workspace(app, with_model(spec_of(wishes, app.settings.model)), wishes.workspace)


def with_model(spec: AgentSpec) -> AgentSpec:
    """The same. Raises Misuse where it has none, and needs one."""
    if not (spec.model or spec.custom_agent):
        raise Misuse("no model is set; name one with --model, as `model` in the agent file, or as LONGHAUL_MODEL")
    return spec


async def in_workspace(app: Longhaul, spec: AgentSpec, given: str | None) -> AgentSpec:
    """In the folder that is given, else in that of the agent, else in the one that we stand in. Raises Misuse."""
    if given is None and spec.workspace is not None:
        return spec
    roots = await roots_of_workers(app.client, app.settings.task_queue)
    return spec.model_copy(update={"workspace": workspace(given, roots, app.settings.project)})


async def _of_that_name(app: Longhaul, session: Session, wishes: Wishes) -> Session | None:
    """The session that is meant: the very one if it is open, or, where nobody has named an agent, the only open one of
    this name, and without a model too, which would say how a new one is set up, the one that has closed last. None when
    there is none. Raises Misuse when several are open."""
    if await _is_open(app, session):
        return session
    if wishes.agent is not None:
        return None
    found = await find_of_all(app, Name(session.id, wishes.user), closed=wishes.model is None)
    return found and await as_it_was(app, found)


async def as_it_was(app: Longhaul, session: Session) -> Session | None:
    """The session with what it begins again with, should it have closed; None where nobody can tell that any more."""
    if await _is_open(app, session):
        return session
    try:
        return app.session(session.id, user=session.user, agent=await session.settings())
    except LonghaulError:
        return None


def _mention_missing_file(agent: str | None) -> None:
    """A misspelt name, or another folder than was thought, must not go unseen: the agent would be another one."""
    if agent is None or agent.endswith(".toml") or agent in agent_names():
        return
    meant = nearest(agent, agent_names())
    what = (
        f"LONGHAUL_TRUST=0 leaves out {str(file)!r}"
        if (file := FOLDER / f"{agent}.toml").is_file()
        else (f"there is no {str(file)!r} in this folder")
    )
    print(
        f"longhaul: {what}; {agent!r} is the default agent under that name"
        + (f"; did you mean {meant!r}?" if meant else ""),
        file=sys.stderr,
    )


def fresh_name() -> str:
    """Readable, and sorted by time: `0412-1530-9f3a2c`."""
    return f"{datetime.now(UTC).astimezone():%m%d-%H%M}-{secrets.token_hex(3)}"


def whoami() -> str:
    """Who decides at this terminal, for the record."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in some containers
        return ""


def decider(named: str | None) -> str:
    """Who decides: whom `--as` names, else the user of this terminal."""
    return whoami() if named is None else named


def spec_of(wishes: Wishes, default_model: str) -> AgentSpec:
    """The agent of a new session; its model and workspace may be missing. Raises Misuse, BadAgent and Untrusted."""
    spec = find_agent(wishes.agent or "longhaul")
    changes: dict[str, Any] = {"model": located(wishes.model or spec.model or default_model)}
    if (mode := _mode(wishes)) is not None:
        changes["permission"] = spec.permission.model_copy(update={"mode": mode})
    if wishes.called:
        changes["llm_config"] = called_otherwise(spec.llm_config, fields_of(wishes.called))
    if wishes.max_iters is not None:
        changes["react_config"] = spec.react_config.model_copy(update={"max_iters": wishes.max_iters})
    if (limits := _limits(wishes)) is not None:
        changes["budget"] = Budget.model_validate({**(spec.budget.model_dump() if spec.budget else {}), **limits})
    if wishes.priority is not None:
        changes["priority"] = wishes.priority
    return spec.model_copy(update=changes)


def _limits(wishes: Wishes) -> dict[str, float] | None:
    limits = {"max_cost": wishes.max_cost, "max_tokens": wishes.max_tokens}
    return {name: limit for name, limit in limits.items() if limit is not None} or None


def _mode(wishes: Wishes) -> PermissionMode | None:
    if wishes.mode is None:
        return None
    try:
        return PermissionMode(wishes.mode)
    except ValueError:
        known = ", ".join(mode.value for mode in PermissionMode)
        raise Misuse(f"--mode: there is no mode {wishes.mode!r}; there are: {known}") from None


def located(model: str) -> str:
    """A script is read by the worker, which may run in another folder."""
    kind, _, file = model.partition(":")
    return f"{kind}:{Path(file).expanduser().resolve()}" if kind == "scripted" else model


def workspace(given: str | None, roots: Set[str], project: str) -> Workspace | None:
    """The folder that is meant, by its path on workers with these roots; None = one of the session's own, for they
    don't see the one that we stand in. Raises Misuse."""
    folder = Path(given or ".").expanduser().absolute()
    seen = as_workers_see(folder, roots, project)
    if seen is not None and not folder.is_dir():
        raise Misuse(f"--workspace: there is no directory {str(folder)!r}; make it first")
    if seen is None and given is None:
        where = one_line(str(folder))
        print(
            f"longhaul: workers run elsewhere, in a container or on another machine, and don't see {where!r}: "
            "a new session works in an empty folder of its own there; mount this one for them and set "
            "LONGHAUL_PROJECT to it, or name a folder of theirs by --workspace",
            file=sys.stderr,
        )
        return None
    # One that only workers see is theirs to look for: they say what is missing.
    return Workspace(root=str(seen or folder))


def _is_workspace(root: str, wanted: Workspace) -> bool:
    return root in (wanted.root, str(Path(wanted.root).resolve()))


async def _is_open(app: Longhaul, session: Session) -> bool:
    try:
        described = await app.client.get_workflow_handle(session.workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return described.status is WorkflowExecutionStatus.RUNNING


async def adjust(app: Longhaul, session: Session, wishes: Wishes) -> None:
    """Tell a session that is there of the model and the mode that the flags say. Raises Misuse for another folder."""
    if _limits(wishes) is not None:
        flags = " and ".join(f"--{name.replace('_', '-')}" for name in _limits(wishes) or ())
        raise Misuse(
            f"{flags}: session {session.id!r} has started; `longhaul budget {session.id}` shows what it may spend, and "
            "raises it"
        )
    if wishes.priority is not None:
        raise Misuse(f"--priority: session {session.id!r} has started, and keeps its priority; leave the flag out")
    if wishes.model is wishes.mode is wishes.workspace is None and wishes.max_iters is None and not wishes.called:
        return
    status = await session.status()
    roots = await roots_of_workers(app.client, app.settings.task_queue)
    wanted = workspace(wishes.workspace, roots, app.settings.project) if wishes.workspace is not None else None
    if wanted is not None and not _is_workspace(status.workspace_root, wanted):
        raise Misuse(
            f"session {session.id!r} works in {status.workspace_root!r}, not in {wanted.root!r}; "
            "leave --workspace out, or take another session"
        )
    changes: dict[str, Any] = {}
    if wishes.model is not None and located(wishes.model) != status.model:
        changes["model"] = located(wishes.model)
    if (mode := _mode(wishes)) is not None and mode.value != status.mode:
        changes["mode"] = mode.value
    if wishes.called:
        changes["model_config"] = fields_of(wishes.called)
    if wishes.max_iters is not None:
        changes["max_iters"] = wishes.max_iters
    if changes:
        await session.configure(**changes, by=whoami())
