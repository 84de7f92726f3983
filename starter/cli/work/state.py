"""The work of the commands about sessions' states: into a file, out of one, changed, deleted, or the beginning of
another session.

Many states go into a folder, one file each, and out of one; one that fails stops no other.
"""

import dataclasses
import hashlib
import json
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.text import Text

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_any, find_if_open
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.screen import Screen, write_json
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.states import state_json
from longhaul.starter.client.states.deletion import Deleted
from longhaul.starter.client.states.session_copies import stored_sessions
from longhaul.starter.visible import one_line


@dataclass(frozen=True, slots=True)
class Import:
    """What is to be imported, and what is said about it."""

    file: str
    why: str = ""
    expect_seq: int | None = None


async def export_state(name: Name, out: str | None) -> int:
    """AgentState on stdout or in a file."""
    async with connected() as app:
        session = await find_any(app, name)
        found = await session.stored.found()
    exported = state_json.exported(found.state)
    if found.note:
        print(f"longhaul: {found.note}", file=sys.stderr)
    if out is None:
        write_json(json.loads(exported))
        return 0
    _write(out, exported + "\n")
    return 0


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Misuse(f"--out: {file!r} can't be written: {error.strerror}") from error


async def import_state(screen: Screen, wishes: Wishes, given: Import) -> int:
    """A state from a file into a session that is idle, or begins with it."""
    data = _read(given.file)
    name = Name(wishes.session or "", wishes.user, wishes.agent)
    async with connected() as app:
        session = await find_if_open(app, name) or await open_session(app, wishes)
        left_out = await session.stored.import_state(data, by=whoami(), why=given.why, expected_seq=given.expect_seq)
        messages = len((await session.state()).context)
    screen.show(Text(one_line(f"{session.id} has the state of {given.file}: {messages} messages")))
    if left_out:
        screen.show(Text(one_line(f"left out, for it means nothing here: {', '.join(left_out)}"), "yellow"))
    screen.document({"session": session.id, "imported": True, "messages": messages, "left_out": list(left_out)})
    return 0


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Misuse(f"{file!r} can't be read: {error.strerror}") from error


async def edit_state(screen: Screen, name: Name, settings: Sequence[str], why: str) -> int:
    """Set each PATH=JSON."""
    changes = dict(_change(setting) for setting in settings)
    async with connected() as app:
        session = await find_any(app, name)
        await session.stored.edit_all(changes, by=whoami(), why=why)
    screen.show(Text(one_line(f"{session.id}: changed {', '.join(changes)}")))
    screen.document({"session": session.id, "edited": list(changes)})
    return 0


def _change(setting: str) -> tuple[str, Any]:
    path, equals, text = setting.partition("=")
    if not equals:
        raise Misuse(f"--set: {setting!r} has no '='; write it like 'summary=\"They count bricks.\"'")
    try:
        return path.strip(), json.loads(text)
    except ValueError as error:
        raise Misuse(
            f"--set: what stands behind {path}= is no JSON ({error}); text needs its quotes, and the shell others "
            f"around them: --set '{path}=\"text\"'"
        ) from error


async def fork_state(screen: Screen, name: Name, new: str, at: int | None) -> int:
    """Another session from this one's state."""
    async with connected() as app:
        session = await find_any(app, name)
        copy = await session.stored.fork(new, at, by=whoami())
        files = (await copy.status()).note
    user = ["--user", copy.user] if copy.user is not None else []
    command = shlex.join(["longhaul", "run", "PROMPT", "--session", copy.id, *user, "--agent", copy.spec.name])
    screen.show(Text(one_line(f"{copy.id} begins where {session.id} stood; to go on: {command}")))
    screen.show(Text(one_line(files), "dim"))
    screen.document({"session": copy.id, "forked_from": session.id, "at": at, "files": files})
    return 0


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
    return _show_rows(screen, rows, "exported")


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
    return _show_rows(screen, rows, "imported")


def _files_in(folder: str) -> list[Path]:
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise Misuse(f"--all: there is no .json file in {folder!r}")
    return files


def _read_text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


async def _imported(app: Longhaul, file: Path, wishes: Wishes, why: str) -> StateRow:
    row = StateRow("", None, "", file.name)
    try:
        text = _read_text(file)
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


def _show_rows(screen: Screen, rows: list[StateRow], done: str) -> int:
    """One line to each; exit 1 when any failed."""
    screen.document([asdict(row) for row in rows])
    failed = [row for row in rows if row.error]
    for row in rows:
        line = (row.session or "-", row.user or "-", row.agent or "-", row.file, row.error or done)
        screen.show_fields(*(Text(one_line(each), "red" if row.error else "") for each in line))
    screen.show(Text(f"{len(rows) - len(failed)} {done}, {len(failed)} failed", "bold"))
    return Exit.TROUBLE if failed else Exit.DONE


async def delete(screen: Screen, name: Name, *, terminate: bool, unasked: bool) -> int:
    """Exit code 2 when there was nothing of that name, or nobody has agreed."""
    async with connected() as app:
        session = await find_any(app, name)
        if not unasked and not _agreed(screen, session):
            raise Misuse("nothing was deleted")
        done = await session.stored.delete(terminate=terminate, by=whoami())
    if not done.anything:
        raise Misuse(f"there is nothing of {_named(session)}; see --user and --agent")
    screen.show(Text(one_line(f"{_named(session)} is deleted: {_deleted_parts(done)}")))
    for folder in done.workspaces:
        screen.show(Text(one_line(f"its workspace stays as it is: {folder}")))
    screen.document({"session": session.id, **dataclasses.asdict(done)})
    return Exit.DONE


def _agreed(screen: Screen, session: Session) -> bool:
    if not screen.answers:
        raise Misuse("nobody can be asked here; say --yes to delete it")
    asked = f"Delete {_named(session)} and its sub-agents: histories, states, blobs, offloaded content? Type yes: "
    return screen.out.input(Text(one_line(asked))).strip().lower() == "yes"


def _named(session: Session) -> str:
    user = "the anonymous user" if session.user is None else f"user {session.user!r}"
    return f"session {session.id!r} of {user} and agent {session.spec.name!r}"


def _deleted_parts(done: Deleted) -> str:
    parts = [
        *(["its run was terminated"] if done.terminated else []),
        *([f"{len(done.subagents)} sub-agents ({', '.join(done.subagents)})"] if done.subagents else []),
        f"{done.runs} histories",
        "the stored state" if done.record else "no stored state",
        f"{done.blobs} blobs",
        f"{done.offloaded} offloaded files or keys",
        *([f"{done.snapshots} snapshots of files"] if done.snapshots else []),
        *(["the key that it was encrypted with"] if done.key else []),
    ]
    return ", ".join(parts)
