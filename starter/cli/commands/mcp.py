"""The commands about MCP, with their flags: mcp list, mcp serve."""
# ruff: noqa: PLC0415  As in main.py: what a command needs is loaded when it runs.

from typing import Annotated

import typer

from longhaul.starter.cli import options
from longhaul.starter.cli.options import leave_by

app = typer.Typer(help="MCP servers that agents use, and Longhaul as one.", no_args_is_help=True)


@app.command("list")
def listed(*, agent: options.Agent = None, as_json: options.AsJson = False) -> None:
    """Say which MCP servers answer here, what they offer, and what the permission rules would say.

    Asks the servers of this folder's settings, or, with --agent, those of an agent under its rules: from here, as a
    worker would. Exit 0 when all answer, 1 when one does not.

    Example: longhaul mcp list --agent keeper
    """
    from longhaul.starter.cli.terminal.screen import Screen
    from longhaul.starter.cli.work import mcp_servers

    leave_by(lambda: mcp_servers.listed(Screen(as_json=as_json), agent))


@app.command()
def serve(
    *,
    scopes: Annotated[
        str, typer.Option(help="What its client may do, of read, answer, approve, edit, steer and admin.")
    ] = "read,answer,approve,edit,steer,admin",
) -> None:
    """Be an MCP server over stdin and stdout: its client begins sessions, asks, reads and decides.

    It acts for whoever starts it. By HTTP the same is at /mcp of `longhaul serve`.

    Example: longhaul mcp serve --scopes read,answer
    """
    from longhaul.starter.cli.work import mcp_serve

    leave_by(lambda: mcp_serve.serve(scopes))
