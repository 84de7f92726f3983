"""Every stop reason that is published, by each of the APIs: none of them is unknown, and each has its meaning."""

from typing import get_args

import botocore.session  # type: ignore[import-untyped]
import pytest
from anthropic.types.beta.beta_stop_reason import BetaStopReason
from anthropic.types.stop_reason import StopReason as ClaudeReason
from google.genai.types import FinishReason
from openai.types.chat.chat_completion_chunk import Choice
from openai.types.responses.response import IncompleteDetails
from openai.types.responses.response_status import ResponseStatus

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import IncompleteStreamError, ProviderError
from longhaul.activities.models.model import ModelReply, has_failed, is_known, stop_of, tells_nothing
from longhaul.activities.models.requests.model_parameters import MOST_TOKENS, THINKING_TOKENS, output_limit
from longhaul.agent.values.conversation.messages import StopReason, TextBlock, ToolCallBlock, Usage
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.apis.test_vendors import GOOGLES, asking
from tests.activities.models.converse_wire import converse_turn
from tests.activities.models.replies.stopping import (
    APIS,
    CHAT,
    CLAUDE,
    RESPONSES,
    half_a_call,
    refusing_in_parts,
    stopping,
)
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire, chunks, google_chunk


def words_of(annotation: object) -> set[str]:
    """The strings in a type of an SDK, however deep."""
    args = get_args(annotation)
    return {annotation} if isinstance(annotation, str) else {word for arg in args for word in words_of(arg)}


PUBLISHED = {
    CLAUDE: words_of(ClaudeReason) | words_of(BetaStopReason),
    RESPONSES: words_of(IncompleteDetails.model_fields["reason"].annotation) | words_of(ResponseStatus),
    CHAT: words_of(Choice.model_fields["finish_reason"].annotation),
}
"""As the installed SDKs have them: a newer one that knows another word fails below until the word is in the table."""

OF_VENDORS = {
    "bedrock": botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("StopReason").enum,
    **{vendor: [reason.value for reason in FinishReason] for vendor in GOOGLES},
}
"""The same of those that are called through pydantic-ai."""

OTHERS = (
    ("eos", StopReason.END),  # Together
    ("eos_token", StopReason.END),  # TGI
    ("max_tokens", StopReason.LENGTH),  # gateways that pass Claude's word on
    ("MAX_TOKENS", StopReason.LENGTH),  # Gemini, Cohere
    ("end_turn", StopReason.END),
    ("STOP", StopReason.END),
    ("COMPLETE", StopReason.END),
    ("model_length", StopReason.WINDOW),  # Mistral
    ("model_context_window_exceeded", StopReason.WINDOW),
    ("sensitive", StopReason.FILTERED),  # Zhipu
    ("SAFETY", StopReason.FILTERED),
    ("RECITATION", StopReason.FILTERED),
    ("PROHIBITED_CONTENT", StopReason.FILTERED),
    ("content-filter", StopReason.FILTERED),
    ("content_filtered", StopReason.FILTERED),  # Bedrock
    ("guardrail_intervened", StopReason.FILTERED),
    ("refusal", StopReason.REFUSED),
    ("pause_turn", StopReason.PAUSED),
    ("function_call_filter: MALFORMED_FUNCTION_CALL", StopReason.PAUSED),  # Gemini, OpenAI-compatible
    ("OTHER", StopReason.UNKNOWN),
    ("novel_reason", StopReason.UNKNOWN),
)
"""What compatible servers send in `finish_reason`, and what it comes to."""

FAILING = ("error", "abort", "network_error", "insufficient_system_resource", "ERROR")
UNTOLD = ("", "null", "None")

MEANING = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.END,
    "max_tokens": StopReason.LENGTH,
    "pause_turn": StopReason.PAUSED,
    "compaction": StopReason.PAUSED,
    "refusal": StopReason.REFUSED,
    "model_context_window_exceeded": StopReason.WINDOW,
    "completed": StopReason.END,
    "incomplete": StopReason.PAUSED,
    "max_output_tokens": StopReason.LENGTH,
    "max_messages": StopReason.PAUSED,
    "steered": StopReason.PAUSED,
    "content_filter": StopReason.FILTERED,
    "failed": None,
    "in_progress": None,
    "cancelled": None,
    "queued": None,
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.END,
    "function_call": StopReason.END,
}
"""Of each published word; None: the provider has failed, and is asked again."""


def test_each_api_publishes_its_reasons() -> None:
    assert all(len(PUBLISHED[model]) >= 5 for model in APIS)
    assert set().union(*PUBLISHED.values()) == set(MEANING)


@pytest.mark.parametrize(
    ("model", "reason"), [(model, reason) for model in APIS for reason in sorted(PUBLISHED[model])]
)
async def test_each_published_reason_comes_to_what_it_means(
    by_wire: Caller, wire: Wire, model: str, reason: str
) -> None:
    wire.answers = [Answer(stopping(model, reason))]

    assert is_known(reason)
    if MEANING[reason] is None:
        with pytest.raises(ProviderError) as caught:
            await by_wire.call(model, "How is the wind?")
        assert judge(caught.value).kind == "retry"
        return
    reply = await by_wire.call(model, "How is the wind?")

    assert (reply.stop, reply.stop_reason) == (MEANING[reason], reason)
    assert reply.content == (TextBlock(text="Fair wi"),)


MEANT_BY_VENDORS = {
    "STOP": StopReason.END,
    "MAX_TOKENS": StopReason.LENGTH,
    "guardrail_intervened": StopReason.FILTERED,
    "content_filtered": StopReason.FILTERED,
    "SAFETY": StopReason.FILTERED,
    "PROHIBITED_CONTENT": StopReason.FILTERED,
    "malformed_tool_use": StopReason.PAUSED,
    "malformed_model_output": StopReason.PAUSED,
    "MALFORMED_FUNCTION_CALL": StopReason.PAUSED,
    "model_context_window_exceeded": StopReason.WINDOW,
}


@pytest.mark.parametrize(
    ("vendor", "reason"), [(vendor, reason) for vendor, reasons in OF_VENDORS.items() for reason in reasons]
)
async def test_so_do_those_of_clouds_and_google(wire: Wire, vendor: str, reason: str) -> None:
    told = chunks(google_chunk({"text": "Fair wi"}, reason=reason), done=False)
    wire.answers = [Answer(converse_turn(None, "Fair wi", reason=reason) if vendor == "bedrock" else told)]

    async with asking(wire, vendor) as it:
        reply = await it.call("How is the wind?")

    assert is_known(reason)
    assert reply.stop is MEANT_BY_VENDORS.get(reason, stop_of(reason))
    assert reply.content == (TextBlock(text="Fair wi"),)


@pytest.mark.parametrize(("reason", "meant"), OTHERS)
async def test_so_do_the_words_of_compatible_servers(
    by_wire: Caller, wire: Wire, reason: str, meant: StopReason
) -> None:
    wire.answers = [Answer(stopping(CHAT, reason))]

    reply = await by_wire.call(CHAT, "How is the wind?")

    assert (reply.stop, reply.stop_reason) == (meant, reason)


@pytest.mark.parametrize("reason", FAILING)
async def test_a_server_that_stops_for_its_own_trouble_is_asked_again(by_wire: Caller, wire: Wire, reason: str) -> None:
    wire.answers = [Answer(stopping(CHAT, reason))]

    with pytest.raises(ProviderError) as caught:
        await by_wire.call(CHAT, "How is the wind?")

    assert (has_failed(reason), judge(caught.value).kind) == (True, "retry")


@pytest.mark.parametrize("reason", UNTOLD)
async def test_a_stream_that_does_not_say_how_it_ended_is_no_reply(by_wire: Caller, wire: Wire, reason: str) -> None:
    without_a_last_event = stopping(CHAT, reason).removesuffix(b"data: [DONE]\n\n")
    wire.answers = [Answer(without_a_last_event), Answer(stopping(CHAT, reason))]

    with pytest.raises(IncompleteStreamError):
        await by_wire.call(CHAT, "How is the wind?")

    assert tells_nothing(reason)
    assert (await by_wire.call(CHAT, "How is the wind?")).content != ()


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("model", [RESPONSES, CHAT])
async def test_a_refusal_that_stands_in_the_parts_alone_is_one(
    by_wire: Caller, wire: Wire, model: str, streamed: bool
) -> None:
    wire.answers = [Answer(refusing_in_parts(model, "I can't help with that.", streamed=streamed))]

    reply = await by_wire.call(model, "How?")

    assert (reply.stop, reply.content) == (StopReason.REFUSED, (TextBlock(text="I can't help with that."),))


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"category": "cyber", "explanation": "It could enable harm."}, "It could enable harm."),
        ({"category": "bio", "explanation": None}, "bio"),
        ({"category": None, "explanation": None}, ""),
        (None, ""),
    ],
)
async def test_claudes_words_on_a_refusal_are_kept(
    by_wire: Caller, wire: Wire, details: dict[str, str | None] | None, told: str
) -> None:
    given = {"type": "refusal", **details} if details is not None else None
    wire.answers = [Answer(stopping(CLAUDE, "refusal", "", stop_details=given))]

    reply = await by_wire.call(CLAUDE, "How?")

    assert (reply.stop, reply.content, reply.refusal) == (StopReason.REFUSED, (), told)


@pytest.mark.parametrize("model", APIS)
async def test_half_a_call_comes_as_it_was_written(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers = [Answer(half_a_call(model, '{"pa'))]

    reply = await by_wire.call(model, "Read")

    assert (reply.stop, reply.content) == (
        StopReason.LENGTH,
        (ToolCallBlock(id="c-half", name="fetch", input='{"pa'),),
    )


def test_a_reply_without_a_reason_is_taken_as_it_is() -> None:
    """As a middleware makes one."""
    assert ModelReply((), Usage(), "m").stop is StopReason.END
    assert stop_of("end_turn") is StopReason.END


@pytest.mark.parametrize(
    ("config", "limit"),
    [
        (ModelConfig(), 8192 + THINKING_TOKENS),
        (ModelConfig(max_output_tokens=300), 300 + THINKING_TOKENS),
        (ModelConfig(thinking_budget_tokens=1024), 8192 + THINKING_TOKENS),
        (ModelConfig(thinking_budget_tokens=60_000), MOST_TOKENS),
        (ModelConfig(max_output_tokens=30_000), MOST_TOKENS),
        (ModelConfig(max_output_tokens=64_000), 64_000),
        (ModelConfig(max_output_tokens=500, context_length=6_000), 500 + 1_500),
    ],
)
def test_there_is_room_for_thoughts_beside_the_answer(config: ModelConfig, limit: int) -> None:
    assert output_limit(config, thinks=True) == limit
    assert output_limit(config, thinks=False) == config.max_output_tokens


@pytest.mark.parametrize(
    ("model", "field", "thinks"),
    [
        ("openai:gpt-5.1", "max_output_tokens", True),
        ("openai:gpt-4.1", "max_output_tokens", False),
        ("openai-chat:gpt-5.1", "max_tokens", True),
        ("openai-chat:llama-3", "max_tokens", False),
        ("anthropic:claude-opus-5-5", "max_tokens", True),
        ("anthropic:claude-fable-5-2", "max_tokens", True),
        ("anthropic:claude-haiku-4-5", "max_tokens", False),
    ],
)
async def test_a_model_that_thinks_by_itself_is_given_that_room(
    by_wire: Caller, wire: Wire, model: str, field: str, thinks: bool
) -> None:
    api = CLAUDE if model.startswith("anthropic") else RESPONSES if model.startswith("openai:") else CHAT
    wire.answers = [Answer(stopping(api, {CLAUDE: "end_turn", RESPONSES: "completed", CHAT: "stop"}[api]))]

    await by_wire.call(model, "How many?", max_output_tokens=1_000)

    assert wire.bodies[0][field] == (26_000 if thinks else 1_000)
