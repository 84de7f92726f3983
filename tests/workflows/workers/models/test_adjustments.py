"""What a model's API can't express reaches whoever talks to the session: once, whatever number of calls there are."""

import pytest

from longhaul.starter.render_session import head
from tests.activities.models.replies.stopping import CHAT
from tests.activities.models.wire import Answer, Wire, chat_calls, chat_says
from tests.workflows.conftest import Stage

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

LEFT_OUT = "The thinking budget was left out: Chat Completions has no field for it."


@pytest.mark.proves("F6")
async def test_it_is_told_once_in_a_session(stage: Stage, wire: Wire) -> None:
    wire.answers = [
        Answer(chat_calls("c1", "fetch", {"url": "https://harbour.example"})),
        Answer(chat_says("Fair.")),
        Answer(chat_says("Still fair.")),
    ]
    config = {"base_url": f"{wire.url}/v1", "thinking_budget_tokens": 2048}
    session = stage.session(model=CHAT, tools=["fetch"], model_config=config)

    await session.reply("How is the wind?")
    await session.reply("And now?")

    told = [event for event in (await session.events()).events if event.name == "request_adjusted"]
    assert [event.value for event in told] == [{"adjusted": [LEFT_OUT]}]
    assert [event.model_name for event in told] == ["qwen-from-the-wire"]
    assert len(wire.bodies) == 3
    status = await session.status()
    assert status.adjusted == {"qwen-from-the-wire": (LEFT_OUT,)}
    assert f"qwen-from-the-wire: {LEFT_OUT}" in head(status).plain.splitlines()
