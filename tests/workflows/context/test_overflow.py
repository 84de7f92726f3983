"""A provider that finds the context too long: it is made shorter, the model asked once more, and no tool runs twice."""

import json
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from tests.activities.models.wire import Answer, Wire, chat_says, claude_calls, claude_says, gpt_calls
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server

CLAUDE, GPT = "anthropic:claude-haiku-4-5", "openai-chat:gpt-4o"
SAYS = {CLAUDE: claude_says, GPT: chat_says}
CALLS = {CLAUDE: claude_calls, GPT: gpt_calls}
TOO_LONG: dict[str, Any] = {
    CLAUDE: {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
    GPT: {"code": "context_length_exceeded", "message": "This model's maximum context length is 128000 tokens."},
}
CHARS = 3_000
"""Much more than the summary."""
FIELDS = ("task_overview", "current_state", "important_discoveries", "next_steps", "context_to_preserve")
SUMMARY = json.dumps(dict.fromkeys(FIELDS, "Page 1 was read: amber."))


def refusing(model: str) -> Answer:
    body = json.dumps({"type": "error", "error": TOO_LONG[model]}).encode()
    return Answer(body, 400, {"content-type": "application/json"})


def reading(stage: Stage, wire: Wire, model: str, *then: Answer) -> Session:
    """A session that reads two pages and is then told that this is too much."""
    pages = [CALLS[model](f"c-{number}", json.dumps({"page": number, "chars": CHARS})) for number in (1, 2)]
    summary = CALLS[model]("s-1", SUMMARY, name="write_summary")
    wire.answers = [*map(Answer, pages), refusing(model), Answer(summary), *then]
    base_url = wire.url if model == CLAUDE else f"{wire.url}/v1"
    return stage.session(model=model, tools=["fetch"], model_config={"base_url": base_url, "context_length": 100_000})


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_what_is_too_long_for_the_provider_is_compressed_and_asked_again(
    stage: Stage, wire: Wire, model: str
) -> None:
    session = reading(stage, wire, model, Answer(SAYS[model]("Both read.")))

    done = await session.reply("Read the pages")

    status = await session.status()
    assert (done.error, done.get_text_content()) == (None, "Both read.")
    assert results(done) == [(ToolResultState.SUCCESS, page_text(number, CHARS)) for number in (1, 2)]
    assert (status.model_calls, status.compressions, status.compression_tries) == (3, 1, 1)
    refused, again = (json.dumps(wire.bodies[place]["messages"]) for place in (2, 4))
    first, second = map(json.dumps, ("c-1", "c-2"))  # in quotes: a session's name may have the operations too
    assert (first in refused, second in refused, "amber" in refused) == (True, True, False)
    assert (first in again, second in again, "amber" in again) == (False, True, True)
    assert "Read the pages" in again


@pytest.mark.parametrize("model", [CLAUDE, GPT])
async def test_what_is_still_too_long_ends_the_reply_with_the_providers_words(
    stage: Stage, wire: Wire, model: str
) -> None:
    session = reading(stage, wire, model, refusing(model), Answer(SAYS[model]("Hello.")))

    done = await session.reply("Read the pages")

    assert done.error is not None
    assert (done.error.type, len(wire.bodies)) == ("context_overflow", 5)
    assert [text for _, text in results(done)] == [page_text(number, CHARS) for number in (1, 2)]
    assert (await session.reply("Are you there?")).get_text_content() == "Hello."


async def test_the_faults_of_a_script_go_on_behind_the_shorter_context(stage: Stage) -> None:
    faults = [{"kind": "overloaded"}, {"kind": "context_overflow"}, {"kind": "rate_limited", "retry_after": 0}]
    pages = [calls("fetch", page=number, chars=CHARS) for number in (1, 2)]
    session = stage.session(*pages, {"text": "Both read.", "faults": faults}, {"text": "Fine."}, tools=["fetch"])

    done = await session.reply("Read the pages")

    assert (done.error, done.get_text_content()) == (None, "Both read.")
    assert (await session.status()).compressions == 1
    assert (await session.reply("And now?")).get_text_content() == "Fine."
