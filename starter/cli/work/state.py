"""The work of the commands about a session's state: it goes into a file, comes from one, changes, or begins another."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.text import Text

from longhaul.starter.cli.exit_codes import Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_any, find_if_open
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.screen import Screen, write_json
from longhaul.starter.client.states import state
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
    exported = state.exported(found.state)
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
