"""tiktoken's encodings, where their files are at hand already: nothing is ever downloaded, and nobody waits.

tiktoken fetches a missing file when it is first asked, without a limit of time. So it is asked only when the file lies
where tiktoken would look, whole and unspoilt, and in a thread of its own: loading takes half a second, and holds the
interpreter for 150 ms of it, once in a process.
"""

import asyncio
import hashlib
import logging
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import tiktoken

from longhaul.agent.values.spec.known_names import split_model

log = logging.getLogger(__name__)

LARGEST_FILE_BYTES = 50_000_000

_O200K = (
    "fb374d419588a4632f3f557e76b4b70aebbca790",
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
)
_CL100K = (
    "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
)

FILES: Mapping[str, tuple[str, str]] = {"o200k_base": _O200K, "o200k_harmony": _O200K, "cl100k_base": _CL100K}
"""The file's name in the cache (sha-1 of the address) and its sha-256, as tiktoken has them."""


def encoding_name(model: str) -> str:
    """The encoding of an OpenAI model, named with our prefix and an organisation or without; empty when unknown."""
    name = (split_model(model)[1] or model).rpartition("/")[2]
    try:
        return tiktoken.encoding_name_for_model(name)
    except KeyError:
        return ""


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Where tiktoken keeps its files; None where it was told to keep none."""
    default = str(Path(tempfile.gettempdir(), "data-gym-cache"))
    folder = environ.get("TIKTOKEN_CACHE_DIR", environ.get("DATA_GYM_CACHE_DIR", default))
    return Path(folder) if folder else None


def at_hand(name: str, environ: Mapping[str, str] = os.environ, files: Mapping[str, tuple[str, str]] = FILES) -> bool:
    """Whether tiktoken can load the encoding without the network: a file that is spoilt would be fetched again."""
    folder = cache_folder(environ)
    if folder is None or name not in files:
        return False
    file_name, digest = files[name]
    path = folder / file_name
    try:
        # The default folder is everybody's: a pipe there would be waited for, an endless file read to its end.
        if not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES:
            return False
        return hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except (OSError, ValueError):
        return False


@dataclass
class _Search:
    over: threading.Event = field(default_factory=threading.Event)
    found: tiktoken.Encoding | None = None


class Encodings:
    """The encodings of one process; each is looked for once."""

    def __init__(
        self,
        is_at_hand: Callable[[str], bool] = at_hand,
        load: Callable[[str], tiktoken.Encoding] = tiktoken.get_encoding,
    ) -> None:
        self._is_at_hand = is_at_hand
        self._load = load
        self._searches: dict[str, _Search] = {}
        self._starting = threading.Lock()

    def get(self, name: str) -> tiktoken.Encoding | None:
        """The encoding if it is there by now; the first call starts the search. Never waits, never raises."""
        return self._search(name).found if name in FILES else None

    async def wait(self, name: str, longest_seconds: float) -> None:
        """Until the search is over, at most so long."""
        if name in FILES and not (over := self._search(name).over).is_set():
            await asyncio.to_thread(over.wait, longest_seconds)

    def _search(self, name: str) -> _Search:
        with self._starting:
            search = self._searches.get(name)
            if search is None:
                search = self._searches[name] = _Search()
                # A daemon: whatever the loading hangs on must not keep the process from ending.
                threading.Thread(target=self._run, args=(name, search), name=f"load {name}", daemon=True).start()
        return search

    def _run(self, name: str, search: _Search) -> None:
        try:
            if self._is_at_hand(name):
                search.found = self._load(name)
            else:
                log.info("tokens of %s are estimated: its file is not in tiktoken's cache", name)
        except Exception as error:  # noqa: BLE001  whatever a library's loading fails on, there is the estimate
            log.warning("tokens of %s are estimated: loading it failed: %s", name, error)
        finally:
            search.over.set()
