"""Replies in a form that was asked for, on a real server."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, until

pytestmark = pytest.mark.server

PAGE = Path(__file__).parents[3] / "docs" / "agents" / "structured-output.md"


class TideTable(BaseModel):
    """What a harbour master wants to know."""

    height: float = Field(gt=0)
    kind: Literal["spring", "neap"]


def answers(**value: Any) -> dict[str, Any]:
    return calls("generate_response", **value)


async def results(session: Session) -> list[tuple[str, str, str]]:
    said = [message async for message in session.transcript()]
    found = [block for message in said for block in message.get_tool_results()]
    return [(block.name, block.state.value, block.get_text()) for block in found]


@pytest.mark.proves("C7")
async def test_a_value_that_fits_is_the_metadata_and_one_that_does_not_goes_back(stage: Stage) -> None:
    session = stage.session(
        {**calls("fetch", page=1), "expect": {"tools": ["fetch", "generate_response"]}},
        answers(height="low", kind="ebb"),
        {**answers(height=3.5, kind="spring"), "expect": {"last_contains": "- 'kind' is "}},
        answers(height=1, kind="neap"),
        {"text": "No form, no function.", "expect": {"last_contains": "there is no tool 'generate_response'"}},
    )

    message = await session.reply("How high?", structured_model=TideTable)

    assert message.error is None
    assert message.metadata == message.structured_output == {"height": 3.5, "kind": "spring"}
    assert TideTable.model_validate(message.metadata).kind == "spring"
    said = await results(session)
    assert [(name, state) for name, state, _ in said] == [
        ("fetch", "success"),
        ("generate_response", "error"),
        ("generate_response", "success"),
    ]
    assert "- 'height' is the text \"low\", but has to be a number" in said[1][2]
    assert '- \'kind\' is the text "ebb": give one of "spring", "neap"' in said[1][2]
    assert "generate_response" not in await stage.scheduled(session)

    plain = await session.reply("And in words?")

    assert (plain.get_text_content(), plain.metadata) == ("No form, no function.", {})


@pytest.mark.proves("C7")
async def test_it_waits_for_a_person_on_another_worker_and_is_there_in_a_later_life(unserved: Stage) -> None:
    stage = unserved
    turn = {"tool_calls": [*answers(height=2, kind="neap")["tool_calls"], *calls("send", to="Ana")["tool_calls"]]}
    session = stage.session(turn, {"text": "Gone."}, idle_close_seconds=2, tools=["send"])
    async with stage.another_worker():
        waiting = await session.reply("How high?", request_id="r-tide", structured_model=TideTable)
        assert (waiting.finished_reason, waiting.structured_output) == (None, None)
        assert waiting.metadata["waiting_for"]
    async with stage.another_worker():
        (call,) = await session.pending()
        await session.confirm(call, allow=True)
        ended = await session.wait(waiting.id)
        assert ended.metadata == {"height": 2, "kind": "neap"}

        async def has_closed() -> bool:
            return await session.end() == "completed"

        await until(has_closed)
        again = await session.reply("How high?", request_id="r-tide", structured_model=TideTable)
        assert (again.id, again.structured_output) == (ended.id, {"height": 2, "kind": "neap"})


async def test_it_is_there_when_the_worker_was_killed_between_the_form_and_the_end(unserved: Stage) -> None:
    turn = {"tool_calls": [*answers(height=2, kind="neap")["tool_calls"], *calls("send", to="Ana")["tool_calls"]]}
    session = unserved.session(turn, {"text": "Gone."}, tools=["send"])
    settings = unserved.worker_settings
    async with worker(settings) as first:
        waiting = await session.reply("How high?", structured_model=TideTable)
        (call,) = await session.pending()
        await first.kill()
    async with unserved.another_worker():
        await session.confirm(call, allow=True)
        ended = await session.wait(waiting.id)

    assert (waiting.structured_output, ended.metadata) == (None, {"height": 2, "kind": "neap"})


async def test_a_schema_that_only_a_worker_can_judge_ends_its_reply_with_the_place(stage: Stage) -> None:
    session = stage.session(answers(code="x"), {"text": "Fine."})
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": "(?=x)"}}}

    message = await session.reply("A code, please", structured_model=schema)

    assert message.error is not None
    assert message.error.message.startswith("structured_schema: $.properties.code.pattern: '(?=x)' can't be used")
    assert (await session.reply("Never mind")).error is None


async def test_what_no_session_takes_is_refused_with_the_place(stage: Stage) -> None:
    session = stage.session({"text": "Fine."})

    with pytest.raises(Refused, match=r"structured_schema: \$\.type: 'array' can't be answered"):
        await session.reply("A list", structured_model={"type": "array"})
    with pytest.raises(Refused, match=r"it has 40,\d+ bytes as JSON, and the most is 32,000"):
        await session.reply("A lot", structured_model={"description": "x" * 40_000})


async def test_an_answer_after_a_call_that_moved_the_session_is_looked_at_again(stage: Stage) -> None:
    """The findings about it are old by then; a worker needs the form once more."""
    (stage.workspace / "loft").mkdir()
    turn = {
        "tool_calls": [
            {"name": "Bash", "input": {"command": "cd loft"}},
            *answers(height=0, kind="neap")["tool_calls"],
        ]
    }
    session = stage.session(turn, answers(height=4, kind="neap"), tools=["Bash"])

    waiting = await session.reply("How high?", structured_model=TideTable)
    if waiting.finished_reason is None:
        await session.confirm((await session.pending())[0], allow=True)
    message = await session.wait(waiting.id)

    assert message.metadata == {"height": 4, "kind": "neap"}
    assert [state for name, state, _ in await results(session) if name == "generate_response"] == ["error", "success"]


async def test_the_example_of_the_page_is_true(stage: Stage) -> None:
    block, _ = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(block, names)  # noqa: S102  it is our own page
    session = stage.session(answers(severity="high", lines=[3, 8]))

    ruling = await names["review"](session)

    assert (ruling.severity, ruling.lines) == ("high", [3, 8])


async def test_a_tool_says_the_last_words_of_a_reply(stage: Stage) -> None:
    session = stage.session(calls("farewell", to="Ana"), {"text": "Still here."}, tools=["farewell"])

    ended = await session.reply("Say goodbye")

    assert (ended.finished_reason, ended.get_text_content()) == ("completed", "Goodbye, Ana.")
    assert (await session.reply("Are you there?")).get_text_content() == "Still here."
