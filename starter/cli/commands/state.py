"""`longhaul state`: sessions' states, into a file, out of one, changed, deleted, or the beginning of
another session.

Many states go into a folder, one file each, and out of one; one that fails stops no other.
"""

import dataclasses
import hashlib
import json
import shlex
import sys
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.text import Text

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.session_lookup import Name, connected, find_any, find_if_open, flags_of
from longhaul.starter.cli.session_start import Wishes, open_session, whoami
from longhaul.starter.cli.terminal.screen import Screen, write_json
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.states import state_json
from longhaul.starter.client.states.deletion import Deleted
from longhaul.starter.client.states.session_copies import stored_sessions
from longhaul.starter.visible import one_line

group = options.SubjectCommands(no_args_is_help=True)

MaybeSession = Annotated[str | None, typer.Argument(metavar="[S]", help="Session id, as it was given to run or chat.")]
All = Annotated[
    str | None, typer.Option("--all", metavar="FOLDER", help="All sessions, as one file each in this folder.")
]
Why = Annotated[str, typer.Option(help="The reason, which is recorded.")]


@group.command("export")
async def export_state(
    screen: Screen,
    s: MaybeSession = None,
    *,
    all_: All = None,
    out: Annotated[str | None, typer.Option(help="Write it to this file; else to stdout.")] = None,
    user: options.User = None,
    agent: options.Agent = None,
) -> int:
    """Write a session's state as JSON, which `state import` takes; or the states of all sessions into a folder.

    Example: longhaul state export nightly --out nightly.json
    """
    if all_ is not None and s is None:
        return await _export_all(screen, all_, user, agent)
    if s is None or all_ is not None:
        raise typer.BadParameter("name one session, or a folder with --all")
    async with connected() as app:
        session = await find_any(app, Name(s, user, agent))
        found = await session.stored.found()
    exported = state_json.exported(found.state)
    if found.note:
        print(f"longhaul: {found.note}", file=sys.stderr)
    if out is None:
        write_json(json.loads(exported))
        return 0
    try:
        Path(out).write_text(exported + "\n", encoding="utf-8")
    except OSError as error:
        raise Misuse(f"--out: {out!r} can't be written: {error.strerror}") from error
    return 0


@group.command("import")
async def import_state(
    screen: Screen,
    s: MaybeSession = None,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="An export, or a state of AgentScope Java; - is stdin.")
    ] = None,
    *,
    all_: All = None,
    why: Why = "",
    expect_seq: Annotated[
        int | None, typer.Option(help="Only if nothing was recorded since `show --json` said this `seq`.")
    ] = None,
    user: options.User = None,
    agent: options.Agent = None,
    model: options.Model = None,
    workspace: options.Workspace = None,
) -> int:
    """Replace the state of a session that is idle or waits, or start a session with it. With --all each
    export in a folder replaces the state of the session that it names.

    Example: longhaul state import nightly-2 nightly.json --model anthropic:claude-sonnet-4-5
    """
    wishes = Wishes(agent, model, s, user, workspace)
    if all_ is not None and s is None:
        return await _import_all(screen, all_, wishes, why)
    if s is None or file is None or all_ is not None:
        raise typer.BadParameter("name a session and a file, or a folder with --all")
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise Misuse(f"{file!r} can't be read: {error.strerror}") from error
    async with connected() as app:
        session = await find_if_open(app, Name(s, user, agent)) or await open_session(app, wishes)
        left_out = await session.stored.import_state(data, by=whoami(), why=why, expected_seq=expect_seq)
        messages = len((await session.state()).context)
    screen.show(Text(one_line(f"{session.id} has the state of {file}: {messages} messages")))
    if left_out:
        screen.show(Text(one_line(f"left out, because it has no meaning here: {', '.join(left_out)}"), "yellow"))
    screen.document({"session": session.id, "imported": True, "messages": messages, "left_out": list(left_out)})
    return 0


@group.command("edit")
async def edit_state(
    screen: Screen,
    name: Name,
    *,
    set_: Annotated[list[str], typer.Option("--set", metavar="PATH=JSON", help="A path, and its new value.")],
    why: Why = "",
) -> int:
    """Edit the state of a session that is idle or waits; all edits or none. Who and why is recorded.

    Example: longhaul state edit nightly --set 'context[3].content[0].text="Fifty."' --why "recounted"
    """
    changes = dict(_change(setting) for setting in set_)
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
            f"--set: the value after {path}= is not JSON ({error}); text needs quotes, and the shell another pair "
            f"around them: --set '{path}=\"text\"'"
        ) from error


@group.command("fork")
async def fork_state(
    screen: Screen,
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The id of the new session.")],
    *,
    at: Annotated[int | None, typer.Option(help="After this model call and its results; default: now.")] = None,
) -> int:
    """Start a new session from a session's state, now or at an earlier step. Nothing runs twice.

    Example: longhaul state fork nightly nightly-retry --at 12
    """
    async with connected() as app:
        session = await find_any(app, name)
        copy = await session.stored.fork(new, at, by=whoami())
        files = (await copy.status()).note
    command = shlex.join(["longhaul", "run", "PROMPT", "--session", copy.id, *flags_of(copy)])
    screen.show(Text(one_line(f"{copy.id} starts from the state of {session.id}; to continue: {command}")))
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


async def _export_all(screen: Screen, folder: str, user: str | None, agent: str | None) -> int:
    """The open sessions, and those of the user that the store holds, each as a file in the folder."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"--all: {folder!r} cannot be created: {error.strerror}") from error
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


async def _import_all(screen: Screen, folder: str, wishes: Wishes, why: str) -> int:
    """Each *.json of the folder into the session that it names."""
    files = sorted(Path(folder).glob("*.json"))
    if not files:
        raise Misuse(f"--all: there is no .json file in {folder!r}")
    async with connected() as app:
        rows = [await _imported(app, file, wishes, why) for file in files]
    return _show_rows(screen, rows, "imported")


async def _imported(app: Longhaul, file: Path, wishes: Wishes, why: str) -> StateRow:
    row = StateRow("", None, "", file.name)
    try:
        text = file.read_text(encoding="utf-8")
        named = json.loads(text)
        row = replace(row, session=str(named["session_id"]), user=named.get("user_id"), agent=str(named["agent"]))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return replace(row, error="it is not an export: it needs JSON with session_id, user_id and agent")

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


@group.command("delete")
async def delete_state(
    screen: Screen,
    name: Name,
    *,
    terminate: Annotated[bool, typer.Option("--terminate", help="End it at once if it is open.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Delete everything stored of a closed session and its sub-agents: histories, states, blobs, offloaded content.

    Their workspaces stay; the command lists them.

    Example: longhaul state delete nightly --terminate --yes
    """
    async with connected() as app:
        session = await find_any(app, name)
        if not yes:
            if not screen.answers:
                raise Misuse("there is no terminal to ask at; use --yes to delete it")
            asked = f"Delete {_named(session)} and its sub-agents: histories, states, blobs, offloads? Type yes: "
            if screen.out.input(Text(one_line(asked))).strip().lower() != "yes":
                raise Misuse("nothing was deleted")
        done = await session.stored.delete(terminate=terminate, by=whoami())
    if not done.anything:
        raise Misuse(f"there is nothing of {_named(session)}; see --user and --agent")
    screen.show(Text(one_line(f"{_named(session)} is deleted: {_deleted_parts(done)}")))
    for folder in done.workspaces:
        screen.show(Text(one_line(f"its workspace stays: {folder}")))
    screen.document({"session": session.id, **dataclasses.asdict(done)})
    return Exit.DONE


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
