"""What a worker's process gives away to other processes of its user: nothing."""

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def keep_to_itself() -> None:
    """Close /proc/PID/environ and the memory of this process, where the keys are, to other processes of the same user:
    to the commands that an agent runs. Linux only, and without effect against root. No core dumps either."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
