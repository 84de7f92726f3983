"""Server and worker are restarted on a slow machine, and all sessions are asked in the same moment: each answers,
hardly any workflow task is made for nothing, and no client gives up."""

import pytest

from benchmarks.redeploy import NoQuota, run

pytestmark = [pytest.mark.server, pytest.mark.timeout(1_800)]


@pytest.mark.parametrize(
    ("sessions", "steps"),
    [
        pytest.param(60, 9, marks=pytest.mark.alone),
        pytest.param(300, 9, marks=pytest.mark.chaos),
        pytest.param(60, 60, marks=pytest.mark.chaos),
    ],
)
async def test_after_a_restart_under_load_all_sessions_answer_one_after_the_other(sessions: int, steps: int) -> None:
    try:
        figures = await run(sessions, share=0.2, steps=steps, patience_seconds=900)
    except NoQuota as error:
        pytest.skip(f"{error}: no share of the processor can be set")

    assert figures.gave_up == {}
    assert figures.answered == sessions
    assert figures.wasted_share <= 0.05, figures
    assert figures.failed == 0
