"""The work of compact, pause, repair, rescue, resume and step."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.cli.session_lookup import Name, connected, find_any, opened
from longhaul.starter.cli.session_start import decider, whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class Wish:
    """What the flags of compact say; None where the agent's own setting holds."""

    trigger: float | None = None
    reserve: float | None = None
    instructions: str = ""


async def compact(screen: Screen, name: Name, wish: Wish) -> int:
    """Ask for a shorter context and wait for it."""
    async with opened(name) as session:
        before = await session.status()
        config = await _config(session, wish)
        compacted = await session.compress_context(config, instructions=wish.instructions, by=whoami())
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


async def _config(session: Session, wish: Wish) -> ContextConfig | None:
    """The session's own settings with what was wished. Raises ValidationError for shares that can't be."""
    ratios = {"trigger_ratio": wish.trigger, "reserve_ratio": wish.reserve}
    wished = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if not wished:
        return None
    own = (await session.settings()).context_config
    return ContextConfig.model_validate({**own.model_dump(), **wished})


async def pause(screen: Screen, name: Name, why: str, approver: str | None) -> int:
    """Begin nothing new until somebody resumes."""
    async with opened(name) as session:
        new = await session.pause(why=why, by=decider(approver))
    screen.show(Text(one_line(f"{session.id} {'is paused' if new else 'was paused already'}")))
    screen.document({"session": session.id, "paused": True, "already": not new})
    return 0


async def step(screen: Screen, name: Name, approver: str | None) -> int:
    """Let a paused session take one step."""
    async with opened(name) as session:
        new = await session.step(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} takes {'one step' if new else 'a step already'}")))
    screen.document({"session": session.id, "stepping": True, "already": not new})
    return 0


async def resume(screen: Screen, name: Name, approver: str | None) -> int:
    """Let it go on."""
    async with opened(name) as session:
        await session.resume(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} goes on")))
    screen.document({"session": session.id, "resumed": True})
    return 0


async def repair(screen: Screen, name: Name, approver: str | None) -> int:
    """Take what a provider may refuse out of the context."""
    async with connected() as app:
        session = await find_any(app, name)
        count = await session.stored.repair(by=decider(approver))
    told = f"{count} attachments and thoughts are out of the context" if count else "nothing to repair"
    screen.show(Text(one_line(f"{session.id}: {told}")))
    screen.document({"session": session.id, "left_out": count})
    return 0


async def rescue(screen: Screen, name: Name, approver: str | None) -> int:
    """End a session that fails for good and begin it again from its checkpoint."""
    async with opened(name) as session:
        rescued = await session.rescue(by=decider(approver))
    screen.show(Text(one_line(f"{session.id} has begun again: {rescued.hold}")))
    for ran in rescued.ran:
        screen.show(Text(one_line(f"  may have had its effect: {ran}")))
    screen.document({"session": session.id, "hold": rescued.hold, "ran": [ran._asdict() for ran in rescued.ran]})
    return 0


BY_SOMEBODY: Mapping[str, Callable[[Screen, Name, str | None], Coroutine[Any, Any, int]]] = {
    "repair": repair,
    "rescue": rescue,
    "resume": resume,
    "step": step,
}
"""Commands that want to know nothing but the session, and who sends them."""
