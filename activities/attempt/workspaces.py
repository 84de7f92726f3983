"""Workspaces: the directory that a session's tools work in, proof that this worker sees the same one, and its files
kept before a call that may change any.
"""

import asyncio
import logging
import os
import secrets
import time
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.contract import NOT_HERE, RecordedPlace, RunTool
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.tool import Place
from longhaul.agent.entries import CallOutcome, ToolReturned
from longhaul.agent.plain.text import nearest
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.workspace import FILES_NOW, Workspace
from longhaul.stores.memories.memories import MemoryOwner
from longhaul.stores.names import owner_name, read_regular, readable_folders, workdir_of
from longhaul.stores.offload.offloaders import Offloaders
from longhaul.stores.state.file_store import write_whole
from longhaul.stores.worktrees import snapshots, worktrees
from longhaul.stores.worktrees.git import GitProblem

log = logging.getLogger(__name__)

MARKER = Path(".longhaul") / "workspace"
"""In each workspace: a nonce. A worker that reads another one, or none, sees other files."""

NONCE_CAP_BYTES = 100

SEEN_LASTS_SECONDS = 5.0
"""A marker that was just read is not read again with each activity that only reads, nor with each step."""

KEPT_PLACES = 1_000
"""Workspaces of which is remembered when their marker was read."""

QUICK_TRIES = 20
QUICK_SECONDS = 0.15
"""Attempts of one activity, and between them; `not_here` says why they are quick."""
NEIGHBOURS = 1_000
"""Folders among which the nearest name is looked for."""


class Workspaces:
    """The workspaces that this worker can see; those that nobody named lie in its data directory."""

    def __init__(self, data_dir: Path, offloaders: Offloaders | None = None, host: str = "") -> None:
        """`offloaders`: those whose files its sessions' tools may read back. `host`: its name, if it has one."""
        self._host = host
        self._data_dir = data_dir.resolve()
        self._offloaders = offloaders or Offloaders(data_dir)
        self._seen: dict[tuple[str, str], float] = {}

    def bind(self, wanted: Workspace | None, session_key: str) -> tuple[Path, str]:
        """Root and nonce of the workspace, made if it is the session's own. Blocking."""
        if wanted is not None:
            if wanted.host not in ("", self._host):
                raise not_here(f"the workspace lies on host {wanted.host!r}, and this worker runs on another one")
            root = Path(wanted.root)
            if not root.is_absolute() or not root.is_dir():
                raise not_here(f"there is no directory {wanted.root!r} on this worker{nearest_folder(root)}")
            if wanted.place == "worktree":
                root = self._own_tree(root, session_key, wanted.at)
        else:
            root = snapshots.own_folder_of(self._data_dir, session_key)
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root = root.resolve()
        marker = root / MARKER
        if marker.parent.is_symlink():
            raise not_here(f"{str(marker.parent)!r} is a link; the marker would be written elsewhere")
        marker.parent.mkdir(exist_ok=True)
        nonce = _read(marker)
        if nonce is None:
            _publish(marker, secrets.token_hex(8))
            nonce = _read(marker)
        if nonce is None:
            raise not_here(f"the marker {str(marker)!r} can't be read")
        return root, nonce

    def left_behind(self, session_key: str) -> Path | None:
        """The folder that an earlier incarnation of the session had here for itself alone, with its marker. Blocking.

        It outlives the state store's record, and the history that the server deletes."""
        for path_of in (snapshots.own_folder_of, worktrees.path_of):
            folder = path_of(self._data_dir, session_key)
            if _read(folder / MARKER) is not None:
                return folder
        return None

    def _own_tree(self, root: Path, session_key: str, at: str) -> Path:
        try:
            root = root.resolve()
            cloned = snapshots.own_files(root, self._data_dir, session_key, at)
            return cloned or worktrees.make(root, self._data_dir, session_key, at)
        except (GitProblem, OSError) as error:
            why = f"no working tree could be made: {error}"
            if at in ("", FILES_NOW) and not snapshots.is_gits(root):
                raise failed_for_good("setup", why) from error  # on every worker that has this folder
            raise not_here(why) from error

    def snapshot(self, recorded: RecordedPlace, session_key: str, call_id: str, *, again: bool) -> str:
        """What keeps the files, a commit or a clone; empty, with a line in the log, where they can't be kept: the call
        goes on all the same. Blocking."""
        try:
            root = Path(recorded.root)
            take = snapshots.take_snapshot if snapshots.is_gits(root) else snapshots.take_clone
            return take(root, self._data_dir, session_key, call_id, again=again)
        except (GitProblem, OSError) as error:
            log.warning("no snapshot of the files of session %s before call %s: %s", session_key, call_id, error)
            return ""

    async def find(self, recorded: RecordedPlace, *, may_write: bool = False) -> Place:
        """The place as this worker sees it; NotHere when the marker says that it is another.

        For a call that may write the marker is read now: a folder that has gone since would be made again."""
        key = (recorded.root, recorded.nonce)
        if may_write or time.monotonic() - self._seen.get(key, -SEEN_LASTS_SECONDS) >= SEEN_LASTS_SECONDS:
            await asyncio.to_thread(_look, recorded)
            self._seen.pop(key, None)
            self._seen = {key: time.monotonic(), **dict(islice(self._seen.items(), KEPT_PLACES))}
        whose = (recorded.agent, recorded.user_id, recorded.session_id)
        by_own = await self._offloaders.folders(recorded.offloader, *whose)
        return Place(
            root=Path(recorded.root),
            cwd=Path(recorded.cwd or recorded.root),
            offloaded=(*_offloaded(self._data_dir, *whose), *by_own),
            ruled=recorded.ruled,
            closed=recorded.closed,
            opened=tuple(map(Path, recorded.opened)),
            sandbox=recorded.sandbox,
            sandbox_network=recorded.sandbox_network,
            seal=recorded.seal,
            skills=recorded.skills,
            owner=MemoryOwner(recorded.user_id, recorded.agent),
            session_id=recorded.session_id,
        )


@lru_cache(KEPT_PLACES)
def _offloaded(data_dir: Path, agent: str, user_id: str | None, session_id: str) -> tuple[Path, ...]:
    """Folders that the session's reading tools may read beside the workspace; they need not exist."""
    if not session_id:
        return ()
    return readable_folders(workdir_of(data_dir, owner_name(agent, user_id)), session_id)


def _look(recorded: RecordedPlace) -> None:
    marker = Path(recorded.root) / MARKER
    found = _read(marker)
    if found != recorded.nonce:
        seen = "no marker" if found is None else "another marker"
        raise not_here(f"this worker does not see the session's workspace: {seen} at {str(marker)!r}")


class Elsewhere(Exception):
    """Of a tool: what the call is about is with another worker, which may be asked; nothing was done."""


def not_here(why: str) -> ApplicationError:
    """The error of a worker that can't do what another one may; nothing was done.

    The server hands tasks to pollers in turn, five of each worker: the first tries are quick, to get past those of a
    worker that can't, and so that the session hears of it within two seconds (`lacking.TOLD_AT`); later ones wait for
    a worker that is only starting.
    """
    quick = not activity.in_activity() or activity.info().attempt <= QUICK_TRIES
    return ApplicationError(why, type=NOT_HERE, next_retry_delay=timedelta(seconds=QUICK_SECONDS if quick else 5))


def nearest_folder(missing: Path) -> str:
    """The end of a sentence about a folder that is not there: its neighbour that was probably meant, and no other one.
    Blocking."""
    try:
        with os.scandir(missing.parent) as found:
            folders = [entry.name for entry in islice(found, NEIGHBOURS) if entry.is_dir()]
    except (OSError, ValueError):
        return ""
    meant = nearest(missing.name, folders)
    return f"; did you mean {str(missing.with_name(meant))!r}?" if meant else ""


def _publish(marker: Path, nonce: str) -> None:
    """All or nothing, first one wins: two workers that bind at once must agree."""
    draft = marker.with_name(f"workspace.{nonce}")
    write_whole(
        os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666), nonce.encode(), fsync=False
    )
    try:
        os.link(draft, marker)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _read(marker: Path) -> str | None:
    """The nonce, or None. The workspace may be hostile: a pipe here would hold a thread of the worker for ever, a long
    file would be recorded, and a link would record what lies elsewhere."""
    try:
        found = b"" if marker.parent.is_symlink() else read_regular(marker, NONCE_CAP_BYTES)
        return found.decode("ascii").strip() if found else None
    except (OSError, UnicodeDecodeError):
        return None


async def keep_files(workspaces: Workspaces, ask: RunTool) -> str:
    """The snapshot; empty where none is wanted, or none could be made. A call that is tried again keeps its first."""
    if not ask.place.snapshots or ask.effect is Effect.READ:
        return ""
    again = activity.info().attempt > 1
    async with beating():
        return await asyncio.to_thread(workspaces.snapshot, ask.place, own_session.key(), ask.call_id, again=again)


def with_snapshot(outcome: CallOutcome, snapshot: str) -> CallOutcome:
    if not snapshot or not isinstance(outcome, ToolReturned):
        return outcome
    return outcome.model_copy(update={"snapshot": snapshot})
