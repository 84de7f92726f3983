"""Renders what works beside the replies of a session, as people read it: its sub-agents and its commands."""

import shlex
from collections.abc import Iterator

from rich.text import Text

from longhaul.agent.values.subagents import BackgroundCommand, Child
from longhaul.starter.visible import one_line, visible
from longhaul.workflows.contract import Status


def sub_agents(status: Status) -> Iterator[Text]:
    """Whose sub-agent it is, and its own sub-agents: how each stands, and the command that shows it."""
    if status.path:
        yield Text(f"sub-agent: {one_line(visible(status.path))}", "dim")
    user = ["--user", status.user_id] if status.user_id is not None else []
    for child in status.children:
        how = {"": "at work", "lost": "its session was ended from outside"}.get(child.outcome, child.outcome)
        text = f"sub-agent {child.agent}: {how}{_wanted(child)}"
        yield Text(one_line(visible(text)), "dim" if child.outcome else "yellow")
        shown = shlex.join(["longhaul", "show", child.session_id, *user, "--agent", child.agent])
        yield Text(f"  {one_line(visible(shown))}", "dim")


def commands(status: Status) -> Iterator[Text]:
    """Those that run in the background, and the last words on those that have."""
    for command in status.commands:
        how = {"": "runs in the background", "unknown": "outcome unknown"}.get(command.fate, command.fate)
        text = f"command {command.call_id}: {how}{_wanted(command)}: {command.shown}"
        yield Text(one_line(visible(text)), "dim" if command.fate else "yellow")


def at_work(status: Status) -> Iterator[Text]:
    """What can be stopped by its id."""
    for command in status.commands:
        if not command.fate:
            text = f"in the background {command.call_id}{_wanted(command)}: {command.shown}"
            yield Text(one_line(visible(text)), "yellow")
    for child in status.children:
        if child.background and not child.outcome:
            text = f"in the background {child.call_id}{_wanted(child)}: sub-agent {child.agent}"
            yield Text(one_line(visible(text)), "yellow")


def stopped(ends: dict[str, str]) -> Iterator[Text]:
    """What came of a stop, by call id: how each has ended; empty where nobody has heard of it."""
    for call_id, end in ends.items():
        how = f"is over: {end}" if end else "is told to stop; nobody has heard of its end yet"
        yield Text(one_line(visible(f"{call_id} {how}")), "" if end else "yellow")
    if not ends:
        yield Text("nothing works in the background")


def _wanted(one: BackgroundCommand | Child) -> str:
    """Who has asked for its end; that it was asked for, where that has not come."""
    if one.stopped_by:
        over = one.fate if isinstance(one, BackgroundCommand) else one.outcome
        return f"{'' if over else ', told to stop'} (stopped by {one.stopped_by})"
    return ""
