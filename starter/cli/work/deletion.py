"""`longhaul state delete`: asks, deletes, and says what was deleted."""

import dataclasses

from rich.text import Text

from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_any
from longhaul.starter.cli.session_start import whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.session import Session
from longhaul.starter.client.states.deletion import Deleted
from longhaul.starter.visible import one_line


async def delete(screen: Screen, name: Name, *, terminate: bool, unasked: bool) -> int:
    """Exit code 2 when there was nothing of that name, or nobody has agreed."""
    async with connected() as app:
        session = await find_any(app, name)
        if not unasked and not _agreed(screen, session):
            raise Misuse("nothing was deleted")
        done = await session.stored.delete(terminate=terminate, by=whoami())
    if not done.anything:
        raise Misuse(f"there is nothing of {_named(session)}; see --user and --agent")
    screen.show(Text(one_line(f"{_named(session)} is deleted: {_told(done)}")))
    screen.document({"session": session.id, **dataclasses.asdict(done)})
    return Exit.DONE


def _agreed(screen: Screen, session: Session) -> bool:
    if not screen.answers:
        raise Misuse("nobody can be asked here; say --yes to delete it")
    asked = f"Delete {_named(session)}, its histories, state, blobs and offloaded content? Type yes: "
    return screen.out.input(Text(one_line(asked))).strip().lower() == "yes"


def _named(session: Session) -> str:
    user = "the anonymous user" if session.user is None else f"user {session.user!r}"
    return f"session {session.id!r} of {user} and agent {session.spec.name!r}"


def _told(done: Deleted) -> str:
    parts = [
        *(["its run was terminated"] if done.terminated else []),
        f"{done.runs} histories",
        "the stored state" if done.record else "no stored state",
        f"{done.blobs} blobs",
        f"{done.offloaded} offloaded files or keys",
        *([f"{done.snapshots} snapshots of files"] if done.snapshots else []),
        *(["the key that it was encrypted with"] if done.key else []),
    ]
    return ", ".join(parts)
