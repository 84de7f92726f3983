"""What a model's API can't express of the request for a summary reaches whoever talks to the session, once."""

import pytest

from longhaul.agent.values.spec.agent_spec import ContextConfig
from tests.activities.models.strict import Strict
from tests.workflows.conftest import Stage
from tests.workflows.context.test_poison import CHAT, CLAUDE
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

LOW = ContextConfig(trigger_ratio=0.01, reserve_ratio=0.005)
LEFT_OUT = "The thinking budget was left out: Chat Completions has no field for it."


@pytest.mark.proves("F6")
async def test_what_a_summary_was_asked_without_is_told_once(stage: Stage, strict: Strict) -> None:
    config = {"base_url": strict.url, "context_length": 80_000, "thinking_budget_tokens": 2_048}
    session = stage.session(model=CLAUDE, tools=("fetch",), model_config=config)
    for chapter in range(3):
        await session.reply(f"Read chapter {chapter}. " + "It is long. " * 200)
    await session.configure(model=CHAT)

    assert await session.compress_context(LOW)
    await session.reply("And now?")

    events = (await session.events()).events
    told = [event for event in events if event.name in ("request_adjusted", "context_compressed")]
    assert [event.name for event in told] == ["request_adjusted", "context_compressed"]
    assert (told[0].model_name, told[0].value) == ("qwen-from-the-wire", {"adjusted": [LEFT_OUT]})
    assert await failure_of_replay(stage, session) is None
