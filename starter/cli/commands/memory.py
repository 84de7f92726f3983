"""`longhaul memory`: memories of one user, as the operator of this machine's store lists and deletes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from longhaul.starter import render
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.settings import Settings
from longhaul.starter.visible import one_line
from longhaul.stores.memories.memories import Memories, MemoryOwner
from longhaul.stores.memories.open_memories import open_memories

group = options.SubjectCommands(no_args_is_help=True)

Whose = Annotated[str | None, typer.Option("--user", help="The user; default: sessions without a user.")]
AgentName = Annotated[str | None, typer.Option("--agent", help="Only those of the agent of this name.")]


@group.command("list")
async def list_memories(
    screen: Screen,
    *,
    user: Whose = None,
    agent: AgentName = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
) -> int:
    """List memories, the newest first.

    Example: longhaul memory list --user ana
    """
    async with _opened() as memories:
        found = await memories.list_memories(MemoryOwner(user, agent), limit)
    screen.document({"memories": [asdict(each) for each in found]})
    for each in found:
        told = f"{render.when(each.at)}  {one_line(each.agent)}, {one_line(each.session_id)}"
        screen.show_fields(Text(each.id, "bold"), Text(told, "dim"))
        screen.show_folded(Text(f"  {one_line(each.text)}"))
    if not found:
        screen.show(Text(f"there are no memories of {_whose(user, agent)}"))
    return Exit.DONE


@group.command()
async def delete(
    screen: Screen,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="As `memory list` shows them.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="All of the user's, or of that agent's.")] = False,
    user: Whose = None,
    agent: AgentName = None,
) -> int:
    """Delete memories of one user, for good.

    Example: longhaul memory delete 12 15 --user ana
    """
    ids = ids or []
    if every == bool(ids):
        raise Misuse("name the memories by their ids, as `longhaul memory list` shows them, or say --all")
    async with _opened() as memories:
        count = await memories.delete(MemoryOwner(user, agent), None if every else ids)
    if not every and count < len(set(ids)):
        screen.remark(f"longhaul: {len(set(ids)) - count} of these are no memories of {_whose(user, agent)}")
    screen.document({"deleted": count})
    screen.show(Text(f"deleted: {count}"))
    return Exit.DONE if every or count == len(set(ids)) else Exit.TROUBLE


def _whose(user: str | None, agent: str | None) -> str:
    whose = "sessions without a user (see --user)" if user is None else f"the user {user!r}"
    return whose if agent is None else f"{whose} with the agent {agent!r}"


@asynccontextmanager
async def _opened() -> AsyncIterator[Memories]:
    settings = Settings()
    memories = open_memories(settings.memory, settings.data_dir)
    try:
        yield memories
    finally:
        await memories.close()
