"""The commands about long-term memories, with their flags: memory list, memory delete."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="What agents remember of their users.", no_args_is_help=True)

Whose = Annotated[str | None, typer.Option("--user", help="Whose memories; else those of sessions without a user.")]
AgentName = Annotated[str | None, typer.Option("--agent", help="Only those of the agent of this name.")]


@app.command("list")
def listed(
    *,
    user: Whose = None,
    agent: AgentName = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    as_json: options.AsJson = False,
) -> None:
    """List memories, the newest first.

    Example: longhaul memory list --user ana
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import memory

    leave_by(lambda: memory.listed(Screen(as_json=as_json), user, agent, limit))


@app.command()
def delete(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="As `memory list` shows them.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All of the user's, or of that agent's.")] = False,
    user: Whose = None,
    agent: AgentName = None,
    as_json: options.AsJson = False,
) -> None:
    """Delete memories of one user, for good.

    Example: longhaul memory delete 12 15 --user ana
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import memory

    leave_by(lambda: memory.delete(Screen(as_json=as_json), ids or [], user, agent, every=every))
