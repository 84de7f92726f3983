"""Which session, set up how: flags before the agent file before the settings."""

import getpass
import secrets
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from agent.permission.rules import PermissionMode
from agent.settings import AgentSpec, Workspace
from starter.agents import FOLDER, find_agent
from starter.cli.leaving import Misuse
from starter.client import Longhaul
from starter.session import Session


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the flags say; None where they say nothing."""

    agent: str | None = None
    model: str | None = None
    session: str | None = None
    user: str | None = None
    workspace: str | None = None
    mode: str | None = None


async def open_session(app: Longhaul, wishes: Wishes) -> Session:
    """The session to talk to, new or running. One that runs is told about another model or mode. Raises Misuse."""
    spec = spec_of(wishes, app.settings.model)
    session = app.session(wishes.session or fresh_name(), user=wishes.user, agent=spec)
    if wishes.session is not None and await _is_open(app, session):
        await _adjust(session, wishes)
    elif not spec.model:
        raise Misuse(
            "no model is set; name one with --model (like anthropic:NAME, openai:NAME or scripted:FILE), "
            "as `model` in the agent file, or as LONGHAUL_MODEL"
        )
    else:
        _mention_missing_file(wishes.agent)
    return session


def _mention_missing_file(agent: str | None) -> None:
    """A misspelt name, or another folder than was thought, must not go unseen: the agent would be another one."""
    if agent is None or agent.endswith(".toml") or (file := FOLDER / f"{agent}.toml").is_file():
        return
    print(
        f"longhaul: there is no {str(file)!r} in this folder; {agent!r} is the default agent under that name",
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


def spec_of(wishes: Wishes, default_model: str) -> AgentSpec:
    """The agent of a new session. Its model may still be missing. Raises Misuse and BadAgent."""
    spec = find_agent(wishes.agent or "longhaul")
    changes: dict[str, Any] = {"model": _located(wishes.model or spec.model or default_model)}
    if wishes.workspace is not None or spec.workspace is None:
        changes["workspace"] = Workspace(root=str(_directory(wishes.workspace or ".")))
    if (mode := _mode(wishes)) is not None:
        changes["permission"] = spec.permission.model_copy(update={"mode": mode})
    return spec.model_copy(update=changes)


def _mode(wishes: Wishes) -> PermissionMode | None:
    if wishes.mode is None:
        return None
    try:
        return PermissionMode(wishes.mode)
    except ValueError:
        known = ", ".join(mode.value for mode in PermissionMode)
        raise Misuse(f"--mode: there is no mode {wishes.mode!r}; there are: {known}") from None


def _located(model: str) -> str:
    """A script is read by the worker, which may run in another folder."""
    kind, _, file = model.partition(":")
    return f"{kind}:{Path(file).expanduser().resolve()}" if kind == "scripted" else model


def _directory(given: str) -> Path:
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise Misuse(f"--workspace: there is no directory {str(path)!r}; make it first")
    return path


async def _is_open(app: Longhaul, session: Session) -> bool:
    try:
        described = await app.client.get_workflow_handle(session.workflow_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return described.status is WorkflowExecutionStatus.RUNNING


async def _adjust(session: Session, wishes: Wishes) -> None:
    if wishes.model is wishes.mode is wishes.workspace is None:
        return
    status = await session.status()
    if wishes.workspace is not None and (wanted := _directory(wishes.workspace).resolve()) != Path(
        status.workspace_root
    ):
        raise Misuse(
            f"session {session.id!r} works in {status.workspace_root!r}, not in {str(wanted)!r}; "
            "leave --workspace out, or take another session"
        )
    changes: dict[str, Any] = {}
    if wishes.model is not None and _located(wishes.model) != status.model:
        changes["model"] = _located(wishes.model)
    if (mode := _mode(wishes)) is not None and mode.value != status.mode:
        changes["mode"] = mode.value
    if changes:
        await session.configure(**changes, by=whoami())
