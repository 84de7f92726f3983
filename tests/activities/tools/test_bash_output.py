"""What a command in the background has printed: shown while it runs, to its own session, by the worker that runs it."""

import asyncio
from contextlib import ExitStack
from dataclasses import replace

import pytest

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.process.clipping import ClippedBytes
from longhaul.activities.tool import Place, ToolError
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.bash_output import MOST_ATTEMPTS, BashOutput, Outputs
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.values.background import MOST_ON_WORKER
from tests.activities.tools.calls import called, use


async def test_it_is_shown_while_it_runs_and_bounded(place: Place) -> None:
    outputs = Outputs()
    shows, asked = BashOutput(outputs), called({"bash_id": "call-7"}, place, CallFacts())
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
    asked = called({"bash_id": "call-7"}, place, CallFacts())
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
    with ExitStack() as others:
        for number in range(MOST_ON_WORKER):
            other = called({}, replace(place, session_id=f"other {number}"), CallFacts())
            others.enter_context(outputs.shown(other, ClippedBytes()))
        with pytest.raises(ToolError, match=f"nothing ran, for this worker runs {MOST_ON_WORKER} commands"):
            await use(run, place, command="touch made", run_in_background=True)
        assert not (place.root / "made").exists()
        assert outputs.so_far(place, "call-7") is None
        assert not (await use(run, place, command="echo here")).failed
    assert not (await use(run, place, command="touch made", run_in_background=True)).failed


async def test_one_that_nobody_was_asked_about_runs_for_minutes_and_not_for_a_day(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longhaul.activities.tools.bash.LONGEST_UNASKED_SECONDS", 0.2)
    run = Bash()
    proven = await use(run, place, command="sleep 60", run_in_background=True)
    assert (proven.failed, proven.metadata["ended"]) == (True, "timeout")
    unproven = await use(run, place, command="sleep 0.5; bash -c 'echo made'", run_in_background=True)
    assert (unproven.failed, str(unproven.output)) == (False, "made")
