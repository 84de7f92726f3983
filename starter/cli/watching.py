"""`longhaul watch`: what a session does, as it does it."""

from contextlib import aclosing

from rich.text import Text

from starter.asking import NoSession
from starter.cli.finding import Name, connected, find_session
from starter.cli.leaving import Exit
from starter.cli.progress import Progress
from starter.cli.screen import Screen, write_json
from starter.session import Session


async def watch(screen: Screen, name: Name, start: int) -> int:
    """Until Ctrl-C, or until the session has closed. With --json one event a line, recorded ones and live ones."""
    async with connected() as app:
        session = await find_session(app, name)
        try:
            await _follow(screen, session, start)
        except NoSession:
            screen.remark(Text("the session has closed", style="dim"))
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
