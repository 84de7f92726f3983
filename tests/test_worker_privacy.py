"""The worker's memory holds the keys: nothing that an agent runs may read it through /proc."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
ASK = (
    "import ctypes; from longhaul.starter.worker_host.own_process import keep_to_itself; keep_to_itself(); "
    "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")
def test_a_worker_is_closed_to_other_processes_of_its_user() -> None:
    asked = subprocess.run([sys.executable, "-c", ASK], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    assert asked.stdout == "0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_files_that_were_open_around_a_worker_are_not_handed_on_to_its_programs() -> None:
    """uvloop closes none of them."""
    began = (
        "import asyncio; "
        "from longhaul.starter.worker_host.own_process import keep_to_itself, new_event_loop; "
        "keep_to_itself(); run = asyncio.create_subprocess_exec; "
        "main = lambda: asyncio.wait_for(spawn(), 20)\n"
        "async def spawn(): await (await run('ls', '/proc/self/fd')).wait()\n"
        "with asyncio.Runner(loop_factory=new_event_loop) as runner: runner.run(main())"
    )
    kept, other = os.pipe()

    seen = subprocess.run(
        [sys.executable, "-c", began], cwd=REPOSITORY, capture_output=True, text=True, check=True, pass_fds=(kept,)
    )

    assert str(kept) not in seen.stdout.split()
    assert "2" in seen.stdout.split()
    os.close(kept)
    os.close(other)
