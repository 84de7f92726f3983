"""What a command in the background has printed: shown while it runs, to its own session, by the worker that runs it."""

import asyncio
from dataclasses import replace

import pytest

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.tool import Place, ToolError
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.bash_output import MOST_ATTEMPTS, BashOutput, Outputs
from longhaul.agent.permission.facts import CallFacts
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
