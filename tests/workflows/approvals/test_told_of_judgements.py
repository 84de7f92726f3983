"""What a model could not be asked when it judged a call, as the session's user hears of it: once."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from longhaul.activities.models.requests.answer_form import NOT_FORCED
from tests.activities.models.strict import Refused, Strict
from tests.workflows.conftest import Stage
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server


class Judging(Strict):
    """Its models think, so no call can be forced; they find each call harmless."""

    def _answer(self, path: str, body: dict[str, Any]) -> bytes:
        if isinstance(body.get("tool_choice"), dict):
            raise Refused("Thinking mode does not support this tool_choice")
        return super()._answer(path, body)

    def _said(self, body: dict[str, Any]) -> str:
        said = super()._said(body)
        return json.dumps({"risk": "low", "reason": "It reads."}) if "risk" in said else said


@pytest.fixture
async def judging() -> AsyncIterator[Judging]:
    told = Judging()
    server = await asyncio.start_server(told.serve, "127.0.0.1", 0, limit=1 << 24)
    told.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server:
        yield told


@pytest.mark.proves("F6")
async def test_what_a_judgement_was_asked_without_is_told_once(stage: Stage, judging: Judging) -> None:
    judging.says = [("call_1", "fetch", {"page": 1}), ("call_2", "fetch", {"page": 2})]
    permission = {
        "rules": [{"tool_name": "fetch"}],
        "analyzers": ["model"],
        "analyzer_model": "openai-chat:gpt-4.1",
    }
    config = {"base_url": judging.url, "context_length": 80_000}
    session = stage.session(model="openai-chat:gpt-4o", tools=("fetch",), model_config=config, permission=permission)

    done = await session.reply("Read two pages")

    events = (await session.events()).events
    told = [event for event in events if event.name == "request_adjusted"]
    assert done.error is None
    assert judging.refusals == ["Thinking mode does not support this tool_choice"] * 2
    assert [(event.model_name, event.value) for event in told] == [("qwen-from-the-wire", {"adjusted": [NOT_FORCED]})]
    assert await failure_of_replay(stage, session) is None
