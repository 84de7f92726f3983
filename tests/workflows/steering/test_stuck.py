"""On a real server: an agent that goes round in circles is told so, and its reply ends as stuck."""

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from tests.workflows.conftest import Stage

pytestmark = pytest.mark.server

LOOKS = {"tool_calls": [{"name": "fetch", "input": {"page": 7}}]}


@pytest.mark.proves("D8")
async def test_an_agent_that_repeats_itself_is_stopped_and_goes_on_with_the_next_request(stage: Stage) -> None:
    warned = {**LOOKS, "expect": {"last_contains": "You keep making the same calls"}}
    session = stage.session(LOOKS, LOOKS, LOOKS, warned, {"text": "A wall."}, stuck={})

    message = await session.reply("Look")

    assert message.finished_reason is FinishedReason.STUCK
    assert message.error is not None
    assert message.error.type == "stuck"
    assert "4 times in a row" in message.error.message
    told = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert told == ["stuck_warning", "stuck"]

    after = await session.reply("Then say what you saw")

    assert (after.finished_reason, after.get_text_content()) == (FinishedReason.COMPLETED, "A wall.")
