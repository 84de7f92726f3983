"""`FolderChanges` tells readers that something in their folder has changed, by Linux's inotify: one descriptor for all
readers of an event loop, for the number that a user may have of them is small.

Elsewhere, and where the limits of inotify are reached, it hears of nothing, and its readers look by themselves.
"""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakSet

if TYPE_CHECKING:
    from asyncinotify import Inotify, Watch

_changes: "WeakKeyDictionary[asyncio.AbstractEventLoop, FolderChanges]" = WeakKeyDictionary()


class FolderChanges:
    """Those of one event loop; `of_this_loop()` has them."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._hearing: asyncio.Task[None] | None = None
        self._watches: dict[Path, Watch] = {}
        self._readers: dict[Path, WeakSet[asyncio.Event]] = {}
        """Weakly: of a reader that nobody has closed, the watch goes with the next change."""

    def tell(self, folder: Path, changed: asyncio.Event) -> bool:
        """Set the event at each change in the folder from now on; asked again it costs nothing. False where no change
        is heard of: of a folder that is not there, too."""
        if folder not in self._watches and not self._watch(folder):
            return False
        self._readers.setdefault(folder, WeakSet()).add(changed)
        return True

    def leave(self, folder: Path, changed: asyncio.Event) -> None:
        readers = self._readers.get(folder)
        if readers is not None:
            readers.discard(changed)
            if not readers:
                self._forget(folder)

    def _watch(self, folder: Path) -> bool:
        if sys.platform != "linux":
            return False
        from asyncinotify import Inotify, Mask  # noqa: PLC0415  can't be imported elsewhere

        wanted = Mask.MODIFY | Mask.CREATE | Mask.MOVED_TO | Mask.DELETE_SELF | Mask.MOVE_SELF
        try:
            if self._inotify is None:
                self._inotify = Inotify()
            self._watches[folder] = self._inotify.add_watch(folder, wanted | Mask.ONLYDIR)
        except OSError:
            return False
        if self._hearing is None:
            self._hearing = asyncio.create_task(self._hear(self._inotify))
        return True

    async def _hear(self, inotify: "Inotify") -> None:
        from asyncinotify import Mask  # noqa: PLC0415

        try:
            while self._watches:
                event = await inotify.get()
                if event.mask & Mask.Q_OVERFLOW:
                    for folder in list(self._watches):
                        self._say(folder)
                elif event.watch is not None and self._watches.get(event.watch.path) is event.watch:
                    self._say(event.watch.path)
                    if event.mask & (Mask.DELETE_SELF | Mask.MOVE_SELF | Mask.IGNORED):
                        self._forget(event.watch.path)
        finally:
            inotify.close()
            self._inotify = self._hearing = None  # a task holds its loop, which could not be collected
            self._watches.clear()
            self._readers.clear()

    def _say(self, folder: Path) -> None:
        readers = self._readers.get(folder)
        for changed in readers or ():
            changed.set()
        if not readers:
            self._forget(folder)

    def _forget(self, folder: Path) -> None:
        """Its readers must ask again: a folder of this name that is made anew is another."""
        self._readers.pop(folder, None)
        watch = self._watches.pop(folder, None)
        if watch is not None and self._inotify is not None:
            with contextlib.suppress(OSError):  # of a folder that is gone
                self._inotify.rm_watch(watch)


def of_this_loop() -> FolderChanges:
    loop = asyncio.get_running_loop()
    if loop not in _changes:
        _changes[loop] = FolderChanges()
    return _changes[loop]
