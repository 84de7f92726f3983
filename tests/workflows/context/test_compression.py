"""Contexts that are made shorter in live sessions: what the model is shown afterwards, and what can be read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import HintBlock, problem
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls

pytestmark = pytest.mark.server

SMALL = {"context_length": 6_000, "max_output_tokens": 500}


def reading(pages: int) -> list[dict[str, Any]]:
    return [calls("fetch", page=n, chars=1_500) for n in range(pages)]


@pytest.mark.proves("S14")
async def test_a_long_reply_is_made_in_a_small_window(stage: Stage) -> None:
    listed = calls("todo_write", todos=[{"content": "Count the ambers", "status": "pending"}])
    session = stage.session(
        listed, *reading(30), {"text": "All read."}, tools=["fetch", "todo_write"], model_config=SMALL
    )

    done = await session.reply("Read every page, and remember the word amber")
    status = await session.status()

    assert (done.get_text_content(), done.error) == ("All read.", None)
    assert status.compressions >= 2
    assert status.context_tokens <= 6_000
    shown = [message async for message in session.context()]
    assert shown[0].name == "summary"
    assert shown[1].get_text_content() == "Read every page, and remember the word amber"
    assert problem(shown[1:]) == ""
    everything = [message async for message in session.transcript()]
    said = [message for message in everything if not isinstance(message.content[0], HintBlock)]
    assert len(said) == 1 + 2 * 31 + 1
    assert len(done.get_tool_results()) == 31
    assert not any(call.name == "todo_write" for message in shown for call in message.get_tool_calls())
    assert "Still open:\n- Count the ambers" in shown[0].get_text_content()


def lines_of(file: Path) -> list[str]:
    return file.read_text("utf-8").splitlines()


async def test_what_was_dropped_stands_in_the_offloaded_context_once(stage: Stage) -> None:
    session = stage.session(*reading(30), {"text": "All read."}, tools=["fetch"], model_config=SMALL)

    await session.reply("Read every page")
    summary = (await session.state()).summary

    (file,) = stage.settings.data_dir.rglob("context.jsonl")
    assert str(file) in summary
    ids = [json.loads(line) for line in lines_of(file)]
    kept = [message async for message in session.context()][1:]
    everything = [message async for message in session.transcript()]
    assert len(ids) + len(kept) == len(everything)
