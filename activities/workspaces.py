"""Workspaces: the directory that a session's tools work in, and proof that this worker sees the same one."""

import asyncio
import hashlib
import os
import secrets
import stat
import time
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.contract import NOT_HERE
from activities.contract import Place as RecordedPlace
from activities.offload.names import owner_name, readable_folders, workdir_of
from activities.tools.tool import Place
from agent.settings import Workspace

MARKER = Path(".longhaul") / "workspace"
"""In each workspace: a nonce. A worker that reads another one, or none, sees other files."""

NONCE_CAP_BYTES = 100

SEEN_LASTS_SECONDS = 5.0
"""A marker that was just read is not read again with each activity, nor with each step."""

KEPT_PLACES = 1_000
"""Workspaces of which is remembered when their marker was read."""

QUICK_TRIES = 20
"""Attempts of one activity; `not_here` says why they are quick."""


class Workspaces:
    """The workspaces that this worker can see; those that nobody named lie in its data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir.resolve()
        self._seen: dict[tuple[str, str], float] = {}

    def bind(self, wanted: Workspace | None, session_key: str) -> tuple[Path, str]:
        """Root and nonce of the workspace, made if it is the session's own. Blocking."""
        if wanted is not None:
            root = Path(wanted.root)
            if not root.is_absolute() or not root.is_dir():
                raise not_here(f"there is no directory {wanted.root!r} on this worker")
        else:
            name = hashlib.sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()[:24]
            root = self._data_dir / "workspaces" / name
            root.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        return root, _nonce(root)

    async def find(self, recorded: RecordedPlace) -> Place:
        """The place as this worker sees it; NotHere when the marker says that it is another."""
        key = (recorded.root, recorded.nonce)
        if time.monotonic() - self._seen.get(key, -SEEN_LASTS_SECONDS) >= SEEN_LASTS_SECONDS:
            await asyncio.to_thread(_look, recorded)
            self._seen.pop(key, None)
            self._seen = {key: time.monotonic(), **dict(islice(self._seen.items(), KEPT_PLACES))}
        return Place(
            root=Path(recorded.root),
            cwd=Path(recorded.cwd or recorded.root),
            offloaded=_offloaded(self._data_dir, recorded.agent, recorded.user_id, recorded.session_id),
            ruled=recorded.ruled,
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


def not_here(why: str) -> ApplicationError:
    """The error of a worker that can't do what another one may; nothing was done.

    The server hands tasks to pollers in turn, five of each worker: the first tries are quick, to get past those of a
    worker that can't; later ones wait for a worker that is only starting.
    """
    quick = not activity.in_activity() or activity.info().attempt <= QUICK_TRIES
    return ApplicationError(why, type=NOT_HERE, next_retry_delay=timedelta(seconds=0.3 if quick else 5))


def _nonce(root: Path) -> str:
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
    return nonce


def _publish(marker: Path, nonce: str) -> None:
    """All or nothing, first one wins: two workers that bind at once must agree."""
    draft = marker.with_name(f"workspace.{nonce}")
    draft.write_text(nonce, encoding="ascii")
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
        file = os.open(marker, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            regular = stat.S_ISREG(os.fstat(file).st_mode)
            found = os.read(file, NONCE_CAP_BYTES + 1) if regular and not marker.parent.is_symlink() else b""
        finally:
            os.close(file)
        return found.decode("ascii").strip() if 0 < len(found) <= NONCE_CAP_BYTES else None
    except (OSError, UnicodeDecodeError):
        return None
