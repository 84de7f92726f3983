"""The commands about a session as a whole: compact, pause, repair, rescue, resume, step."""

from typing import Annotated

import typer
from rich.text import Text

from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.cli import options
from longhaul.starter.cli.session_lookup import Name, connected, find_any, opened
from longhaul.starter.cli.session_start import decider, whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line

commands = options.SubjectCommands()


@commands.command()
async def compact(
    screen: Screen,
    name: Name,
    *,
    trigger: Annotated[
        float | None,
        typer.Option(help="Do it above this share of the window, this time only; default: as the agent says."),
    ] = None,
    reserve: Annotated[float | None, typer.Option(help="Keep this share of the newest messages as they are.")] = None,
    instructions: Annotated[str, typer.Option(help="What the summary must keep.")] = "",
) -> int:
    """Exit 0 shorter, or below the threshold; 3 it happens when the session continues; 4 it failed.
    Example: longhaul compact nightly --trigger 0.3 --reserve 0.05 --instructions "Keep the ticket numbers."
    """
    async with opened(name) as session:
        before = await session.status()
        ratios = {"trigger_ratio": trigger, "reserve_ratio": reserve}
        config: ContextConfig | None = None
        if wished := {field: ratio for field, ratio in ratios.items() if ratio is not None}:
            own = (await session.settings()).context_config
            config = ContextConfig.model_validate({**own.model_dump(), **wished})
        compacted = await session.compress_context(config, instructions=instructions, by=whoami())
        after = await session.status()
    screen.document(
        {
            "session": session.id,
            "compacted": compacted,
            "tokens_before": before.context_tokens,
            "context_tokens": after.context_tokens,
            "context_length": after.context_length,
            "compressions": after.compressions,
        }
    )
    if compacted:
        line = f"{session.id}: {before.context_tokens:,} tokens became {after.context_tokens:,}"
    else:
        line = f"{session.id}: nothing to do at {after.context_tokens:,} of {after.context_length:,} tokens"
    screen.show(Text(one_line(line)))
    return 0


@commands.command()
async def pause(
    screen: Screen,
    name: Name,
    *,
    why: Annotated[str, typer.Option(help="The reason, for others who find it paused.")] = "",
    approver: options.As = None,
) -> int:
    """Example: longhaul pause nightly --why "The database is being moved." """
    async with opened(name) as session:
        new = await session.pause(why=why, by=decider(approver))
    screen.show(Text(one_line(f"{session.id} {'is paused' if new else 'was paused already'}")))
    screen.document({"session": session.id, "paused": True, "already": not new})
    return 0


@commands.command()
async def step(screen: Screen, name: Name, *, approver: options.As = None) -> int:
    """Example: longhaul step nightly"""
    async with opened(name) as session:
        new = await session.step(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} takes {'one step' if new else 'a step already'}")))
    screen.document({"session": session.id, "stepping": True, "already": not new})
    return 0


@commands.command()
async def resume(screen: Screen, name: Name, *, approver: options.As = None) -> int:
    """`longhaul show S` says why it is.

    Example: longhaul resume nightly
    """
    async with opened(name) as session:
        await session.resume(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} continues")))
    screen.document({"session": session.id, "resumed": True})
    return 0


@commands.command()
async def repair(screen: Screen, name: Name, *, approver: options.As = None) -> int:
    """For a session whose model provider refuses each request because of its contents. The transcript keeps everything.
    Example: longhaul repair nightly
    """
    async with connected() as app:
        session = await find_any(app, name)
        count = await session.stored.repair(by=decider(approver))
    told = f"{count} attachments and thinking blocks removed from the context" if count else "nothing to repair"
    screen.show(Text(one_line(f"{session.id}: {told}")))
    screen.document({"session": session.id, "left_out": count})
    return 0


@commands.command()
async def rescue(screen: Screen, name: Name, *, approver: options.As = None) -> int:
    """Calls after that checkpoint may have had their effects: they are listed here and for the model.
    Example: longhaul rescue nightly
    """
    async with opened(name) as session:
        rescued = await session.rescue(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} has started again: {rescued.quarantine}")))
    for ran in rescued.ran:
        screen.show(Text(one_line(f"  may have had its effect: {ran}")))
    screen.document(
        {"session": session.id, "quarantine": rescued.quarantine, "ran": [ran._asdict() for ran in rescued.ran]}
    )
    return 0
