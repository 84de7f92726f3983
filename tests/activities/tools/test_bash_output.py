"""What a command in the background has printed: shown while it runs, to its own session, by the worker that runs it."""

import asyncio
from dataclasses import replace

import pytest

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.masker import NO_SECRETS
from longhaul.activities.process.program_output import ClippedBytes, MaskedBytes
from longhaul.activities.tool import Place, ToolError, ToolOutput
from longhaul.activities.tools.bash import MOST_ATTEMPTS, STOPPED, Bash, BashOutput, Outputs
from longhaul.agent.permission.call_analysis import CallAnalysis
from tests.activities.tools.calls import called, use


async def test_it_is_shown_while_it_runs_and_bounded(place: Place) -> None:
    outputs = Outputs()
    shows, asked = BashOutput(outputs), called({"bash_id": "call-7"}, place, CallAnalysis())
    command = "seq 100000; echo up; while [ ! -e go ]; do sleep 0.02; done"
    running = asyncio.create_task(use(Bash(outputs=outputs), place, command=command, run_in_background=True))

    async def so_far() -> str:
        try:
            return str((await shows.run(asked)).output)
        except Elsewhere:
            return ""

    while not (shown := await so_far()).endswith("up\n"):  # noqa: ASYNC110  another process prints it
        await asyncio.sleep(0.02)
    (place.root / "go").touch()

    assert len(shown) <= 30_000
    assert "the middle of the output is left out" in shown
    assert not (await running).failed


async def test_who_does_not_run_it_passes_it_on_and_says_so_in_the_end(place: Place) -> None:
    shows = BashOutput(Outputs())
    asked = called({"bash_id": "call-7"}, place, CallAnalysis())
    with pytest.raises(Elsewhere):
        await shows.run(asked)
    with pytest.raises(ToolError, match="no worker that was asked runs 'call-7' now"):
        await shows.run(replace(asked, attempt=MOST_ATTEMPTS))


async def test_another_session_is_not_shown_it(place: Place) -> None:
    outputs = Outputs()
    one, other = replace(place, session_id="one"), replace(place, session_id="other")
    command = "echo mine; while [ ! -e go ]; do sleep 0.02; done"
    running = asyncio.create_task(use(Bash(outputs=outputs), one, command=command, run_in_background=True))
    while outputs.so_far(one, "call-7") != "mine\n":  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)

    assert outputs.so_far(other, "call-7") is None
    (place.root / "go").touch()
    await running
    assert outputs.so_far(one, "call-7") is None


async def test_a_worker_begins_no_more_than_its_sessions_together_may_have(place: Place) -> None:
    outputs = Outputs()
    run = Bash(outputs=outputs)
    full = asyncio.Event()

    async def until_full() -> ToolOutput:
        await full.wait()
        return ToolOutput("over")

    sink = MaskedBytes(ClippedBytes(), NO_SECRETS)
    calls = [called({}, replace(place, session_id=f"other {number}"), CallAnalysis()) for number in range(24)]
    others = [asyncio.create_task(outputs.run(call, sink, until_full())) for call in calls]
    await asyncio.sleep(0)
    with pytest.raises(ToolError, match="nothing ran, for this worker runs 24 commands"):
        await use(run, place, command="touch made", run_in_background=True)
    assert not (place.root / "made").exists()
    assert outputs.so_far(place, "call-7") is None
    assert not (await use(run, place, command="echo here")).failed
    full.set()
    await asyncio.gather(*others)
    assert not (await use(run, place, command="touch made", run_in_background=True)).failed


async def test_one_that_nobody_was_asked_about_runs_for_minutes_and_not_for_a_day(place: Place) -> None:
    run = Bash()
    assert (run.unasked_seconds, run.seconds_for({"run_in_background": True})) == (600, 86_400 + 30)
    run.unasked_seconds = 0.2
    proven = await use(run, place, command="sleep 60", run_in_background=True)
    assert (proven.failed, proven.metadata["ended"]) == (True, "timeout")
    unproven = await use(run, place, command="sleep 0.5; bash -c 'echo made'", run_in_background=True)
    assert (unproven.failed, str(unproven.output)) == (False, "made")


async def test_the_end_of_one_is_there_for_the_next_run_for_a_while(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longhaul.activities.tools.bash.HELD_SECONDS", 0.3)
    outputs = Outputs()
    first = await use(Bash(outputs=outputs), place, command="bash -c 'echo done'", run_in_background=True)

    assert await outputs.end_of(place, "call-7") == replace(first, cwd=None)
    await asyncio.sleep(0.6)
    with pytest.raises(Elsewhere):
        await outputs.end_of(place, "call-7")


async def test_one_whose_run_is_over_runs_on_for_the_next_one_and_is_killed_where_none_comes(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longhaul.activities.tools.bash.HELD_SECONDS", 0.3)
    monkeypatch.setattr("longhaul.activities.tools.bash._is_run_over", lambda: True)
    outputs = Outputs()
    tool, command = Bash(outputs=outputs), "echo up; while [ ! -e go ]; do sleep 0.02; done"
    first = asyncio.create_task(use(tool, place, command=command, run_in_background=True))
    while outputs.so_far(place, "call-7") != "up\n":  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)
    first.cancel()
    await asyncio.wait([first])
    second = asyncio.create_task(outputs.end_of(place, "call-7"))
    await asyncio.sleep(0.6)
    assert outputs.so_far(place, "call-7") == "up\n"
    second.cancel()
    await asyncio.wait([second])
    while outputs.so_far(place, "call-7") is not None:  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)


async def test_each_run_that_is_over_has_it_held_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer that the first run has left may not end it after the second one."""
    monkeypatch.setattr("longhaul.activities.tools.bash.HELD_SECONDS", 2.0)
    monkeypatch.setattr("longhaul.activities.tools.bash._is_run_over", lambda: True)
    outputs = Outputs()
    command = "echo up; while [ ! -e go ]; do sleep 0.02; done"
    first = asyncio.create_task(use(Bash(outputs=outputs), place, command=command, run_in_background=True))
    while outputs.so_far(place, "call-7") != "up\n":  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)
    first.cancel()
    await asyncio.wait([first])
    first_timer = asyncio.get_running_loop().time() + 2.0
    second = asyncio.create_task(outputs.end_of(place, "call-7"))
    await asyncio.sleep(1.5)
    second.cancel()
    await asyncio.wait([second])
    # The first timer is due half a second from here.
    monkeypatch.setattr("longhaul.activities.tools.bash.HELD_SECONDS", 60.0)
    third = asyncio.create_task(outputs.end_of(place, "call-7"))
    await asyncio.sleep(0)
    third.cancel()
    await asyncio.wait([third])
    await asyncio.sleep(max(first_timer + 0.2 - asyncio.get_running_loop().time(), 0.0))
    assert outputs.so_far(place, "call-7") == "up\n"
    (place.root / "go").touch()
    assert not (await outputs.end_of(place, "call-7")).failed


async def test_one_whose_name_another_takes_does_not_run_on_unseen(place: Place) -> None:
    """A session was deleted, and one of its name begins one with the same call id."""
    outputs = Outputs()
    waits = "while [ ! -e go ]; do sleep 0.02; done; touch {0}"

    def begins(mark: str) -> asyncio.Task[ToolOutput]:
        given = {"command": waits.format(mark), "run_in_background": True}
        return asyncio.create_task(use(Bash(outputs=outputs), place, **given))

    first = begins("first")
    while outputs.so_far(place, "call-7") is None:  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)
    second = begins("second")
    await asyncio.wait([first])
    (place.root / "go").touch()
    await second

    assert (place.root / "second").exists()
    assert not (place.root / "first").exists()


async def test_one_that_is_to_stop_is_ended_by_the_next_run_too(place: Place) -> None:
    outputs = Outputs()
    command = "echo up; while [ ! -e go ]; do sleep 0.02; done"
    first = asyncio.create_task(use(Bash(outputs=outputs), place, command=command, run_in_background=True))
    while outputs.so_far(place, "call-7") != "up\n":  # noqa: ASYNC110  as above
        await asyncio.sleep(0.02)

    ended = await outputs.end_of(place, "call-7", unwanted=True)

    await asyncio.wait([first])
    assert (ended.failed, ended.output) == (True, f"up\n\n{STOPPED}")
    assert await outputs.end_of(place, "call-7", unwanted=True) == ended
