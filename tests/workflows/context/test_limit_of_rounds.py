"""A reply at its limit of rounds: the model may only say where things stand, and what it has read stays cached."""

import json

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from tests.servers.aimock import Aimock
from tests.workflows.conftest import Stage
from tests.workflows.operations import results

pytestmark = [pytest.mark.server, pytest.mark.aimock]

MODELS = ["anthropic:claude-haiku-4-5", "openai:gpt-5.1", "openai-chat:gpt-4o"]
READ_7 = {"id": "c-7", "name": "fetch", "arguments": '{"page": 7, "chars": 10}'}
READ_8 = {"id": "c-8", "name": "fetch", "arguments": '{"page": 8, "chars": 10}'}


@pytest.mark.parametrize("model", MODELS)
async def test_at_the_limit_of_rounds_the_words_are_taken_and_a_call_is_not_run(
    stage: Stage, aimock: Aimock, model: str
) -> None:
    aimock.answer(
        {"match": {"userMessage": "limit of iterations"}, "response": {"content": "Half.", "toolCalls": [READ_8]}},
        {"match": {"userMessage": "Read"}, "response": {"toolCalls": [READ_7]}},
    )
    base_url = aimock.url if model == MODELS[0] else f"{aimock.url}/v1"
    session = stage.session(
        model=model, tools=["fetch", "send"], model_config={"base_url": base_url}, react_config={"max_iters": 1}
    )

    done = await session.reply("Read it all")

    # A slow machine may have a call made again, so these are the first and the last, not the only two.
    asked = [request["body"] for request in aimock.journal()]
    first, last = asked[0], asked[-1]
    assert (done.finished_reason, done.get_text_content()) == (FinishedReason.EXCEED_MAX_ITERS, "Half.")
    assert results(done) == [(ToolResultState.SUCCESS, "<<page 7>>")]
    assert [call.id for call in done.get_tool_calls()] == ["c-7"]
    assert json.dumps(last["tools"]) == json.dumps(first["tools"])
    assert len(last["tools"]) == 2
    assert last["messages"][: len(first["messages"])] == first["messages"]
    assert (await session.status()).model_calls == 2
