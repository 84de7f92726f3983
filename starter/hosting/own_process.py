"""Closes a worker's process to other processes of its user."""

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_PR_SET_DUMPABLE = 4
_STDERR = 2


def keep_to_itself() -> None:
    """Close /proc/PID/environ and the memory of this process, where the keys are, to other processes of the same user:
    to the commands that an agent runs. Linux only, and without effect against root. No core dumps either, and none of
    its starter's files for the programs that it starts."""
    if sys.platform == "linux":
        _close_to_children()
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _close_to_children() -> None:
    """All but stdin, stdout and stderr: uvloop would hand them on to each program that it starts."""
    for place in Path("/proc/self/fd").iterdir():
        if int(place.name) > _STDERR:
            with contextlib.suppress(OSError):  # the one through which we look is closed by now
                os.set_inheritable(int(place.name), False)  # noqa: FBT003  it takes no names
