"""Threads for drivers that block: bounded, used again, and never waited for at the end."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from longhaul.stores.blocking_calls import Threads
from tests.limits import SURE_SECONDS


async def test_work_after_work_begins_no_new_threads() -> None:
    threads = Threads(20)
    names = set[int]()

    for _ in range(20):
        names.add(await threads.run(threading.get_ident, 5))
        await asyncio.sleep(0.03)

    assert len(names) <= 5  # a thread may not be idle yet when the next work comes


async def test_no_more_is_done_at_once_than_there_are_threads() -> None:
    threads, lock = Threads(2), threading.Lock()
    busy, most = 0, 0

    def work() -> None:
        nonlocal busy, most
        with lock:
            busy += 1
            most = max(most, busy)
        time.sleep(0.02)
        with lock:
            busy -= 1

    await asyncio.gather(*(threads.run(work, 10) for _ in range(10)))

    assert most == 2


async def test_work_that_hangs_holds_up_nothing_while_a_thread_is_free() -> None:
    threads, freed = Threads(2), threading.Event()
    hanging = asyncio.create_task(threads.run(freed.wait, 30))
    await asyncio.sleep(0.01)

    assert [await threads.run(lambda: "done", 5) for _ in range(5)] == ["done"] * 5

    freed.set()
    assert await hanging


async def test_what_takes_too_long_is_a_timeout_and_what_is_raised_comes_back() -> None:
    threads = Threads(2)

    with pytest.raises(TimeoutError):
        await threads.run(lambda: time.sleep(0.2), 0.01)
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0, 5)


def test_a_process_ends_although_its_work_hangs() -> None:
    program = """
import asyncio, time
from longhaul.stores.blocking_calls import Threads
async def main():
    try:
        await Threads(1).run(lambda: time.sleep(60), 0.05)
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=SURE_SECONDS, check=False
    )

    assert (done.returncode, done.stdout.strip()) == (0, "left")
