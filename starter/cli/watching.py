"""`longhaul watch`: what a session does, as it does it."""

from collections.abc import Sequence
from contextlib import aclosing

from rich.text import Text

from starter.asking import NoSession
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Exit
from starter.cli.progress import Progress
from starter.cli.screen import Screen, write_json
from starter.feed import CLOSED
from starter.session import Session
from starter.visible import one_line


async def watch(screen: Screen, name: Name, start: int) -> int:
    """Until Ctrl-C, or until the session has closed. With --json one event a line, recorded ones and live ones."""
    async with connected() as app:
        session = await find_session(app, name)
        try:
            await _follow(screen, session, start)
        except NoSession:
            screen.remark(Text("the session has closed", style="dim"))
    return Exit.DONE


async def watch_all(screen: Screen, names: Sequence[Name], start: int | None) -> int:
    """Several in one feed, until all have closed. With --json each line names its session."""
    async with connected() as app:
        sessions = [await find_session(app, name) for name in names]
        shown: dict[str, Progress] = {}
        last = ""
        async with app.feed(sessions, start=start, live=screen.as_json) as feed:
            async for item in feed:
                session, event = item.session, item.event
                if screen.as_json:
                    write_json({"session": session.id, "number": item.number, **event.model_dump(mode="json")})
                    continue
                if (reply := f"{one_line(session.id)}, reply {event.reply_id}") != last and event.reply_id:
                    last = reply
                    screen.show(Text(reply, style="bold"))
                progress = shown.get(session.workflow_id)
                if progress is None or event.type == "REPLY_START":
                    progress = shown[session.workflow_id] = Progress(screen, session, event.reply_id)
                await progress.take(event)
                if event.name == CLOSED:
                    screen.remark(Text(f"{one_line(session.id)} has closed", style="dim"))
    return Exit.DONE


async def _follow(screen: Screen, session: Session, start: int) -> None:
    progress: Progress | None = None
    reply_id = ""
    async with aclosing(session.follow(start)) as events, screen.lively():
        async for event in events:
            if screen.as_json:
                write_json(event)
                continue
            if progress is None or event.reply_id not in ("", reply_id):
                reply_id = event.reply_id
                progress = Progress(screen, session, reply_id)
                screen.show(Text(f"reply {reply_id}", style="dim"))
            await progress.take(event)
