"""What compact, pause, resume and step do."""

from dataclasses import dataclass

from rich.text import Text

from agent.settings import ContextConfig
from starter.cli.finding import Name, connected, find_session
from starter.cli.opening import whoami
from starter.cli.screen import Screen
from starter.session import Session
from starter.visible import one_line


@dataclass(frozen=True, slots=True)
class Wish:
    """What the flags of compact say; None where the agent's own setting holds."""

    trigger: float | None = None
    reserve: float | None = None
    instructions: str = ""


async def compact(screen: Screen, name: Name, wish: Wish) -> int:
    """Ask for a shorter context and wait for it."""
    async with connected() as app:
        session = await find_session(app, name)
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
    async with connected() as app:
        session = await find_session(app, name)
        new = await session.pause(why=why, by=whoami() if approver is None else approver)
    screen.show(Text(one_line(f"{session.id} {'is paused' if new else 'was paused already'}")))
    screen.document({"session": session.id, "paused": True, "already": not new})
    return 0


async def step(screen: Screen, name: Name, approver: str | None) -> int:
    """Let a paused session take one step."""
    async with connected() as app:
        session = await find_session(app, name)
        new = await session.step(by=whoami() if approver is None else approver)
    screen.show(Text(one_line(f"{session.id} takes {'one step' if new else 'a step already'}")))
    screen.document({"session": session.id, "stepping": True, "already": not new})
    return 0


async def resume(screen: Screen, name: Name, approver: str | None) -> int:
    """Let it go on."""
    async with connected() as app:
        session = await find_session(app, name)
        await session.resume(by=whoami() if approver is None else approver)
    screen.show(Text(one_line(f"{session.id} goes on")))
    screen.document({"session": session.id, "resumed": True})
    return 0
