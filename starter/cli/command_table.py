"""The table of all commands: `longhaul --help` is made of it alone, and a command loads its module when it is called.

Most modules load temporalio and half of the product, which takes seconds.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from longhaul.agent.operations.sentences import SENTENCES


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command, or one group of commands, of `longhaul`."""

    name: str
    help: str
    """The first paragraph; what a command's function says in its docstring comes after it."""
    module: str
    """Below `starter/cli`. A group is the module's `group`; a command of its own stands in the module's `commands`."""
    group: bool = False


def _of_operation(name: str, module: str, operation: str = "") -> CommandRow:
    """A command that does what an operation does, and no more."""
    return CommandRow(name, f"{SENTENCES[operation or name]}.", module)


GROUPS: Mapping[str, tuple[CommandRow, ...]] = {
    "Start": (
        CommandRow("dev", "Run a Temporal development server and one worker until Ctrl-C.", "commands.dev"),
        CommandRow(
            "run",
            "Ask for one reply and follow it. Exit 0 done, 3 it waits, 4 the agent failed, 2 bad usage, "
            "130 interrupted.",
            "commands.run",
        ),
        CommandRow("chat", "Talk with an agent. /quit or Ctrl-D leaves, Ctrl-C interrupts.", "commands.chat"),
        CommandRow(
            "trust",
            "Trust a folder's longhaul.toml and agents/ as they are now; after a change you are asked again.",
            "commands.trust",
        ),
        CommandRow(
            "doctor", "Check what is installed, reachable and missing, with the line that fixes it.", "doctor.doctor"
        ),
    ),
    "Look": (
        CommandRow(
            "inbox", "List everything that waits for a person, a line each, the most urgent first.", "commands.views"
        ),
        CommandRow("sessions", "List the open sessions, newest first.", "commands.views"),
        CommandRow(
            "show",
            "Show one session: what the model reads, cost, what it waits for and how to answer; or calls of it in "
            "full.",
            "commands.views",
        ),
        CommandRow(
            "watch",
            "Follow what a session does, with text while it is written. Ctrl-C ends the command, not the session.",
            "commands.views",
        ),
    ),
    "Decide": (
        CommandRow("approve", "Allow calls that wait for a person.", "commands.steering"),
        CommandRow("deny", "Deny calls that wait for a person.", "commands.steering"),
        CommandRow(
            "result",
            "Hand in the result of an external tool, or the answer to an MCP server that asks: by a form, without "
            "--output.",
            "commands.steering",
        ),
        _of_operation("resolve", "commands.steering"),
    ),
    "Steer": (
        CommandRow(
            "say",
            "Send a session a request without waiting for its reply; without a flag the request is queued.",
            "commands.steering",
        ),
        _of_operation("observe", "commands.steering"),
        _of_operation("notify", "commands.steering"),
        _of_operation("interrupt", "commands.steering"),
        _of_operation("stop", "commands.steering", "stop_background"),
        _of_operation("pause", "commands.lifecycle"),
        _of_operation("resume", "commands.lifecycle"),
        _of_operation("step", "commands.lifecycle"),
        _of_operation("compact", "commands.lifecycle"),
        CommandRow(
            "budget",
            "Show a session's budget, what it has spent and has left; raise it, or end a reply that waits for more.",
            "commands.budget",
        ),
    ),
    "Agents and what they know": (
        CommandRow("permission", "What an agent may do without approval.", "commands.permission", group=True),
        CommandRow(
            "rules", "What a session, or all sessions of a user, may do without approval.", "commands.rules", group=True
        ),
        CommandRow("schedule", "Send requests at set times.", "commands.schedule", group=True),
        CommandRow("hub", "Hubs: each member's replies go to the other members.", "commands.hub", group=True),
        CommandRow("memory", "What agents remember about their users.", "commands.memory", group=True),
        CommandRow("knowledge", "Documents that agents may search.", "commands.knowledge", group=True),
        CommandRow(
            "worktree",
            "List, merge or discard the git working trees of sessions, on the machine of the repository.",
            "commands.worktree",
            group=True,
        ),
    ),
    "State and repair": (
        CommandRow("state", "A session's AgentState as JSON.", "commands.state", group=True),
        CommandRow(
            "repair",
            "Replace all attachments and all thinking in a session's context by words.",
            "commands.lifecycle",
        ),
        CommandRow(
            "rescue",
            "Restart a session whose tasks fail for good from its last checkpoint; it is quarantined then.",
            "commands.lifecycle",
        ),
    ),
    "Serve": (
        CommandRow(
            "console",
            "Serve the web console to this machine's browser, without a login, until Ctrl-C.",
            "commands.serve",
        ),
        CommandRow("serve", "Serve sessions by HTTP until Ctrl-C or SIGTERM.", "commands.serve", group=True),
        CommandRow("mcp", "MCP servers that agents use, and Longhaul as one.", "commands.mcp", group=True),
        CommandRow(
            "codec", "Show encrypted sessions in Temporal's Web UI and command line.", "commands.codec", group=True
        ),
    ),
    "Operate": (
        CommandRow("worker", "Run one worker against TEMPORAL_ADDRESS.", "commands.dev"),
        CommandRow("rollout", "Check and promote new versions of the workers.", "commands.rollout", group=True),
        CommandRow("keys", "Keys for encrypted sessions.", "commands.keys", group=True),
    ),
}
"""By title, in the order in which `longhaul --help` lists them."""
COMMANDS = tuple(row for rows in GROUPS.values() for row in rows)
_GROUP_OF = {row.name: title for title, rows in GROUPS.items() for row in rows}
_ROWS = {row.name: row for row in COMMANDS}


class TableGroup(TyperGroup):
    """`longhaul` itself: lists the rows, and loads the command that is called."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        self.commands = LoadedCommands()

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(_ROWS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """For a list: name and help, of which nothing is loaded."""
        del ctx
        row = _ROWS.get(cmd_name)
        return None if row is None else TyperCommand(row.name, help=row.help, rich_help_panel=_GROUP_OF[row.name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """For a call."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.commands[name], rest


class LoadedCommands(MutableMapping[str, Any]):
    """By name, each loaded when it is looked up: who makes the reference of them looks up all."""

    def __init__(self) -> None:
        self._loaded = dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load(_ROWS[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_ROWS)

    def __len__(self) -> int:
        return len(_ROWS)


def load(row: CommandRow) -> Any:
    """The command, or the group, as Typer calls it."""
    module = import_module(f"longhaul.starter.cli.{row.module}")
    if row.group:
        command: Any = typer.main.get_group(module.group)
        command.name = row.name
    else:
        command = typer.main.get_group(module.commands).commands[row.name]
    command.help = "\n\n".join(filter(None, (row.help, command.help)))
    return command
