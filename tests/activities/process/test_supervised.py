"""Nothing that a call starts outlives it: real processes, real kills."""

import asyncio
import gc
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest

from longhaul.activities.process.program_output import ClippedBytes
from longhaul.activities.process.program_run import Ending, run_supervised
from longhaul.activities.process.supervisor import NOTE_FD
from tests.limits import usual

pytestmark = pytest.mark.alone

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def shell(command: str, cwd: Path, timeout_seconds: float = 20.0) -> tuple[Ending, ClippedBytes]:
    output = ClippedBytes()
    ending = await run_supervised(("/bin/bash", "-c", command), cwd, ENVIRONMENT, timeout_seconds, output)
    return ending, output


def alive(mark: str) -> list[str]:
    """Command lines of living processes that contain `mark`, which only the test's own processes do."""
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if mark in line:
            lines.append(line)
    return lines


def gone_within(mark: str, seconds: float) -> bool:
    give_up = time.monotonic() + seconds
    while alive(mark):
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True


def open_descriptors() -> int:
    gc.collect()  # else what an earlier test has left is closed in the midst of this one
    return len(list(Path("/proc/self/fd").iterdir()))


async def until_alive(mark: str) -> None:
    while not alive(mark):  # noqa: ASYNC110  what is waited for is a process of another program
        await asyncio.sleep(0.01)


def lasting(mark: str) -> str:
    """A command that runs for a minute under a name that can be found."""
    return f"bash -c 'sleep 60; : {mark}'"


@pytest.fixture
def mark() -> str:
    return f"mark-{uuid4().hex}"


async def test_output_status_and_note_of_a_command_come_back(tmp_path: Path) -> None:
    ending, output = await shell(f"echo out; echo err >&2; echo noted >&{NOTE_FD}; exit 3", tmp_path)

    assert ending == Ending("exited", 3, 0, b"noted\n")
    assert output.text() == "out\nerr\n"


async def test_a_command_is_given_no_descriptor_but_its_own(tmp_path: Path) -> None:
    ours, other = os.pipe()
    os.set_inheritable(ours, True)

    _, output = await shell("echo /proc/$$/fd/*", tmp_path)

    os.close(ours)
    os.close(other)
    assert {int(Path(name).name) for name in output.text().split()} <= {0, 1, 2, 3, NOTE_FD}, "3 lists the others"


async def test_what_ends_with_the_command_is_not_killed(tmp_path: Path) -> None:
    """One run in which the machine is quick enough is proof: what is killed at once never gets so far."""
    killed = 1
    for _ in range(20):
        if killed:
            killed = (await shell("(sleep 0.005; touch ended) & exit", tmp_path))[0].killed

    assert killed == 0
    assert (tmp_path / "ended").exists()


async def test_a_command_killed_by_a_signal_has_its_negative_number(tmp_path: Path) -> None:
    ending, _ = await shell("kill -9 $$", tmp_path)

    assert (ending.how, ending.status) == ("exited", -9)


async def test_a_background_process_does_not_outlive_the_call_and_does_not_delay_it(tmp_path: Path, mark: str) -> None:
    started = time.monotonic()

    ending, output = await shell(f"{lasting(mark)} & echo done", tmp_path)

    assert time.monotonic() - started < usual(3)
    assert (ending.how, ending.status, output.text()) == ("exited", 0, "done\n")
    assert ending.killed >= 1
    assert alive(mark) == []


async def test_a_double_forked_process_in_a_session_of_its_own_that_ignores_term_dies_too(
    tmp_path: Path, mark: str
) -> None:
    stubborn = f"""setsid bash -c 'trap "" TERM HUP; while :; do sleep 60; done; : {mark}'"""

    ending, _ = await shell(f"({stubborn} &) ; sleep 0.3; echo over", tmp_path)

    assert ending.how == "exited"
    assert ending.killed >= 1
    assert alive(mark) == []


async def test_a_timeout_returns_promptly_though_a_child_holds_the_pipe(tmp_path: Path, mark: str) -> None:
    started = time.monotonic()

    ending, output = await shell(f"echo before; setsid {lasting(mark)}; echo after", tmp_path, timeout_seconds=0.5)

    assert 0.5 <= time.monotonic() - started < usual(2)
    assert ending.how == "timeout"
    assert output.text() == "before\n"
    assert alive(mark) == []


async def test_cancellation_kills_everything_before_it_arrives(tmp_path: Path, mark: str) -> None:
    call = asyncio.create_task(shell(f"trap '' TERM; {lasting(mark)} & setsid {lasting(mark)}", tmp_path))
    await until_alive(mark)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert alive(mark) == []


async def test_a_second_cancellation_does_not_leave_processes_behind(tmp_path: Path, mark: str) -> None:
    call = asyncio.create_task(shell(f"trap '' TERM; {lasting(mark)}", tmp_path))
    await until_alive(mark)

    call.cancel()
    await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    assert alive(mark) == []


def test_kill_9_of_the_worker_leaves_no_process_and_the_rest_of_the_command_is_never_run(
    tmp_path: Path, mark: str
) -> None:
    script, started, witness = (tmp_path / name for name in ("script", "started", "witness"))
    script.write_text(f"setsid {lasting(mark)} & touch {started}; sleep 1.5; touch {witness}; : {mark}")
    # The command is read from a file, so that the worker's own command line does not contain the mark.
    program = f"""
import asyncio, os
from pathlib import Path
from longhaul.activities.process.program_output import ClippedBytes
from longhaul.activities.process.program_run import run_supervised
command = ("/bin/bash", "-c", Path({str(script)!r}).read_text())
asyncio.run(run_supervised(command, Path("/"), {{"PATH": os.environ["PATH"]}}, 60, ClippedBytes()))
"""
    worker = subprocess.Popen([sys.executable, "-c", program])
    while not (started.exists() and alive("sleep 60; : " + mark)):
        assert worker.poll() is None
        time.sleep(0.01)

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    assert gone_within(mark, 1.0)
    time.sleep(1.5)
    assert not witness.exists()


async def test_a_command_that_kills_its_supervisor_ends_with_it(tmp_path: Path, mark: str) -> None:
    ending, _ = await shell(f"{lasting(mark)} & kill -9 $PPID; {lasting(mark)}", tmp_path)

    assert ending.how == "lost"
    assert gone_within(mark, 1.0)


async def test_fifty_megabytes_of_output_are_kept_in_bounded_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ending, output = await shell("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo the-end", tmp_path)

    assert ending.status == 0
    assert output.total_bytes == 50_000_009
    assert len(output.text()) <= 30_000
    assert output.text().endswith("the-end\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # kilobytes


async def test_a_flood_of_output_does_not_take_the_loop_from_others(tmp_path: Path) -> None:
    flood = asyncio.create_task(shell("yes", tmp_path, timeout_seconds=1.0))
    longest, last = 0.0, time.monotonic()
    while not flood.done():
        await asyncio.sleep(0.002)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()

    assert flood.result()[0].how == "timeout"
    assert longest < 0.25


async def test_a_broken_pipe_ends_a_program_as_in_any_shell(tmp_path: Path) -> None:
    _, output = await shell("yes | head -1; echo ${PIPESTATUS[0]}", tmp_path)

    assert output.text() == "y\n141\n"


async def test_calls_leave_no_descriptor_open(tmp_path: Path) -> None:
    await shell("true", tmp_path)
    before = open_descriptors()

    for _ in range(3):
        await shell("true", tmp_path)

    assert open_descriptors() <= before  # an earlier test may have left some to the collector


def test_a_process_that_has_run_a_command_ends_without_a_warning(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys; from pathlib import Path\n"
        "from longhaul.activities.process.program_output import ClippedBytes\n"
        "from longhaul.activities.process.program_run import run_supervised\n"
        "asyncio.run(run_supervised(('/bin/true',), Path(sys.argv[1]), {}, 20.0, ClippedBytes()))"
    )

    command = [sys.executable, "-W", "error::ResourceWarning", "-c", script, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")


async def test_a_folder_that_does_not_exist_is_an_error_and_leaks_nothing(tmp_path: Path) -> None:
    await shell("true", tmp_path)  # what a process opens once for all its commands
    gc.collect()  # and what tests before this one have left
    before = open_descriptors()

    with pytest.raises(FileNotFoundError):
        await shell("true", tmp_path / "nowhere")

    assert open_descriptors() == before
