"""`read_regular` reads a file of a folder filled by strangers: whoever made an archive may have put a pipe there,
or a link, or a file as large as the disk. On a pipe a reader waits for ever."""

import os
import stat
from pathlib import Path


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
