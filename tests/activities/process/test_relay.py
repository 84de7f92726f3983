"""The leash of servers: what is written to them and by them goes through, and nothing outlives the worker's end."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from longhaul.activities.process import relay
from tests.activities.process.pids import alive, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc and prctl are Linux's")

RELAY = str(Path(relay.__file__).resolve())
FAMILY = """
(setsid sh -c 'trap "" TERM HUP; echo $$ >> pids; while :; do sleep 1; done') &
trap "" TERM HUP
echo $$ >> pids
while :; do sleep 1; done
"""
"""One that reads nothing, and a child that has left its group; both are deaf."""


async def relayed(folder: Path, *command: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", RELAY, *command, stdin=PIPE, stdout=PIPE, cwd=folder
    )


async def test_what_goes_in_comes_out_and_the_end_of_the_input_is_the_end(tmp_path: Path) -> None:
    process = await relayed(tmp_path, "/bin/cat")
    text = b"tide\n" * 400_000
    assert process.stdin is not None
    assert process.stdout is not None

    process.stdin.write(text)
    out = await asyncio.wait_for(process.stdout.readexactly(len(text)), 30)
    process.stdin.close()
    await asyncio.wait_for(process.wait(), 30)

    assert out == text


async def test_a_program_that_ends_by_itself_ends_its_leash(tmp_path: Path) -> None:
    process = await relayed(tmp_path, "/bin/sh", "-c", "echo last; exit 3")
    assert process.stdout is not None

    assert await process.stdout.read() == b"last\n"
    await asyncio.wait_for(process.wait(), 30)


async def test_what_is_said_ends_with_the_program_and_not_with_its_leash(tmp_path: Path) -> None:
    process = await relayed(tmp_path, "/bin/sh", "-c", "echo last; exec >&-; exec sleep 300")
    assert process.stdin is not None
    assert process.stdout is not None

    assert await asyncio.wait_for(process.stdout.read(), 30) == b"last\n"
    assert process.returncode is None
    process.stdin.close()
    await asyncio.wait_for(process.wait(), 30)


@pytest.mark.parametrize("how", ["input closed", "input closed while it waits", "terminated"])
async def test_nothing_is_left_of_a_program_that_reads_nothing_and_hears_nothing(how: str, tmp_path: Path) -> None:
    process = await relayed(tmp_path, "/bin/sh", "-c", FAMILY)
    assert process.stdin is not None
    pids = tmp_path / "pids"
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    family = [int(pid) for pid in pids.read_text().split()]
    assert all(map(alive, family))

    if how == "input closed while it waits":
        process.stdin.write(b"x" * 1_000_000)  # more than the pipes hold
    if how == "terminated":
        process.terminate()
    else:
        process.stdin.transport.abort()  # as the kernel closes it for a killed worker
    await asyncio.wait_for(process.wait(), 30)
    await until(lambda: not any(map(alive, family)))
