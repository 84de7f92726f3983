"""Many sessions' states at once: into a folder, one file each, and out of one. One that fails stops no other."""

import hashlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

from rich.text import Text

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_any
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.states.session_copies import stored_sessions
from longhaul.starter.visible import one_line

NAME_CHARS = 150


@dataclass(frozen=True, slots=True)
class StateRow:
    """What became of one session, or of one file."""

    session: str
    user: str | None
    agent: str
    file: str
    error: str = ""


async def export_all(screen: Screen, folder: str, user: str | None, agent: str | None) -> int:
    """The open sessions, and those of the user that the store holds, each as a file in the folder."""
    place = _made(folder)
    async with connected() as app:
        found = {(card.session_id, card.user_id, card.agent) for card in await app.sessions(user=user)}
        found |= {
            (row.session_id, row.user_id, row.agent_id) for row in await stored_sessions(app.client, app.settings, user)
        }
        wanted = sorted(
            (one for one in found if agent in (None, one[2])), key=lambda one: (one[0], one[1] or "", one[2])
        )
        rows = [await _exported(app, place, StateRow(*one, file=_file_name(*one))) for one in wanted]
    return _told(screen, rows, "exported")


def _made(folder: str) -> Path:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"--all: {folder!r} can't be made: {error.strerror}") from error
    return Path(folder)


async def _exported(app: Longhaul, place: Path, row: StateRow) -> StateRow:
    async def export() -> None:
        # With a spec of that name alone: nothing is started by it.
        session = app.session(row.session, user=row.user, agent=AgentSpec(name=row.agent))
        text = await session.stored.export()
        (place / row.file).write_text(text + "\n", encoding="utf-8")

    return await _tried(row, export)


def _file_name(session: str, user: str | None, agent: str) -> str:
    """One for each session, of plain characters; a long one ends in a digest."""
    plain = "~".join(quote(part, safe="") for part in (agent, user or "", session))
    digest = hashlib.sha256(json.dumps([agent, user, session]).encode("ascii")).hexdigest()[:12]
    return f"{plain if len(plain) <= NAME_CHARS else f'{plain[:NAME_CHARS]}~{digest}'}.json"


async def import_all(screen: Screen, folder: str, wishes: Wishes, why: str) -> int:
    """Each *.json of the folder into the session that it names."""
    files = _files_in(folder)
    async with connected() as app:
        rows = [await _imported(app, file, wishes, why) for file in files]
    return _told(screen, rows, "imported")


def _files_in(folder: str) -> list[Path]:
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise Misuse(f"--all: there is no .json file in {folder!r}")
    return files


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


async def _imported(app: Longhaul, file: Path, wishes: Wishes, why: str) -> StateRow:
    row = StateRow("", None, "", file.name)
    try:
        text = _read(file)
        named = json.loads(text)
        row = replace(row, session=str(named["session_id"]), user=named.get("user_id"), agent=str(named["agent"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return replace(row, error="it is no export: JSON with session_id, user_id and agent is needed")

    async def put() -> None:
        session = await find_any(app, Name(row.session, row.user, row.agent))
        if not await session.stored.is_known():
            session = await open_session(app, replace(wishes, session=row.session, user=row.user, agent=row.agent))
        await session.stored.import_state(text, by=whoami(), why=why)

    return await _tried(row, put)


async def _tried(row: StateRow, do: Callable[[], Awaitable[None]]) -> StateRow:
    try:
        await do()
    except Exception as error:  # noqa: BLE001  whatever is wrong with one, the others are to be moved
        return replace(row, error=str(error) or type(error).__name__)
    return row


def _told(screen: Screen, rows: list[StateRow], done: str) -> int:
    """One line to each; exit 1 when any failed."""
    screen.document([asdict(row) for row in rows])
    failed = [row for row in rows if row.error]
    for row in rows:
        line = (row.session or "-", row.user or "-", row.agent or "-", row.file, row.error or done)
        screen.show_fields(*(Text(one_line(each), "red" if row.error else "") for each in line))
    screen.show(Text(f"{len(rows) - len(failed)} {done}, {len(failed)} failed", "bold"))
    return Exit.TROUBLE if failed else Exit.DONE
