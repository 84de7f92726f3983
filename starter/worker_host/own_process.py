"""A worker's process: closed to other processes of its user, stopped by a signal within a time, on uvloop where there
is one.

What it says about itself goes to stderr, in the form of its log.
"""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import NoReturn

from longhaul.starter.telemetry.switches import logs_wanted

log = logging.getLogger("longhaul.worker")


def say(sentence: str) -> None:
    """A sentence of the code's own: it may go on over several lines, which are one in a structured log."""
    if logs_wanted().structured:
        log.warning(" ".join(sentence.split()))
    else:
        print(f"longhaul worker: {sentence}", file=sys.stderr, flush=True)


LAST_SECONDS = 8.0
"""What a worker needs at most to tell of what it has cut short. With the 20 s of running calls it is less than the 30
after which Kubernetes kills. A tool that does not let itself be cancelled, or a server that is away, gets no more."""
_PR_SET_DUMPABLE = 4
_STDERR = 2
_COLLECTING = (10_000, 20, 50)
"""Objects, and collections of a generation, until the next one. Python's own (700, 10, 10) takes a twelfth of a busy
worker's time: what an activation makes lives as long as its task does, and is looked at in vain until then."""


def keep_to_itself() -> None:
    """Close /proc/PID/environ and the memory of this process, where the keys are, to other processes of the same user:
    to the commands that an agent runs. Linux only, and without effect against root. No core dumps either, and none of
    its starter's files for the programs that it starts."""
    if sys.platform == "linux":
        _close_to_children()
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _close_to_children() -> None:
    """All but stdin, stdout and stderr, for a library that starts programs without closing what is open."""
    for place in Path("/proc/self/fd").iterdir():
        if int(place.name) > _STDERR:
            with contextlib.suppress(OSError):  # the one through which we look is closed by now
                os.set_inheritable(int(place.name), False)  # noqa: FBT003  it takes no names


def collect_rarely() -> None:
    """Let Python's garbage collector pass over all that was made so far, which lives as long as the process, and come
    less often. To be called when a worker is ready; of no use in a process that is short. It is not looked for garbage
    first: a start leaves 2,000 objects, and to find them would hold up the first poll by a tenth of a second."""
    gc.freeze()
    gc.set_threshold(*_COLLECTING)
    gc.enable()


def asked_to_stop(seconds: float) -> asyncio.Event:
    """Set by the first SIGINT or SIGTERM, which is answered by a line on stderr. The process ends with the second one,
    and LAST_SECONDS after the first one's `seconds`, which running calls get."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _take, number, stop, seconds)
    return stop


def _take(number: signal.Signals, stop: asyncio.Event, seconds: float) -> None:
    if stop.is_set():
        _leave(number, "leaving at once")
    say(f"stopping: running calls get {seconds:g} s to finish; a second signal ends the worker at once")
    # In a thread: what keeps the worker from leaving may stand on its event loop.
    last = threading.Timer(seconds + LAST_SECONDS, _leave, (number, "ending, although something does not stop"))
    last.daemon = True
    last.start()
    stop.set()


def _leave(number: signal.Signals, how: str) -> NoReturn:
    say(f"{how}; what still runs is repeated elsewhere, or has an unknown outcome")
    # Commands die with this process: their supervisors hold a pipe from it.
    os._exit(128 + number)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """To be given to whoever runs one: `asyncio.Runner(loop_factory=new_event_loop)`."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    from longhaul.starter.worker_host.event_loop import WorkerLoop  # noqa: PLC0415  there is no uvloop for Windows

    return WorkerLoop()
