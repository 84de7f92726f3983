"""`longhaul mcp`: which MCP servers answer, what they offer, and what would be said of calls; and Longhaul as one."""

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.mcp.survey import Surveyed, surveying
from longhaul.agent.permission.rule_matching import rule_names
from longhaul.agent.values.permission import PermissionContext
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_start import whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import agent_names, find_agent
from longhaul.starter.client.client import Longhaul
from longhaul.starter.folder_trust import trusted
from longhaul.starter.serve.requests import Served
from longhaul.starter.serve.tokens import BadTokens, Caller, scopes_of
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line
from longhaul.starter.worker_host.own_process import keep_to_itself
from longhaul.starter.worker_host.secret_values import read_secrets

_STYLES = {"allow": "green", "ask": "yellow", "deny": "red"}


group = options.SubjectCommands(no_args_is_help=True)


@group.command("list")
async def list_servers(screen: Screen, *, agent: options.Agent = None) -> int:
    """Show which MCP servers answer here, what they offer, and what the permission rules would say.

    Asks the servers of this folder's settings, or with --agent those of an agent under its rules, from here, as a
    worker would. Exit 0 when all answer, 1 when one does not.

    Example: longhaul mcp list --agent keeper
    """
    spec = find_agent(agent) if agent is not None else None
    settings = Settings()
    folder, hidden = settings.data_dir / "mcp", settings.own_places
    async with surveying(settings.mcp, settings.mcp_allow, read_secrets(settings), folder, hidden) as survey:
        clients = survey.operators if spec is None else spec.mcps
        found = await asyncio.gather(*map(survey.ask, clients))
        permission = spec.permission if spec is not None else PermissionContext()
        told = [await _describe_server(one, permission) for one in found]
    screen.document({"servers": told})
    for server in told:
        screen.show_folded(*_lines(server))
    if not told:
        where = "the settings have no [mcp.NAME]" if spec is None else f"the agent {agent!r} names no MCP server"
        screen.show(Text(where))
    return Exit.DONE if all(server["answers"] for server in told) else Exit.TROUBLE


async def _describe_server(server: Surveyed, permission: PermissionContext) -> dict[str, Any]:
    return {
        "name": server.name,
        "address": server.address,
        "is_stateful": server.is_stateful,
        "trusted": server.trusted,
        "answers": server.toolbox is not None,
        "told": list(server.told),
        "notes": list(server.notes),
        "tools": [tool async for tool in _tools(server, permission)],
    }


async def _tools(server: Surveyed, permission: PermissionContext) -> Any:
    if server.toolbox is None:
        return
    rehearsal = Rehearsal(server.toolbox, permission, Path.cwd().resolve())
    for about in server.toolbox.descriptors(server.toolbox.names):
        tool = server.toolbox.get(about.name)
        if tool is not None:
            verdict = await rehearsal.decide_on_any(tool)
            named = [
                rule for rule in permission.rules if rule.tool_name in rule_names(about.name) and rule.rule_content
            ]
            yield {
                "name": about.name,
                "description": about.description,
                "effect": about.effect.value,
                "read_only": about.read_only,
                "behavior": verdict.behavior,
                "reason": verdict.reason,
                "notes": list(getattr(tool, "notes", ())),
                "by_arguments": [f"{rule.behavior.value} {rule.spelt()}" for rule in named],
            }


def _lines(server: dict[str, Any]) -> Iterator[Text]:
    count = len(server["tools"])
    kept = ", keeps state" if server["is_stateful"] else ""
    state = (f"{count} tool{'' if count == 1 else 's'}{kept}", "green") if server["answers"] else ("no answer", "red")
    address = f" ({one_line(server['address'])})" if server["address"] else ""
    yield Text.assemble((server["name"], "bold"), address, ": ", state)
    for sentence in server["told"]:
        yield Text(f"  {one_line(sentence)}", style="yellow")
    for note in server["notes"]:
        yield Text(f"  {one_line(note)}", style="yellow")
    for tool in server["tools"]:
        yield Text.assemble(
            f"  {one_line(tool['name'])}  {tool['effect']}, ",
            (tool["behavior"], _STYLES.get(tool["behavior"], "")),
            *(f"; {one_line(rule)}" for rule in tool["by_arguments"]),
            (f"  {one_line(tool['description'])[:80]}", "dim"),
        )
        for note in tool["notes"]:
            yield Text(f"    {one_line(note)}", style="yellow")


@group.command("serve")
async def serve_mcp(
    *,
    scopes: Annotated[
        str, typer.Option(help="What its client may do: read, answer, approve, edit, steer, admin.")
    ] = "read,answer,approve,edit,steer,admin",
) -> int:
    """Serve MCP over stdin and stdout: the client starts sessions, asks, reads and decides.

    It acts for the person who starts it. `longhaul serve` offers the same over HTTP, at /mcp.

    Example: longhaul mcp serve --scopes read,answer
    """
    if find_spec("mcp") is None:
        raise Misuse("MCP is not installed here: pip install 'longhaul-agents[mcp]'")
    from longhaul.starter.serve.mcp_server import serve_lines, server_for  # noqa: PLC0415  needs the extra

    try:
        caller = Caller(None, whoami(), scopes_of(scopes, "--scopes"))
    except BadTokens as error:
        raise Misuse(str(error)) from error
    keep_to_itself()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    if agent_names():
        trusted(Path.cwd())  # now, while somebody sees what is said: later a call would fail for it
    # Nothing is kept here that could be lost, and a thread that waits for a line can't be told to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    async with Longhaul.connect(settings=Settings()) as app:
        await serve_lines(server_for(Served(app=app, tokens=None, local=caller, hosts=frozenset()), caller))
    return Exit.DONE
