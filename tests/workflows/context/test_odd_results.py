"""What a tool returns is somebody else's code: no answer of it may stop a session, or make a call run twice."""

import json

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server


@pytest.mark.parametrize(
    ("how", "state", "told"),
    [
        ("deep", ToolResultState.SUCCESS, "ran"),
        ("folder", ToolResultState.SUCCESS, "ran"),
        ("number", ToolResultState.ERROR, "What it did stays done"),
        ("keys", ToolResultState.ERROR, "What it did stays done"),
        ("interrupted", ToolResultState.ERROR, "KeyboardInterrupt"),
    ],
)
async def test_a_session_goes_on_after_an_answer_that_can_not_be_recorded(
    stage: Stage, how: str, state: ToolResultState, told: str
) -> None:
    unasked = PermissionContext(mode=PermissionMode.BYPASS)
    session = stage.session(calls("oddly", how=how), {"text": "I see."}, tools=("oddly",), permission=unasked)

    done = await session.reply("Do it")

    ((found, text),) = results(done)
    assert found is state
    assert told in text
    assert done.get_text_content() == "I see."


@pytest.mark.parametrize(
    "pattern", ["\U0001f98a" * 300, "\\ud83d lone", "\\u0001\\u202e" * 200], ids=["long", "lone", "odd"]
)
async def test_arguments_of_any_characters_do_not_stop_a_session_by_their_summary(stage: Stage, pattern: str) -> None:
    call = {"id": "g-1", "name": "Grep", "input": json.dumps({"pattern": "PATTERN"}).replace("PATTERN", pattern)}
    session = stage.session({"tool_calls": [call]}, {"text": "Looked."}, tools=("Grep",))

    reply = await session.reply("Look for it")

    assert reply.get_text_content() == "Looked."
