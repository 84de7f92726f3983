"""`longhaul mcp list`: which MCP servers answer, what they offer, and what would be said of calls."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.text import Text

from longhaul.activities.examine_calls import Rehearsal
from longhaul.activities.mcp.survey import Survey, Surveyed, surveying
from longhaul.agent.permission.rule_matching import rule_names
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.agent_files import find_agent
from longhaul.starter.hosting.secret_values import read_secrets
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line

_STYLES = {"allow": "green", "ask": "yellow", "deny": "red"}


async def listed(screen: Screen, agent: str | None) -> int:
    """The operator's servers, or those of an agent under its rules. Exit code 1 where one does not answer. Raises
    BadAgent, BadMCPSetting, BadSecrets and Untrusted."""
    spec = find_agent(agent) if agent is not None else None
    settings = Settings()
    folder, hidden = settings.data_dir / "mcp", settings.own_places
    async with surveying(settings.mcp, settings.mcp_allow, read_secrets(settings), folder, hidden) as survey:
        found = await _asked(survey, spec)
        permission = spec.permission if spec is not None else PermissionContext()
        told = [await _told(one, permission) for one in found]
    screen.document({"servers": told})
    for server in told:
        screen.show_folded(*_lines(server))
    if not told:
        where = "no [mcp.NAME] stands in the settings" if spec is None else f"the agent {agent!r} names no MCP server"
        screen.show(Text(where))
    return Exit.DONE if all(server["answers"] for server in told) else Exit.TROUBLE


async def _asked(survey: Survey, spec: AgentSpec | None) -> list[Surveyed]:
    clients = survey.operators if spec is None else spec.mcps
    return list(await asyncio.gather(*map(survey.ask, clients)))


async def _told(server: Surveyed, permission: PermissionContext) -> dict[str, Any]:
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
