"""Names that come from outside, made into names of files: harmless, readable where they are plain, never the same for
two (on file systems that tell capitals from small letters).

Plain is ASCII letters and digits, and `.`, `_`, `-` after the first character. Everything else is percent-escaped; a
long name keeps its start and ends in `~` and a sha-256. The empty name is `=`, and nobody is `~`.

`read_regular` reads a file of a folder filled by strangers: whoever made an archive may have put a pipe there,
or a link, or a file as large as the disk. On a pipe a reader waits for ever.
"""

import hashlib
import os
import re
import stat
from functools import lru_cache
from pathlib import Path

LONGEST = 120
"""Characters before a name is cut. With its digest, a prefix and an ending it fits into the usual 255 bytes."""

_ODD_FIRST, _ODD = re.compile(r"[^A-Za-z0-9]"), re.compile(r"[^A-Za-z0-9._-]+")


@lru_cache(maxsize=4_096)
def safe_name(raw: str) -> str:
    """One name of a path: never empty, `.` or `..`, and without separators, control characters or a leading dot."""
    if not raw:
        return "="
    escaped = _ODD_FIRST.sub(_in_hexadecimal, raw[0]) + _ODD.sub(_in_hexadecimal, raw[1:])
    if len(escaped) <= LONGEST:
        return escaped
    digest = hashlib.sha256(escaped.encode("ascii")).hexdigest()
    start = escaped[:LONGEST]
    # Not half an escape at the end, for the eye; the digest alone tells names apart.
    return f"{start[:-2] + start[-2:].partition('%')[0]}~{digest}"


def owner_name(agent: str, user_id: str | None) -> str:
    """`agent/user`: what one owner has offloaded lies below it. The anonymous user is no user's name."""
    return f"{safe_name(agent)}/{'~' if user_id is None else safe_name(user_id)}"


def workdir_of(data_dir: Path, owner: str) -> Path:
    """The owner's folder in a worker's data directory, whose links must be resolved: reading tools compare paths."""
    return data_dir / "offload" / owner


def readable_folders(workdir: Path, session_id: str) -> tuple[Path, Path]:
    """What the session's own tools may read unasked: what it offloaded, and the attachments of its owner."""
    return workdir / "sessions" / safe_name(session_id), workdir / "data"


def _in_hexadecimal(odd: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in odd[0].encode("utf-8", "surrogatepass"))


class NotRegular(OSError):
    """A pipe, a folder, or a file with more bytes than are read."""


def read_regular(file: Path | str, most_bytes: int) -> bytes:
    """All of it. Raises FileNotFoundError, NotRegular, and OSError for a link too."""
    opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
            raise NotRegular(f"{str(file)!r} is no file of at most {most_bytes} bytes")
        return os.read(opened, most_bytes)
    finally:
        os.close(opened)
