"""Workers that are killed one after another at random: `python -m tests.e2e.dying_workers KILLS SEED`.

Each is a fork of this process, which has imported all that a worker is made of: what a start costs beside that, fifty
kills would pay fifty times. It says so when it begins, and OVER when the last one is dead.
"""

import ctypes
import os
import random
import signal
import sys
import time

from longhaul.worker import READY, main

OVER = "all are dead"
LEAST_SECONDS, MOST_SECONDS = 0.2, 1.5
"""For which each works."""
_SIGNAL_OF_A_PARENTS_DEATH = 1


def kill_one(seconds: float) -> None:
    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        # Else it would outlive a test that fails.
        ctypes.CDLL(None).prctl(_SIGNAL_OF_A_PARENTS_DEATH, signal.SIGKILL)
        os.dup2(theirs, sys.__stdout__.fileno() if sys.__stdout__ else 1)
        os._exit(main())
    os.close(theirs)
    with os.fdopen(ours, "rb") as said:
        if not said.readline().startswith(READY.encode()):
            sys.exit("a worker did not start")
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    kills, chance = int(sys.argv[1]), random.Random(int(sys.argv[2]))  # noqa: S311  nothing is kept secret by it
    print(READY, flush=True)
    for _ in range(kills):
        kill_one(chance.uniform(LEAST_SECONDS, MOST_SECONDS))
    print(OVER, flush=True)
