"""Work in threads that never ends: it costs others nothing, and holds up no exit."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from longhaul.activities.context import prompt_hooks
from longhaul.activities.context.prompt_hooks import PromptContext, PromptHooks
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.process.threads import in_own_thread, in_thread

EXIT = """
import asyncio, os, threading
from longhaul.activities.process.threads import NotingPool
from longhaul.starter.worker_host.own_process import new_event_loop

async def main():
    asyncio.get_running_loop().set_default_executor(NotingPool(1))
    hanging = asyncio.ensure_future(asyncio.to_thread(threading.Event().wait))
    await asyncio.sleep(0.1)
    hanging.cancel()

with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(main())
print("left", flush=True)
os._exit(0)
"""


async def _hook(ends: threading.Event) -> None:
    def hang(_prompt: str, _context: PromptContext) -> str:
        ends.wait()
        return ""

    with pytest.raises(SetupError, match="took longer"):
        await PromptHooks({"hang": hang}).apply("", PromptContext("mason", None, "wall", "scripted:x", 1))


async def _own(ends: threading.Event) -> None:
    async with asyncio.timeout(0.1):
        await in_own_thread(lambda _: ends.wait())


async def _files(ends: threading.Event) -> None:
    await in_thread(lambda _: ends.wait())


@pytest.mark.parametrize("hanging", [_hook, _own, _files])
async def test_what_hangs_leaves_the_loops_own_threads_to_others(
    hanging: Callable[[threading.Event], Awaitable[None]], monkeypatch: pytest.MonkeyPatch, own_threads: int
) -> None:
    monkeypatch.setattr(prompt_hooks, "HOOK_SECONDS", 0.1)
    ends = threading.Event()
    started = [asyncio.ensure_future(hanging(ends)) for _ in range(own_threads + 1)]
    try:
        await asyncio.sleep(0.5)
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(os.getpid) == os.getpid()
    finally:
        ends.set()
        await asyncio.gather(*started, return_exceptions=True)


def test_a_thread_that_hangs_does_not_keep_a_worker_from_leaving(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", EXIT], cwd=tmp_path, capture_output=True, timeout=30, check=True)

    assert done.stdout == b"left\n"
