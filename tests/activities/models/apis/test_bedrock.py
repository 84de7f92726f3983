"""Bedrock's Converse through pydantic-ai and boto3, against servers on real ports that answer in AWS's frames."""

import asyncio
import json

import pytest

from longhaul.activities.models.failures.failure_classification import is_turned_away, judge
from longhaul.agent.values.conversation.messages import UserMsg
from tests.activities.models.apis.test_vendor_failures import failure
from tests.activities.models.apis.test_vendors import asking
from tests.activities.models.converse_wire import converse_begins, converse_says, converse_turn, failing
from tests.activities.models.wire import Answer, Wire, says_of


@pytest.mark.proves("F6")
async def test_what_bedrock_has_signed_goes_back_to_it_and_to_no_other(wire: Wire) -> None:
    thinks = converse_turn(("Rain, I think.", "signed-1"), "", ("c1", "weather", {"city": "Bergen"}))
    wire.answers = [Answer(thinks), Answer(says_of("ai:bedrock", "Rain.")), Answer(says_of("ai:together", "Rain."))]
    async with asking(wire, "bedrock", "us.anthropic.claude-opus-4-8") as it, asking(wire, "together") as other:
        messages = await it.step([UserMsg("user", "How is the weather?")])
        messages = await it.step(messages)
        await other.step([*messages, UserMsg("user", "Sure?")])

    assert it.heard("thinking") == "Rain, I think."
    (asked, spoken, answers) = wire.bodies[1]["messages"]
    assert (asked["role"], spoken["role"], answers["role"]) == ("user", "assistant", "user")
    assert spoken["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "Rain, I think.", "signature": "signed-1"}}},
        {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Bergen"}}},
    ]
    assert answers["content"][0]["toolResult"]["toolUseId"] == "c1"
    assert "I think." not in json.dumps(wire.bodies[2])


async def test_a_thought_that_bedrock_has_not_signed_is_shown_and_left_out(wire: Wire) -> None:
    """gpt-oss signs none, and would answer in its manner of thinking."""
    thinks = converse_turn(("Rain, I think.", ""), "", ("c1", "weather", {"city": "Bergen"}))
    wire.answers = [Answer(thinks), Answer(says_of("ai:bedrock", "Rain."))]
    async with asking(wire, "bedrock", "openai.gpt-oss-120b-1:0") as it:
        messages = await it.step([UserMsg("user", "How is the weather?")])
        reply = await it.call(messages)

    assert it.heard("thinking") == "Rain, I think."
    assert "I think." not in json.dumps(wire.bodies[1])
    assert "Thinking that this provider has not sent, or not signed, was left out." in reply.notes


async def test_calls_at_once_have_their_results_in_one_message(wire: Wire) -> None:
    calls = [(f"c{at}", "weather", {"city": f"Town {at}"}) for at in range(3)]
    wire.answers = [Answer(converse_turn(None, "I look.", *calls)), Answer(says_of("ai:bedrock", "Rain."))]
    async with asking(wire, "bedrock", "us.meta.llama4-maverick-17b-instruct-v1:0") as it:
        await it.step(await it.step([UserMsg("user", "How is the weather?")]))

    (_, spoken, answers) = wire.bodies[1]["messages"]
    assert [list(block) for block in spoken["content"]] == [["text"], *[["toolUse"]] * 3]
    assert [block["toolResult"]["toolUseId"] for block in answers["content"]] == ["c0", "c1", "c2"]


async def test_a_temperature_above_1_and_further_fields_are_told_as_converse_has_them(wire: Wire) -> None:
    wire.answers = [Answer(says_of("ai:bedrock", "Aye."))]
    more = {"extra_body": {"reasoningConfig": {"type": "enabled"}}, "headers": {"X-Team": "moss"}}
    async with asking(wire, "bedrock", "us.amazon.nova-2-lite-v1:0", **more) as it:
        reply = await it.call("Fair wind?", config={"temperature": 1.5})

    assert wire.bodies[0]["inferenceConfig"]["temperature"] == 1
    assert "Bedrock takes no temperature above 1: it is asked for 1." in reply.notes
    assert wire.bodies[0]["additionalModelRequestFields"] == {"reasoningConfig": {"type": "enabled"}}
    assert "x-team: moss" in wire.heads[0].lower()


@pytest.mark.parametrize(
    ("model", "marked"),
    [
        ("us.amazon.nova-pro-v1:0", ["system", "messages"]),
        ("us.anthropic.claude-opus-4-8", ["tools", "system", "messages"]),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", []),
    ],
)
async def test_what_bedrock_keeps_of_a_model_is_marked_for_it(wire: Wire, model: str, marked: list[str]) -> None:
    wire.answers = [Answer(says_of("ai:bedrock", "Aye."))]
    async with asking(wire, "bedrock", model) as it:
        await it.call("Fair wind?")

    body = wire.bodies[0]
    places = {
        "tools": body["toolConfig"]["tools"],
        "system": body["system"],
        "messages": body["messages"][-1]["content"],
    }
    assert [name for name, parts in places.items() if "cachePoint" in parts[-1]] == marked


async def test_what_was_read_from_the_cache_or_written_to_it_is_counted_in(wire: Wire) -> None:
    usage = {"inputTokens": 16, "outputTokens": 30, "cacheReadInputTokens": 64, "cacheWriteInputTokens": 10}
    wire.answers = [Answer(converse_turn(None, "Aye.", usage=usage))]
    async with asking(wire, "bedrock", "us.amazon.nova-pro-v1:0") as it:
        used = (await it.call("Hi")).usage

    assert (used.input_tokens, used.output_tokens, used.estimated) == (90, 30, False)
    assert (used.cache_input_tokens, used.cache_creation_input_tokens) == (64, 10)


async def test_a_call_that_is_given_up_before_its_answer_begins_hangs_up_when_it_does(wire: Wire) -> None:
    """boto3 waits for it in a thread, which nobody waits for."""
    asked, begins, hung_up = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await begins.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + converse_begins("Fair wi"))
        await reader.read()
        hung_up.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wire.url = "http://{}:{}".format(*server.sockets[0].getsockname())
    async with server, asking(wire, "bedrock") as it, asyncio.timeout(20):
        call = asyncio.ensure_future(it.call("Hi"))
        await asked.wait()
        call.cancel()
        await asyncio.wait({call})
        begins.set()
        await hung_up.wait()

    assert it.deltas == []


@pytest.mark.proves("F6")
async def test_sixty_streams_at_once_are_all_heard(wire: Wire) -> None:
    """The library has threads for 40: of the others nothing would be heard, and they would count as silent."""
    wire.answers = [Answer(converse_begins("Fair wi"), whole=False, then_wait=True, chunked=True)] * 60
    wire.answers.append(Answer(converse_says("Aye.")))
    async with asking(wire, "bedrock") as it:
        calls = [asyncio.create_task(it.call("Hi", config={"silence_seconds": 30})) for _ in range(60)]
        async with asyncio.timeout(20):
            while len(it.deltas) < 60:
                await it.heard_more()
            assert (await it.call("Hi")).content
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    assert len(wire.heads) == 61


RATE, RIGHTS = ("fall_back", "rate_limit"), ("fall_back", "permission")
KEY, WRONG = ("fall_back", "authentication"), ("never", "invalid_request")
AGAIN, NOWHERE = ("retry", "upstream"), ("fall_back", "invalid_request")
SHORTER, REPAIRED = ("compress", "context_overflow"), ("repair", "invalid_request")
MODEL = "The model returned the following errors: "
AT_AWS: list[tuple[int, str, str, tuple[str, str]]] = [
    (429, "ThrottlingException", "Too many requests, please wait before trying again.", ("retry", "rate_limit")),
    (429, "ThrottlingException", "Too many tokens per day, please wait before trying again.", RATE),
    (400, "ServiceQuotaExceededException", "Your account's quota is exceeded.", RATE),
    (403, "AccessDeniedException", "You don't have access to the model with the specified model ID.", RIGHTS),
    (403, "UnrecognizedClientException", "The security token included is invalid.", KEY),
    (403, "ExpiredTokenException", "The security token included is expired.", KEY),
    (403, "MPAgreementBeingCreated", "Your AWS Marketplace subscription is being processed.", AGAIN),
    (404, "ResourceNotFoundException", "Could not resolve the foundation model.", NOWHERE),
    (400, "ValidationException", "The provided model identifier is invalid.", NOWHERE),
    (408, "ModelTimeoutException", "The model took too long.", ("retry", "connection")),
    (424, "ModelErrorException", "The model failed.", AGAIN),
    (429, "ModelNotReadyException", "The model is not ready to serve inference requests.", AGAIN),
    (503, "ServiceUnavailableException", "Bedrock is unable to process your request.", AGAIN),
    (400, "ValidationException", "Input is too long for requested model.", SHORTER),
    (400, "ValidationException", f"{MODEL}Input Tokens Exceeded: Number of input tokens exceeds the maximum.", SHORTER),
    (400, "ValidationException", f"{MODEL}This model's maximum context length is 8192 tokens.", SHORTER),
    (400, "ValidationException", "Too many input tokens. Max input tokens: 8192, request: 9001", SHORTER),
    (400, "ValidationException", "This model doesn't support the image content block that you provided.", REPAIRED),
    (400, "ValidationException", "This model doesn't support documents.", REPAIRED),
    (400, "ValidationException", f"{MODEL}messages.1.content.0: Invalid `signature` in `thinking` block", REPAIRED),
    (400, "ValidationException", "The toolConfig field must be defined when using toolUse content blocks.", WRONG),
]
"""docs.aws.amazon.com, "Troubleshooting Amazon Bedrock API Error Codes", 2026-11-26, and words that users have met."""


@pytest.mark.proves("F6")
@pytest.mark.parametrize("told", AT_AWS, ids=[f"{code}: {message}" for _, code, message, _ in AT_AWS])
async def test_the_verdict_fits_what_bedrock_says(wire: Wire, told: tuple[int, str, str, tuple[str, str]]) -> None:
    status, code, message, action = told
    headers = {"content-type": "application/json", "x-amzn-errortype": f"{code}:http://internal.amazon.com/coral/"}
    wire.answers = [Answer(json.dumps({"message": message}).encode(), status, headers)] * 3
    error = await failure(wire, "bedrock")

    assert (judge(error).kind, judge(error).error_type) == action
    assert message[:60] in judge(error).sentence or action == KEY
    assert is_turned_away(error) == (status != 408)
    assert len(wire.heads) == 1


@pytest.mark.parametrize(
    ("kind", "message", "action"),
    [
        ("throttlingException", "Too many tokens, please wait before trying again.", ("retry", "rate_limit")),
        ("internalServerException", "It broke.", ("retry", "upstream")),
        ("modelStreamErrorException", "It broke in the midst.", ("retry", "upstream")),
        ("serviceUnavailableException", "Busy.", ("retry", "upstream")),
        ("validationException", "Input is too long for requested model.", ("compress", "context_overflow")),
    ],
)
async def test_so_does_what_it_says_in_the_midst_of_a_stream(
    wire: Wire, kind: str, message: str, action: tuple[str, str]
) -> None:
    wire.answers = [Answer(converse_begins("Fair wi") + failing(kind, message))]

    error = await failure(wire, "bedrock")

    assert (judge(error).kind, judge(error).error_type) == action
    assert not is_turned_away(error)
    assert len(wire.heads) == 1
