"""A worker keeps few of the runs that wait, and these go on all the same."""

from functools import partial

import pytest
from temporalio.worker import Worker

from longhaul import worker
from longhaul.starter.worker_host.workflow_tasks import ParkedRuns
from longhaul.workflows import sdk_internals
from tests.workflows.children.trees import SUMMED_UP, agent, lead, tasks
from tests.workflows.conftest import Stage


def test_the_runs_that_wait_for_longest_are_forgotten_first() -> None:
    forgotten: list[str] = []
    parked = ParkedRuns(forgotten.append, kept=2)

    for run, waits in (("a", True), ("b", True), ("c", False), ("a", True), ("c", True), ("d", False), ("d", True)):
        parked.told(run, waits=waits)

    assert forgotten == ["b", "a"]


def test_runs_that_have_something_under_way_are_kept_whatever_their_number() -> None:
    forgotten: list[str] = []
    parked = ParkedRuns(forgotten.append, kept=0)

    for number in range(300):
        parked.told(str(number), waits=False)

    assert forgotten == []


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that workers have forgotten."""
    runs: list[str] = []
    forget = sdk_internals.forget

    def noting(own: Worker, run_id: str) -> None:
        runs.append(run_id)
        forget(own, run_id)

    monkeypatch.setattr(worker, "forget", noting)
    return runs


@pytest.mark.server
async def test_runs_that_are_over_put_none_out_that_waits(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch, forgotten: list[str]
) -> None:
    monkeypatch.setattr(worker, "ParkedRuns", partial(ParkedRuns, kept=2))
    async with unserved.another_worker():
        await unserved.session({"text": "Here."}).reply("Wait")
        given = tasks("t1 scout", "t2 scout", "t3 scout")
        await lead(unserved, {"scout": agent(unserved, {"text": "Seen."})}, given, SUMMED_UP).reply("Go")

    assert forgotten == []


@pytest.mark.server
async def test_a_session_that_was_forgotten_goes_on(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch, forgotten: list[str]
) -> None:
    monkeypatch.setattr(worker, "ParkedRuns", partial(ParkedRuns, kept=1))
    async with unserved.another_worker():
        sessions = [unserved.session(*({"text": f"{turn}."} for turn in ("One", "Two", "Three"))) for _ in range(3)]
        for turn in ("One", "Two", "Three"):
            said = [(await session.reply("Count")).get_text_content() for session in sessions]
            assert said == [f"{turn}."] * 3

    assert len(set(forgotten)) == 3
    assert len(forgotten) >= 6
