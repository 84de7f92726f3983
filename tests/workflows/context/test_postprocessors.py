"""Functions behind tools, on a real server: before a result is cut, by the name that an agent gives."""

import pytest

from longhaul.starter.client.session import Session
from tests.activities.mcp.serving import small
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server


async def told(session: Session) -> list[str]:
    said = [message async for message in session.transcript()]
    return [result.get_text() for message in said for result in message.get_tool_results()]


@pytest.mark.proves("A7")
async def test_a_long_result_is_made_short_before_it_would_be_cut(stage: Stage) -> None:
    session = stage.session(
        calls("fetch", page=7, chars=30_000),
        {"text": "Read.", "expect": {"last_contains": "fetch: <<page 7>> of 30000"}},
        postprocess={"fetch": "page_alone"},
        context_config={"tool_result_limit": 100},
    )

    done = await session.reply("Read page 7")

    assert (done.error, done.get_text_content()) == (None, "Read.")
    assert await told(session) == ["fetch: <<page 7>> of 30000"]


async def test_other_tools_and_failures_stay_as_they_are(stage: Stage) -> None:
    session = stage.session(
        {"tool_calls": [*calls("fetch", page=7)["tool_calls"], *calls("fetch", page="x")["tool_calls"]]},
        calls("whole", page=8),
        {"text": "Read."},
        postprocess={"whole": "page_alone", "fetch": "page_alone"},
        tools=["fetch"],
    )

    await session.reply("Read")

    wrong, read, unknown = await told(session)
    assert read == "fetch: <<page 7>> of 40"
    assert "'x'" in wrong or '"x"' in wrong
    assert "there is no tool 'whole'" in unknown


async def test_the_result_of_a_servers_tool_is_made_short_before_it_would_be_cut(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": {"mcp_config": small()}}})
    session = unserved.session(
        calls("mcp__harbour__long", megabytes=1),
        {"text": "Read.", "expect": {"last_contains": "mcp__harbour__long: 1000000 characters"}},
        mcps=[{"name": "harbour"}],
        permission={"rules": [{"tool_name": "mcp__harbour"}]},
        postprocess={"mcp__harbour__long": "length_alone"},
        context_config={"tool_result_limit": 100},
    )
    async with unserved.another_worker():
        done = await session.reply("Fetch all of it.")
        said = await told(session)

    assert (done.error, done.get_text_content()) == (None, "Read.")
    assert said == ["mcp__harbour__long: 1000000 characters"]
    assert not list(unserved.settings.data_dir.rglob("tool_result-*.txt"))


async def test_what_a_tool_has_said_is_told_when_the_function_behind_it_fails(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=7), {"text": "Read."}, postprocess={"fetch": "breaks"})

    await session.reply("Read")

    (result,) = await told(session)
    assert result.startswith("<<page 7>>")
    assert result.endswith("[The function 'breaks' behind this tool failed: RuntimeError: no more of fetch]")
