"""The names that a git index holds, read without git: running git in a hostile repository is what is to be avoided."""

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath

from longhaul.agent.permission.call_facts import is_secret

_HEADER = struct.Struct(">4sII")
_OUT_OF_THE_TREE = re.compile(rb"(?:\A|/)(?:\.{0,2}|\.git)(?:/|\Z)", re.IGNORECASE)
"""What git would not have put there itself, and reads as it stands."""
_FIXED_BYTES = 62
"""Of each entry before its name; two more with the extended flag."""
_GITLINK = 0o160000
_SPARSE_FOLDER = 0o040000
INDEX_CAP_BYTES = 100_000_000


class UnreadableIndex(Exception):
    """The index is not one that this reading understands, so nothing can be said of what is tracked."""


@dataclass(frozen=True, slots=True)
class Tracked:
    secrets: tuple[str, ...] = ()
    """Those files, relative to the working tree, that may hold secrets by their names."""
    modules: tuple[str, ...] = ()
    """Folders in which a submodule belongs."""
    folders: tuple[str, ...] = ()
    """That hold a file, or one that does."""
    listing: str = ""
    """All names, each behind a NUL: one text, for there may be hundreds of thousands."""

    @property
    def names(self) -> list[str]:
        return self.listing.split("\0")[1:]


def tracked_in(index: Path) -> Tracked:
    """What the index names; nothing when there is none. Raises UnreadableIndex, OSError."""
    try:
        status = index.stat()
    except FileNotFoundError:
        return Tracked()
    if status.st_size > INDEX_CAP_BYTES or not index.is_file():
        raise UnreadableIndex(f"{index.name} is too large, or no file")
    return _read(index, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=8)
def _read(index: Path, *_stamp: int) -> Tracked:
    try:
        return _parsed(index.read_bytes())
    except (struct.error, IndexError, ValueError) as error:
        raise UnreadableIndex(f"{index.name} can't be read: {error}") from None


def _parsed(data: bytes) -> Tracked:
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(f"version {version}")
    secrets: list[str] = []
    modules: list[str] = []
    folders: set[str] = set()
    names = [""]
    at, name = _HEADER.size, b""
    for _ in range(count):
        mode = int.from_bytes(data[at + 24 : at + 28])
        begin = at + _FIXED_BYTES + (2 if data[at + 60] & 0x40 else 0)
        kept, begin = _kept_of_last(data, begin, name) if version == 4 else (b"", begin)
        end = data.index(b"\0", begin)
        name = kept + data[begin:end]
        text = name.decode(errors="surrogateescape")
        if _OUT_OF_THE_TREE.search(name) and mode != _SPARSE_FOLDER:
            raise ValueError("a name that leads out of the working tree")
        folders.add(text.rpartition("/")[0])
        names.append(text)
        if mode == _GITLINK:
            modules.append(text)
        elif is_secret(tuple(text.lower().split("/"))):
            secrets.append(text)
        # Entries are padded with 1 to 8 NUL to a multiple of eight bytes, but for version 4.
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == _SPARSE_FOLDER:
            raise ValueError("it is sparse")
    if data[at : at + 4] == b"link":
        raise ValueError("it is split")
    above = {str(parent) for folder in folders for parent in (PurePosixPath(folder), *PurePosixPath(folder).parents)}
    return Tracked(tuple(secrets), tuple(modules), tuple(sorted(above - {"", "."})), "\0".join(names))


def _kept_of_last(data: bytes, at: int, name: bytes) -> tuple[bytes, int]:
    """In version 4 a name begins with how much of the end of the last one is cut off."""
    cut = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        cut = ((cut + 1) << 7) | (data[at] & 0x7F)
    if cut > len(name):
        raise ValueError("a name that is cut too far")
    return name[: len(name) - cut], at + 1
