"""A worker's loop starts programs, whatever other threads do meanwhile."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path

import pytest

from tests.e2e.processes import a_while, running_with
from tests.limits import usual

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no uvloop for Windows")

ROOT = Path(__file__).parents[3]
PRODUCT = ("longhaul/agent", "longhaul/stores", "activities", "workflows", "starter")
STARTS = 1_500
CHURN = """
import asyncio, ctypes, sys, threading
from longhaul.starter.worker_host.own_process import new_event_loop

libc = ctypes.CDLL(None)
touch = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: None)

def come_and_go():
    thread = ctypes.c_ulong()
    while True:
        libc.pthread_create(ctypes.byref(thread), None, touch, None)
        libc.pthread_join(thread, None)

async def main():
    for _ in range(3):
        threading.Thread(target=come_and_go, daemon=True).start()
    for _ in range(int(sys.argv[1])):
        process = await asyncio.create_subprocess_exec("true")
        assert await process.wait() == 0
    print("all ended", flush=True)

with asyncio.Runner(loop_factory=new_event_loop) as runner:
    runner.run(main())
"""


@pytest.fixture(params=["told by the kernel", "waited for in a thread"])
def end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "waited for in a thread":
        monkeypatch.delattr(os, "pidfd_open")
    return str(request.param)


def test_starts_hang_on_no_thread_that_comes_or_goes() -> None:
    """With uvloop's own way this stands still within some hundred starts."""
    command = [sys.executable, "-c", CHURN, str(STARTS)]

    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)

    assert ended.stdout == "all ended\n"


@pytest.mark.usefixtures("end")
async def test_both_ways_of_a_pipe_and_the_status() -> None:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", "cat; echo $DUNE >&2; pwd >&2; exit 7"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={"DUNE": "sand"},
        cwd="/",
    )

    assert await process.communicate(b"x" * 1_000_000) == (b"x" * 1_000_000, b"sand\n/\n")
    assert await process.wait() == 7


@pytest.mark.usefixtures("end")
async def test_a_line_of_the_shell() -> None:
    process = await asyncio.create_subprocess_shell("echo one; echo two >&2", stdout=PIPE, stderr=STDOUT)

    said, _ = await process.communicate()
    assert said == b"one\ntwo\n"


@pytest.mark.usefixtures("end")
async def test_every_way_to_end_it() -> None:
    for way, number in (("terminate", signal.SIGTERM), ("kill", signal.SIGKILL), ("outside", signal.SIGINT)):
        process = await asyncio.create_subprocess_exec("sleep", "60", stdin=DEVNULL)
        if way == "outside":
            os.kill(process.pid, number)
        else:
            getattr(process, way)()

        assert await process.wait() == -number
        with pytest.raises(ProcessLookupError):
            process.kill()


@pytest.mark.usefixtures("end")
async def test_its_end_is_told_while_another_holds_its_output() -> None:
    process = await asyncio.create_subprocess_exec("sh", "-c", "sleep 60 & echo $!", stdout=PIPE)
    assert process.stdout is not None
    other = int(await process.stdout.readline())

    began = time.monotonic()
    assert await process.wait() == 0
    assert time.monotonic() - began < usual(20)

    os.kill(other, signal.SIGKILL)
    assert await process.stdout.read() == b""


@pytest.mark.usefixtures("end")
async def test_what_cannot_be_started_says_why_and_leaves_nothing_open(tmp_path: Path) -> None:
    before = _open()

    with pytest.raises(FileNotFoundError, match="no-such-program"):
        await asyncio.create_subprocess_exec("no-such-program", stdin=PIPE, stdout=PIPE)
    with pytest.raises(FileNotFoundError, match="no-such-folder"):
        await asyncio.create_subprocess_exec("true", cwd=tmp_path / "no-such-folder", stdout=PIPE)
    with pytest.raises(PermissionError):
        await asyncio.create_subprocess_exec(str(tmp_path))

    assert _open() == before


async def test_a_hundred_ends_leave_nothing_open() -> None:
    before = _open()

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(_whole())
    await asyncio.sleep(0.1)

    assert _open() <= before


async def _whole() -> None:
    process = await asyncio.create_subprocess_exec("echo", "sand", stdout=PIPE, stderr=PIPE)
    assert await process.communicate() == (b"sand\n", b"")


async def test_one_that_is_given_up_while_it_starts_is_ended() -> None:
    mark = a_while()
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec("sleep", mark, stdin=PIPE, stdout=PIPE))
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting

    async with asyncio.timeout(20):
        while running_with(f"sleep\0{mark}"):  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.05)


def _open() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())


def test_nothing_else_of_the_product_makes_a_loop_of_uvloop() -> None:
    files = [file for room in PRODUCT for file in (ROOT / room).rglob("*.py")]

    users = {str(file.relative_to(ROOT)) for file in files if re.search(r"\buvloop\.\w", file.read_text())}

    assert users == {"starter/worker_host/event_loop.py"}
