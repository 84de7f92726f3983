"""Blocking work in threads, beside the loop: of our own tools, which is over when its call is over, and of functions
that nobody can end from outside. One that is still at it when its call is over is noted, so that nobody says of it that
it was stopped.

Code of the operator's may raise what is no `Exception`: `sys.exit()` in it, a library in Rust that panics, a
CancelledError of its own. Passed on, such an error ends the worker, or is tried again for hours without a word.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar


def is_cancelled_here(error: BaseException) -> bool:
    """Whether whoever waits for the task at work has cancelled it; all else is a failure of the code that raised it."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


Result = TypeVar("Result")

GRACE_SECONDS = 1.0
"""So long a cancelled call waits for its thread to end: who interrupts waits too."""
FILE_THREADS = 32
"""For files of workspaces. Apart from the loop's own threads, which are six on two processors: a disk that has stopped
answering would use those up for whatever else the worker does."""


async def in_thread(work: Callable[[threading.Event], Result], *, writes: bool = False) -> Result:
    """Run `work` in a thread. Its argument is set when the call is cancelled: work that takes long looks at it.

    A cancelled call leaves the thread behind, for a disk that does not answer would hold it for ever; one that writes
    leaves only when the thread has ended, so that nothing is written after a call was reported dead.
    """
    stop = threading.Event()
    task = asyncio.get_running_loop().run_in_executor(_FILES, copy_context().run, work, stop)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        stop.set()
        while writes and not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        if not task.cancel() and not task.cancelled():
            task.exception()  # Looked at, so that the loop does not complain of an error that nobody retrieved.
        raise
    return task.result()


class CallThreads:
    """What one call does in threads."""

    def __init__(self) -> None:
        self._started: list[Future[Any]] = []
        self._left: list[Future[Any]] = []

    def note(self, work: Future[Any]) -> None:
        self._started.append(work)

    def leave(self, work: Future[Any]) -> None:
        """Of a call that is over: it had its time to end."""
        self._left.append(work)

    async def run_on(self) -> bool:
        """Whether a thread is still at it, of a call that is over; those that may still end get GRACE_SECONDS."""
        loop = asyncio.get_running_loop()
        until = loop.time() + GRACE_SECONDS
        while all(work.done() for work in self._left):
            if all(work.done() for work in self._started):
                return False
            if loop.time() > until:
                return True
            await asyncio.sleep(GRACE_SECONDS / 20)
        return True


_of_call: ContextVar[CallThreads | None] = ContextVar("longhaul_threads", default=None)


@contextlib.contextmanager
def noting_threads() -> Iterator[CallThreads]:
    """Within the block, what is done in threads is noted."""
    threads = CallThreads()
    token = _of_call.set(threads)
    try:
        yield threads
    finally:
        _of_call.reset(token)


class NotingPool(ThreadPoolExecutor):
    """The event loop's own threads, where `asyncio.to_thread` goes: what a call begins there is noted with it."""

    def submit(self, fn: Callable[..., Result], /, *arguments: Any, **named: Any) -> Future[Result]:
        work = super().submit(fn, *arguments, **named)
        if threads := _of_call.get():
            threads.note(work)
        return work

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002  as inherited
        """Waits for nobody: who wanted the work is gone, and one that hangs would keep the worker from leaving."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)


_FILES = NotingPool(FILE_THREADS, "longhaul-files")


async def in_own_thread(work: Callable[[threading.Event], Result]) -> Result:
    """Run blocking work in its own thread, and return or raise what `work` does.

    The argument of `work` is an event, which is set when the call is cancelled. A cancelled call gives the thread
    GRACE_SECONDS; a result within that time counts. Afterwards the thread is left behind. There is no pool: threads
    that never end would use it up for everybody, and delay the worker's exit.
    """
    loop, ended, stop = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    outcome, context = Future[Result](), copy_context()

    def run() -> None:
        try:
            outcome.set_result(context.run(work, stop))
        except BaseException as error:  # noqa: BLE001  raised again where the call is awaited
            outcome.set_exception(error)
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it whoever waited
            loop.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=run, name="longhaul-tool", daemon=True)
    thread.start()
    try:
        await ended.wait()
    except asyncio.CancelledError:
        stop.set()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await ended.wait()
        if not outcome.done():
            if threads := _of_call.get():
                threads.leave(outcome)
            raise
    return outcome.result()
