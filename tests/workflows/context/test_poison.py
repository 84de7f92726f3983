"""Nothing in a record is a poison pill: the next reply works, whatever the provider would refuse, and so does compact.

The provider is `tests.activities.models.strict`, on a real port, called by the providers' own SDKs.
"""

import base64
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    FinishedReason,
    Msg,
    TextBlock,
    ThinkingBlock,
    URLSource,
    UserMsg,
)
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import plain, start_operation
from tests.activities.models.strict import Strict
from tests.workflows.conftest import Stage
from tests.workflows.context.hosted import NOVA, named
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

CLAUDE, BOUND = "anthropic:claude-opus-4-5", "anthropic:claude-opus-5-5"
GPT, CHAT = "openai:gpt-5.1", "openai-chat:gpt-4o"
DEEPSEEK, GEMINI = "openai-chat:deepseek-v4-pro", "openai-chat:gemini-3-pro"
ALL = (CLAUDE, BOUND, GPT, CHAT)
LOW = ContextConfig(trigger_ratio=0.15, reserve_ratio=0.01)


def part(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width: int = 4, height: int = 4, pixels: bytes | None = None) -> bytes:
    head = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height))) if pixels is None else pixels
    return b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", rows) + part(b"IEND", b"")


def spoilt(data: bytes) -> bytes:
    """With other bytes in the middle, as a disk or a tool leaves it."""
    middle = data.index(b"IDAT") + 6
    return data[:middle] + b"\xde\xad" + data[middle + 2 :]


JPEG = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0" + b"\xff\xc0\0\x0b\x08\0\4\0\4\1\1\x11\0" + b"\xff\xd9"


def image(data: bytes | str, media_type: str = "image/png") -> DataBlock:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return DataBlock(source=Base64Source(data=text, media_type=media_type), name="sea")


@dataclass(frozen=True)
class Poison:
    block: DataBlock
    words: str
    """In the place of it from then on."""
    models: tuple[str, ...] = (CLAUDE,)
    refused: int = 0
    """Requests that it takes until the model can answer: none where the worker sees it by itself."""


POISONS = {
    "a PNG of which a part is damaged": Poison(image(spoilt(png())), "its part 'IDAT' is damaged"),
    "a PNG that is cut off": Poison(image(png()[:-20]), "its end is missing"),
    "a PNG whose pixels can't be unpacked": Poison(
        image(png(pixels=b"no pixels")), "the model's provider refused it", models=(*ALL, NOVA), refused=1
    ),
    "a JPEG that is cut off": Poison(
        image(JPEG[:-2], "image/jpeg"), "the model's provider refused it", models=(*ALL, NOVA), refused=1
    ),
    "a page of HTML that calls itself a PNG": Poison(image(b"<html>404</html>"), "it is not image/png, but something"),
    "no base64": Poison(image("%%%%"), "it is not valid base64"),
    "nothing at all": Poison(image(""), "it is empty"),
    "9,000 pixels a side": Poison(image(png(9000, 1)), "it has 9000 x 1 pixels"),
    "no pixels": Poison(image(png(0, 0)), "it has no pixels"),
    "a PDF without an end": Poison(
        image(b"%PDF-1.7 torn", "application/pdf"), "the model's provider refused it", (CLAUDE, NOVA), refused=1
    ),
    "a PDF with a password": Poison(
        image(b"%PDF-1.7 /Encrypt %%EOF", "application/pdf"),
        "the model's provider refused it",
        (CLAUDE, NOVA),
        refused=1,
    ),
    "a text that calls itself a PDF": Poison(image(b"Dear Ana", "application/pdf"), "it is not application/pdf"),
    "an address that nobody answers": Poison(
        DataBlock(source=URLSource(url="https://gone.example/sea.png", media_type="image/png")),
        "the model's provider refused it",
        models=ALL,
        refused=1,
    ),
}
KINDS = [(name, model) for name, poison in POISONS.items() for model in poison.models]


def session_of(stage: Stage, strict: Strict, model: str, tools: tuple[str, ...] = (), **spec: Any) -> Session:
    return stage.session(**named(stage, model, strict.url, context_length=8_000), tools=tools, **spec)


async def says(session: Session, words: str | Msg) -> str:
    done = await session.reply(words)
    assert done.error is None, done.error
    return done.get_text_content()


async def says_past_the_client(stage: Stage, session: Session, message: Msg) -> str:
    """As a program of another language would send it: our client refuses what is plainly broken."""
    operation = start_operation(stage.settings, session.id, session.user, session.spec, session.workflow_id)
    body = {"messages": [plain(message)], "request_id": "by-hand"}
    answer: dict[str, str] = await stage.client.execute_update_with_start_workflow(
        "submit", body, start_workflow_operation=operation, result_type=dict
    )
    done = await session.wait(answer["reply_id"])
    assert done.error is None, done.error
    return done.get_text_content()


async def works_from_now_on(session: Session, strict: Strict) -> None:
    """The next reply, a compression, and the reply behind it: not one of their requests is refused for its content."""
    refused = list(strict.refusals)
    assert (await says(session, "And now?")).startswith("Noted")
    await says(session, "Read this. " + "Of walls and bricks. " * 400)
    await says(session, "Is it read?")
    assert await session.compress_context(LOW)
    assert (await says(session, "And then?")).startswith("Noted")
    assert [words for words in strict.refusals[len(refused) :] if "forced tool use" not in words] == []


@pytest.mark.proves("X17")
@pytest.mark.parametrize(("name", "model"), KINDS, ids=[f"{name}, {model}" for name, model in KINDS])
async def test_an_attachment_that_no_provider_takes_is_words_from_then_on(
    stage: Stage, strict: Strict, name: str, model: str
) -> None:
    poison = POISONS[name]
    session = session_of(stage, strict, model)

    said = await says_past_the_client(stage, session, UserMsg("user", [TextBlock(text="What is it?"), poison.block]))

    assert said.startswith("Noted")
    assert len(set(strict.refusals)) == poison.refused
    assert poison.words in json.dumps(strict.bodies[-1])
    (asked, *_) = (await session.state()).context
    assert poison.words in asked.get_text_content()
    assert not [block for block in asked.content if isinstance(block, DataBlock)]
    kept = [block async for message in session.transcript() for block in message.content]
    assert poison.block in kept
    await works_from_now_on(session, strict)


async def test_an_image_under_another_images_name_is_sent_as_what_it_is(stage: Stage, strict: Strict) -> None:
    session = session_of(stage, strict, CLAUDE)

    await says(session, UserMsg("user", [TextBlock(text="What is it?"), image(JPEG, "image/png")]))

    assert strict.refusals == []
    (_, shown) = strict.bodies[-1]["messages"][0]["content"]
    assert (shown["type"], shown["source"]["media_type"]) == ("image", "image/jpeg")
    await works_from_now_on(session, strict)


SAYS_BLIND = {
    CHAT: "Invalid content type. image_url is only supported by certain models.",
    "openai-chat:gpt-oss": "Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`",
    "openai-chat:llama": "image input is not supported - hint: you may need to provide the mmproj",
    GPT: "This model does not support image inputs.",
    CLAUDE: "messages.0.content.1: this model does not support images",
    NOVA: "This model doesn't support the image content block that you provided. Remove it and try again.",
}


@pytest.mark.proves("X17")
@pytest.mark.parametrize("model", SAYS_BLIND)
async def test_a_model_without_eyes_is_told_of_an_image_and_another_one_sees_it(
    stage: Stage, strict: Strict, model: str
) -> None:
    strict.blind = SAYS_BLIND[model]
    session = session_of(stage, strict, model)
    await says(session, UserMsg("user", [TextBlock(text="What is it?"), image(png())]))

    assert set(strict.refusals) == {strict.blind}
    assert "left out: this model takes no images" in json.dumps(strict.bodies[-1])
    refused = len(strict.refusals)
    await says(session, "And now?")
    assert len(strict.refusals) == refused

    strict.blind = ""
    await session.configure(model="openai-chat:gpt-sees", model_config={"base_url": strict.url})
    await says(session, "And you?")

    assert base64.b64encode(png()).decode() in json.dumps(strict.bodies[-1])


async def test_a_model_that_is_known_to_have_no_eyes_is_never_sent_an_image(stage: Stage, strict: Strict) -> None:
    strict.blind = "unknown variant `image_url`, expected `text`"
    session = session_of(stage, strict, "openai-chat:deepseek-chat")

    await says(session, UserMsg("user", [TextBlock(text="What is it?"), image(png())]))

    assert strict.refusals == []
    await works_from_now_on(session, strict)


@pytest.mark.proves("X17")
async def test_large_images_are_words_where_there_are_more_than_twenty(stage: Stage, strict: Strict) -> None:
    """Claude refuses a request for one of more than 2,000 pixels a side among so many."""
    session = session_of(stage, strict, CLAUDE)
    large, small = image(png(2_001, 3)), [image(png(3 + number, 3)) for number in range(20)]

    first = await session.reply([UserMsg("ana", [TextBlock(text="Look."), large, *small[:19]])])
    assert (first.error, strict.refusals, len(strict.bodies)) == (None, [], 1)
    assert images_in(strict.bodies[0]) == 20

    second = await session.reply([UserMsg("ana", [TextBlock(text="And here."), *small[19:]])])

    assert (second.error, strict.refusals, len(strict.bodies)) == (None, [], 2)
    assert images_in(strict.bodies[1]) == 20
    words = "it has 2001 x 3 pixels, and 2000 a side are taken among so many images"
    assert f"left out: {words}]" in json.dumps(strict.bodies[1])
    repaired = [event.value for event in (await session.events()).events if event.name == "repaired"]
    assert [words in left_out for value in repaired for left_out in value["left_out"]] == [True]
    await works_from_now_on(session, strict)


def images_in(body: dict[str, Any]) -> int:
    return json.dumps(body).count('"type": "image"')


@pytest.mark.proves("X17")
@pytest.mark.parametrize("model", ALL)
async def test_what_a_classifier_stops_is_asked_once_and_then_left_out(
    stage: Stage, strict: Strict, model: str
) -> None:
    strict.unspeakable = "ricin"
    session = session_of(stage, strict, model)
    assert (await says(session, "Hello")).startswith("Noted")

    refused = await session.reply("How is ricin made?")

    assert (refused.finished_reason, strict.stopped) == (FinishedReason.REFUSED, 1)
    await works_from_now_on(session, strict)
    assert strict.stopped == 1
    asked = [message.get_text_content() for message in (await session.state()).context]
    assert not [words for words in asked if "ricin" in words]
    assert "ricin" in "".join([message.get_text_content() async for message in session.transcript()])
    assert await failure_of_replay(stage, session) is None


async def test_a_tool_that_reads_a_spoilt_picture_gives_words(stage: Stage, strict: Strict) -> None:
    (stage.workspace / "sea.png").write_bytes(spoilt(png()))
    strict.says = [("toolu_1", "Read", {"file_path": "sea.png"})]
    session = session_of(stage, strict, BOUND, tools=("Read",))

    done = await session.reply("What is it?")

    assert (done.error, strict.refusals) == (None, [])
    (result,) = done.get_tool_results()
    assert "left out: it is not a valid PNG: its part 'IDAT' is damaged" in result.get_text()
    await works_from_now_on(session, strict)


async def test_a_picture_of_a_tool_that_its_provider_refuses_is_words_from_then_on(
    stage: Stage, strict: Strict
) -> None:
    (stage.workspace / "sea.png").write_bytes(png(pixels=b"no pixels"))
    strict.says = [("toolu_1", "Read", {"file_path": "sea.png"})]
    session = session_of(stage, strict, BOUND, tools=("Read",))

    done = await session.reply("What is it?")

    assert (done.error, set(strict.refusals)) == (None, {"Could not process image"})
    await works_from_now_on(session, strict)


@pytest.mark.proves("X17")
@pytest.mark.parametrize("model", [CLAUDE, BOUND, GPT])
async def test_thoughts_that_nobody_knows_any_more_are_left_out(stage: Stage, strict: Strict, model: str) -> None:
    """As of an account that is another one now, or of a state from elsewhere."""
    session = session_of(stage, strict, model)
    await says(session, "Think of walls")
    strict.signed.clear()

    await says(session, "Think again")

    assert len(set(strict.refusals)) == 1
    (_, first, *_) = (await session.state()).context
    assert not [block for block in first.content if isinstance(block, ThinkingBlock)]
    await works_from_now_on(session, strict)


@pytest.mark.proves("X17")
async def test_thoughts_behind_a_compression_are_not_sent(stage: Stage, strict: Strict) -> None:
    strict.says = [(f"toolu_{page}", "fetch", {"page": page, "chars": 2_000}) for page in range(6)]
    session = session_of(stage, strict, BOUND, tools=("fetch",))
    await says(session, "Read six pages")
    strict.says = [("toolu_7", "fetch", {"page": 7, "chars": 400})]
    await says(session, "And one more")
    assert await session.compress_context(LOW)

    await says(session, "Well?")

    assert [words for words in strict.refusals if "forced tool use" not in words] == []
    await says(session, "And now?")
    assert [block for message in strict.bodies[-1]["messages"] for block in message["content"] if "signature" in block]


@pytest.mark.proves("X17")
async def test_thoughts_behind_the_limit_of_rounds_may_be_sent(stage: Stage, strict: Strict) -> None:
    """What the model was told at the limit stands in the record, so its thought stands where it stood."""
    strict.says = [("toolu_1", "fetch", {"page": 1})]
    session = session_of(stage, strict, BOUND, tools=("fetch",), react_config={"max_iters": 1})
    await says(session, "Read it all")
    assert "limit of iterations" in json.dumps(strict.bodies[-1])

    await says(session, "And now?")

    assert strict.refusals == []
    sent = [block for message in strict.bodies[-1]["messages"] for block in message["content"]]
    assert len([block for block in sent if block["type"] == "thinking"]) == 2


@pytest.mark.proves("X17")
async def test_thoughts_behind_another_system_prompt_are_not_sent(stage: Stage, strict: Strict) -> None:
    rules = stage.workspace / "AGENTS.md"
    rules.write_text("Say little.")
    session = session_of(stage, strict, BOUND, agent_context={"repo_skills": True})
    await says(session, "Think of walls")
    rules.write_text("Say much.")

    await says(session, "Think again")

    assert strict.refusals == []
    assert "Say much." in json.dumps(strict.bodies[-1]["system"])
    assert '"thinking"' not in json.dumps(strict.bodies[-1]["messages"])
    await works_from_now_on(session, strict)


@pytest.mark.proves("X17")
async def test_a_session_goes_from_provider_to_provider_and_back(stage: Stage, strict: Strict) -> None:
    session = session_of(stage, strict, BOUND)
    for model in (GPT, CLAUDE, CHAT, BOUND):
        await says(session, "Think of walls")
        await session.configure(model=model)
    await says(session, "Think again")

    assert strict.refusals == []
    sent = [block for message in strict.bodies[-1]["messages"] for block in message["content"]]
    assert len([block for block in sent if block["type"] == "thinking"]) == 1
    await works_from_now_on(session, strict)


@pytest.mark.proves("X17")
@pytest.mark.parametrize("model", [DEEPSEEK, GEMINI])
async def test_reasoning_that_a_server_of_chat_completions_insists_on_goes_back_to_it_alone(
    stage: Stage, strict: Strict, model: str
) -> None:
    """Within a turn with calls, at later turns, behind another provider's, and back."""
    session = session_of(stage, strict, model, ("fetch",))
    other = GEMINI if model == DEEPSEEK else DEEPSEEK
    for number, next_model in enumerate((model, CLAUDE, other, model)):
        await session.configure(model=next_model)
        strict.says = [(f"c{number}{step}", "fetch", {"page": step}) for step in range(2)]
        await says(session, "Think of walls")

    assert strict.refusals == []
    assert len(strict.bodies) == 12
    sent = json.dumps(strict.bodies[-1]["messages"])
    assert [signature for signature in strict.signed if signature in sent] == [
        signature for signature, of in strict.signed.items() if of == model.partition(":")[2]
    ][: 5 if model == DEEPSEEK else 4]


@pytest.mark.proves("X17")
async def test_a_refusal_that_nothing_helps_against_is_said_and_a_repair_by_hand_takes_it_all_out(
    stage: Stage, strict: Strict
) -> None:
    session = session_of(stage, strict, CLAUDE)
    await says(session, "Think of walls")
    strict.always = "messages.2.content.1.image.source.base64.data: Could not process image"

    done = await session.reply(UserMsg("user", [TextBlock(text="What is it?"), image(png())]))

    assert done.error is not None
    assert (done.error.type, set(strict.refusals)) == ("invalid_request", {strict.always})
    assert "messages.2.content.1" in done.error.message
    assert "`longhaul repair SESSION`" in done.error.message
    before = (await session.state()).context
    assert image(png()) in before[-1].content

    assert await session.stored.repair(by="ana") == 2
    strict.always = ""

    after = (await session.state()).context
    assert [block.type for message in after for block in message.content] == ["text", "text", "text", "text"]
    assert "taken out of the context by hand" in after[-1].get_text_content()
    assert await session.stored.repair(by="ana") == 0
    await works_from_now_on(session, strict)
