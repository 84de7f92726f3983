"""Tells where workers keep sessions, users' rules, large values and folders, and whether this client means the same
places.

Blobs are written only where workers read; what is missing is explained.
"""

import asyncio
import base64
import hashlib
import logging
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Set
from pathlib import Path
from typing import Literal, NamedTuple

from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.starter.connection.pollers import workers
from longhaul.starter.connection.query_retries import Pauses
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, NoBlob
from longhaul.stores.state.store import MARK_CHARS, StateStore, StoreError, mark_of, marked, new_mark

PATIENCE_SECONDS = 3.0
"""A worker that began just now is known to the server some moments later."""
START_SECONDS = 5.0
"""For the marks, when a worker starts: what does not answer then is not waited for."""
UNKNOWN = "?"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Of a running kernel: containers have it from their host, and other machines have another one."""

log = logging.getLogger(__name__)


class StoragePlace(NamedTuple):
    kind: str
    """As in settings: `file`, `redis`, `postgresql`, …; `own` for a class of one's own."""
    mark: str
    """UNKNOWN where it could not be read; empty where no worker has left one."""


class Keeper(NamedTuple):
    """A worker, and where it keeps what."""

    name: str
    root: str
    """Of the file system that it stands on."""
    store: StoragePlace
    blobs: StoragePlace


async def own_identity(settings: Settings, store: StateStore, blobs: BlobStore) -> str:
    """Of a worker: its process and host, and the marks of its places, left there when it is the first one."""
    kept = StoragePlace(_kind(settings.store), await _in_time(marked(store), "the state store"))
    large = StoragePlace(_kind(settings.blobs), await _in_time(blobs.mark(new_mark()), "the blobs"))
    log.info("sessions are kept in %s, large values in %s", described(settings, "store", kept), blobs.place)
    return "/".join((f"{os.getpid()}@{socket.gethostname()}", root_mark(), _write_place(kept), _write_place(large)))


async def _in_time(mark: Awaitable[str], what: str) -> str:
    """A worker starts without its store too; clients are told then that it does not know which it is."""
    try:
        async with asyncio.timeout(START_SECONDS):
            return await mark or UNKNOWN
    except (StoreError, BlobsUnavailable, TimeoutError) as error:
        log.warning("clients cannot learn which place %s is: %s", what, str(error) or "no answer in time")
        return UNKNOWN


async def keepers(client: Client, queue: str) -> list[Keeper]:
    """The workers that poll a task queue, as far as they are ours. Raises RPCError."""
    return [keeper for name in await workers(client, queue) if (keeper := keeper_of(name)) is not None]


def keeper_of(identity: str) -> Keeper | None:
    """What a worker's identity says; None for one that is not of this shape."""
    name, *rest = identity.rsplit("/", 3)
    told = [place for each in rest[1:] if (place := _read(each)) is not None]
    return Keeper(name, rest[0], *told) if len(told) == 2 and _is_mark(rest[0]) else None


_LETTERS = {"file": "f", "sqlite": "s", "redis": "r", "postgresql": "p", "mysql": "m", "memory": "y", "own": "o"}
"""The identity stands in ten events of each step: a word for the kind would cost as much as the mark."""
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}


def _write_place(place: StoragePlace) -> str:
    letter = _LETTERS.get(place.kind)
    return f"{letter}{place.mark}" if letter else ":".join(place)


def _read(spelt: str) -> StoragePlace | None:
    kind, colon, mark = spelt.partition(":")
    if colon:
        return StoragePlace(kind, mark) if mark and ":" not in mark else None
    kind = _KINDS.get(spelt[:1], "")
    mark = spelt[1:]
    return StoragePlace(kind, mark) if kind and _is_mark(mark) else None


def _is_mark(word: str) -> bool:
    return word == UNKNOWN or len(word) == MARK_CHARS


def root_mark() -> str:
    """The root of the file system that this process sees. Two processes with one mark mean the same by a path; of a
    container it is another one, whatever host name and network it was given."""
    try:
        machine = BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        machine = str(uuid.getnode())
    root = Path("/").stat()
    digest = hashlib.sha256(f"{machine}:{root.st_dev}:{root.st_ino}".encode()).digest()
    return base64.urlsafe_b64encode(digest)[:MARK_CHARS].decode()


async def why_no_rule_holds(client: Client, settings: Settings, store: StateStore) -> str:
    """Why a rule that is written into this store would bind no session, or perhaps none; empty when it surely does.

    Raises StoreError.
    """
    there = await _some_keepers(client, settings.task_queue)
    if not there:
        return (
            f"no worker of Longhaul polls {settings.task_queue!r}, so nobody knows which store the sessions use: "
            "start one, or set LONGHAUL_TASK_QUEUE as it is for the workers"
        )
    unsure = next((keeper for keeper in there if keeper.store.mark == UNKNOWN), None)
    if unsure is not None:
        return f"worker {unsure.name} could not reach its store when it started: check the store and start it again"
    return _difference(there, settings, "store", await mark_of(store))


async def why_another_store(client: Client, settings: Settings, store: StateStore) -> str:
    """Why this store is not the one that workers write to; empty when it is, and when nobody tells.

    Raises StoreError.
    """
    if settings.store == "memory":
        return ""  # each process has one of its own, and nobody expects to find anything there
    try:
        there = await keepers(client, settings.task_queue)
    except RPCError:
        return ""  # whoever may not ask goes by his settings
    return _difference(there, settings, "store", await mark_of(store))


async def why_other_blobs(client: Client, settings: Settings, blobs: BlobStore) -> str:
    """The same of large values, with some patience for a worker that begins just now. Raises BlobsUnavailable."""
    try:
        there = await _some_keepers(client, settings.task_queue)
    except RPCError:
        return ""
    return _difference(there, settings, "blobs", await blobs.mark())


async def _some_keepers(client: Client, queue: str) -> list[Keeper]:
    pauses = Pauses()
    while True:
        found = await keepers(client, queue)
        if found or pauses.waited > PATIENCE_SECONDS:
            return found
        await pauses.rest()


def _difference(there: list[Keeper], settings: Settings, part: Literal["store", "blobs"], mark: str) -> str:
    for keeper in there:
        place = keeper.store if part == "store" else keeper.blobs
        if place.mark not in (mark, UNKNOWN):
            return _sentence(keeper.name, place, settings, part, mark)
    return ""


def _sentence(worker: str, place: StoragePlace, settings: Settings, part: Literal["store", "blobs"], mark: str) -> str:
    what = "sessions and users' rules" if part == "store" else "large values"
    variable = "LONGHAUL_STORE" if part == "store" else "LONGHAUL_BLOBS"
    shared = "redis://…, postgresql://…" if part == "store" else "redis://…"
    here = described(settings, part, StoragePlace(_kind(getattr(settings, part)), mark))
    return (
        f"worker {worker} keeps {what} in {place.kind}:{place.mark}, and here {variable} leads to {here}, which is "
        f"another place: set {variable} for both to one that both reach ({shared}, or a folder that both mount), or "
        "LONGHAUL_DATA_DIR to the worker's own folder where both are on one machine"
    )


def described(settings: Settings, part: Literal["store", "blobs"], place: StoragePlace) -> str:
    """A place of this process, for people, without passwords."""
    setting = str(getattr(settings, part))
    if place.kind != "file":
        where = setting.partition("://")[2].rpartition("@")[2].partition("?")[0].replace("//", "/") or setting
    elif setting in ("", "file"):
        where = str(settings.data_dir.absolute() / ("sessions" if part == "store" else "blobs"))
    else:
        where = setting.removeprefix("file://")
    known = f"{place.kind}:{place.mark}" if place.mark else f"{place.kind}, in which no worker has ever written"
    return f"{where} ({known})"


def _kind(setting: str) -> str:
    scheme, is_url, _ = setting.partition("://")
    if is_url:
        return scheme.partition("+")[0]
    if setting == "memory":
        return setting
    return "own" if ":" in setting else "file"


async def roots_of_workers(client: Client, queue: str) -> Set[str]:
    """Marks of the file systems that they stand on; empty where nobody tells: none polled lately, or we may not ask."""
    try:
        return {keeper.root for keeper in await keepers(client, queue)}
    except RPCError:
        return set()


def as_workers_see(folder: Path, roots: Set[str], project: str) -> Path | None:
    """The path under which workers with these roots find an absolute folder of ours; None when they don't see it.

    `project`: the folder that is mounted for them, or nothing. Where nobody tells, we are taken to be on one machine.
    """
    if not roots or root_mark() in roots:
        return folder
    if not project:
        return None
    mounted = Path(project).expanduser().absolute()
    # A shell names a folder behind a link by its real path, and the mount may go by the name of the link.
    real, top = folder.resolve(), mounted.resolve()
    return mounted / real.relative_to(top) if real.is_relative_to(top) else None


Why = Callable[[], Awaitable[str]]


class TheirBlobs:
    """Until `ask_by` is called, and after `are_our_own`, just what is inside."""

    def __init__(self, inside: BlobStore) -> None:
        self._inside = inside
        self._why_others: Why | None = None
        self._certain = False

    def ask_by(self, why_others: Why) -> None:
        """`why_others`: why workers keep theirs elsewhere; empty when they don't, or nobody tells."""
        self._why_others = why_others

    def are_our_own(self) -> None:
        """This process is a worker: where it keeps them is where they are."""
        self._why_others = None

    @property
    def place(self) -> str:
        return self._inside.place

    async def put(self, key: str, data: bytes) -> None:
        """Raises BlobsUnavailable, also for a place where no worker would find it."""
        if not self._certain and self._why_others is not None:
            if why := await self._why_others():
                raise BlobsUnavailable(why)
            self._certain = True
        await self._inside.put(key, data)

    async def get(self, key: str) -> bytes:
        try:
            return await self._inside.get(key)
        except NoBlob as error:
            why = await self._why_others() if self._why_others is not None else ""
            raise NoBlob(f"{error}; {why}") if why else error from None

    async def keys(self, prefix: str) -> list[str]:
        return await self._inside.keys(prefix)

    async def delete_prefix(self, prefix: str) -> int:
        return await self._inside.delete_prefix(prefix)

    async def mark(self, new: str = "") -> str:
        return await self._inside.mark(new)

    async def close(self) -> None:
        await self._inside.close()
