"""Sessions of many megabytes: a huge result is cut where the model sees it and whole in its file, and talk goes on."""

from pathlib import Path

import pytest

from longhaul.activities.context.tool_results import marker
from longhaul.agent.values.conversation.messages import ToolResultState
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server

MEGABYTE = 1_000_000
BODIES = 11


def bodies() -> list[str]:
    """Each of 2 MB, and none like another."""
    return [f"{number:02} fog " * (2 * MEGABYTE // 7) for number in range(BODIES)]


@pytest.mark.proves("B4")
async def test_a_result_of_5_mb_is_cut_for_the_model_and_whole_in_its_file(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=7, chars=5 * MEGABYTE), {"text": "Enough."}, tools=["fetch"])

    done = await session.reply("Fetch page 7")

    (file,) = (stage.settings.data_dir / "offload").resolve().rglob("tool_result-*.txt")
    ((state, shown),) = results(done)
    whole = page_text(7, 5 * MEGABYTE)
    cut = shown.removesuffix(f"\n{marker(str(file))}")
    assert (done.get_text_content(), state) == ("Enough.", ToolResultState.SUCCESS)
    assert cut != shown
    assert whole.startswith(cut)
    assert 1_000 < len(cut) < 50_000
    kept = whole_of(file)
    assert len(kept) == len(whole)
    assert (kept == whole) is True  # or pytest would look for the difference in 10 MB


def whole_of(file: Path) -> str:
    return file.read_text("utf-8")


async def test_a_session_of_more_than_20_mb_goes_on(stage: Stage) -> None:
    session = stage.session(
        {"text": "I have heard all of it."}, {"text": "Still here."}, model_config={"context_length": 100 * MEGABYTE}
    )
    for body in bodies():
        await session.observe(body)

    first = await session.reply("Did you hear that?")
    second = await session.reply("And now?")

    assert (first.error, first.get_text_content()) == (None, "I have heard all of it.")
    assert (second.error, second.get_text_content()) == (None, "Still here.")
    said = [message.get_text_content() async for message in session.transcript()]
    assert [one == body for one, body in zip(said, bodies(), strict=False)] == [True] * BODIES
    assert said[BODIES:] == ["Did you hear that?", first.get_text_content(), "And now?", second.get_text_content()]
    assert sum(map(len, said)) > 20 * MEGABYTE


async def test_a_session_of_more_than_20_mb_goes_on_in_a_small_window(stage: Stage) -> None:
    session = stage.session({"text": "Short enough."}, {"text": "Still here."})
    for body in bodies():
        await session.observe(body)

    first = await session.reply("Did you hear that?")
    second = await session.reply("And now?")

    assert [(one.error, one.get_text_content()) for one in (first, second)] == [
        (None, "Short enough."),
        (None, "Still here."),
    ]
    status = await session.status()
    assert status.compressions >= 1
    assert status.context_tokens < status.context_length
    assert status.messages == BODIES + 4
