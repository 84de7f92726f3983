"""What servers stream comes to the right answer, to a failure, or to a call that does not run: never to another one."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.activities.tools.arguments import ArgumentsError, parse_arguments
from longhaul.agent.values.conversation.messages import TextBlock, ThinkingBlock, ToolCallBlock, UserMsg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.apis.test_vendors import asking
from tests.activities.models.conftest import calling
from tests.activities.models.replies.shapes import APIS, ONE_TEXT, SHAPES, TWO, TWO_TEXT, NotSo, Sent, Shape
from tests.activities.models.wire import Answer, Wire, chunks, events

MODELS = {"chat": "openai-chat:qwen3", "messages": "anthropic:claude-haiku-4-5", "responses": "openai:gpt-4.1"}
"""`ai` is called by the name of a profile."""
FAILED = re.compile(r"retry|retry_after|few_tries")
LEAST_SHAPES = 60
KINDS = {"text", "thought", "calls", "refused", "fails"}


def tool(name: str, *required: str) -> ToolDescriptor:
    properties = {field: {"type": "string"} for field in (*required, "note")}
    return ToolDescriptor(
        name=name, input_schema={"type": "object", "properties": properties, "required": list(required)}
    )


TOOLS = {each.name: each for each in (tool("purge", "folder"), tool("Read", "file_path"), tool("now"))}


class Speaking:
    """The model of one API at a server that says what it is told to."""

    def __init__(self, wire: Wire, providers: Providers, model: str, config: ModelConfig) -> None:
        self._wire, self._providers, self._model, self._config = wire, providers, model, config

    async def answer(self, body: bytes, media_type: str, *, whole: bool = True) -> ModelReply | Exception:
        self._wire.answers = [Answer(body, headers={"content-type": media_type}, whole=whole)]
        request = ModelRequest("", "", [UserMsg("user", "Go")], list(TOOLS.values()), self._config, call_number=4)
        try:
            return await self._providers.call(self._model, request, lambda _: None)
        except Exception as error:  # noqa: BLE001  it is what the tests are about
            return error


@asynccontextmanager
async def speaking(wire: Wire, api: str) -> AsyncIterator[Speaking]:
    if api == "ai":
        async with asking(wire, "vllm") as it:
            yield Speaking(wire, it.providers, "it", ModelConfig())
        return
    async with calling(wire.url) as caller:
        yield Speaking(wire, caller.providers, MODELS[api], ModelConfig(base_url=wire.url))


def why_not(call: ToolCallBlock) -> str:
    """What the model is told instead of a result; empty for a call that may run."""
    if not call.name:
        try:
            parse_arguments(call.input)
        except ArgumentsError as error:
            return str(error)
        return "no tool has this name"
    try:
        arguments = parse_arguments(call.input)
    except ArgumentsError as error:
        return str(error)
    missing = [name for name in TOOLS[call.name].input_schema["required"] if name not in arguments]
    return f"{missing[0]} is missing" if missing else ""


def came(reply: ModelReply) -> dict[str, Any]:
    calls = [block for block in reply.content if isinstance(block, ToolCallBlock)]
    assert len({call.id for call in calls}) == len(calls)
    return {
        "text": "".join(block.text for block in reply.content if isinstance(block, TextBlock)),
        "thought": "".join(block.thinking for block in reply.content if isinstance(block, ThinkingBlock)),
        "calls": tuple((call.name, parse_arguments(call.input)) for call in calls if not why_not(call)),
        "refused": tuple((call.name, why_not(call)) for call in calls if why_not(call)),
    }


def shapes_of(api: str) -> Iterator[tuple[Shape, Sent]]:
    for shape in SHAPES:
        if isinstance(made := shape.sent(api), Sent):
            yield shape, made


def wrong(shape: Shape, api: str, reply: ModelReply | Exception) -> str:
    """What differs from the row; empty where nothing does."""
    if isinstance(reply, Exception):
        kind, words = shape.fails or ("", "")
        action = judge(reply)
        return "" if shape.fails and action.kind == kind and words in action.sentence else f"{action} {reply!r}"
    if shape.fails:
        return f"{came(reply)} instead of a failure"
    found = came(reply)
    for what in ("text", "thought", "calls"):
        if found[what] != shape.expected(api, what):
            return f"{what}: {found}"
    refused = shape.expected(api, "refused")
    fitting = len(found["refused"]) == len(refused) and all(
        name == told and part in why for (name, why), (told, part) in zip(found["refused"], refused, strict=True)
    )
    return "" if fitting else f"refused: {found}"


@pytest.mark.parametrize("api", APIS)
async def test_each_shape_comes_to_what_its_row_says(wire: Wire, api: str) -> None:
    found: dict[str, str] = {}
    async with speaking(wire, api) as model:
        for shape, made in shapes_of(api):
            if differs := wrong(shape, api, await model.answer(made.body, made.media_type)):
                found[shape.name] = differs

    assert found == {}


@pytest.mark.parametrize("api", APIS)
async def test_a_cut_at_any_event_is_tried_again_or_gives_the_right_answer(wire: Wire, api: str) -> None:
    """Behind each event, and in its middle; by a connection that breaks, and by one that ends as if all was said."""
    found: dict[str, str] = {}
    async with speaking(wire, api) as model:
        for shape, made in shapes_of(api):
            for place, piece in enumerate(made.pieces):
                before = b"".join(made.pieces[:place])
                for cut, whole in ((before, False), (before, True), (before + piece[: len(piece) // 2], False)):
                    reply = await model.answer(cut, made.media_type, whole=whole)
                    if isinstance(reply, Exception):
                        again = FAILED.fullmatch(judge(reply).kind) or (shape.fails and not wrong(shape, api, reply))
                        fits = bool(again)
                    else:
                        fits = not wrong(shape, api, reply)
                    if not fits:
                        found[f"{shape.name}, {place}, {whole}"] = repr(reply)

    assert found == {}


@pytest.mark.parametrize("api", APIS)
async def test_a_whole_answer_is_kept_when_the_connection_breaks_behind_it(wire: Wire, api: str) -> None:
    found: dict[str, str] = {}
    async with speaking(wire, api) as model:
        for shape, made in shapes_of(api):
            if made.media_type != "text/event-stream" or shape.fails or len(made.pieces) == 1:
                continue
            if differs := wrong(shape, api, await model.answer(made.body, made.media_type, whole=False)):
                found[shape.name] = differs

    assert found == {}


def contradicted(made: Sent, api: str) -> list[bytes]:
    """The same with other arguments for the first call that is told before it or behind it."""
    other = json.dumps(TWO)
    piece = {"index": 0, "id": "c_a", "function": {"name": "purge", "arguments": other}}
    pieces = [piece, {"index": 0, "function": {"arguments": other}}]
    by_chat = [chunks({"choices": [{"index": 0, "delta": {"tool_calls": [each]}}]}, done=False) for each in pieces]
    told = {"output_index": 0, "item_id": "fc_c_a", "arguments": other}
    ended = events({"type": "response.function_call_arguments.done", **told})
    more = {"type": "input_json_delta", "partial_json": other}
    by_messages = events({"type": "content_block_delta", "index": 0, "delta": more})
    between = {"chat": by_chat, "ai": by_chat, "messages": [by_messages], "responses": [ended]}[api]
    marks = {"responses": b"response.completed", "messages": b"message_delta"}
    found = (at for at, piece in enumerate(made.pieces) if marks.get(api, b'"finish_reason": "') in piece)
    last = next(found, len(made.pieces) - 1)
    return [b"".join((*made.pieces[:last], each, *made.pieces[last:])) for each in between]


@pytest.mark.parametrize("api", APIS)
async def test_a_call_whose_arguments_are_contradicted_does_not_run(wire: Wire, api: str) -> None:
    """Every row with a call of ours, and other arguments for it behind its own."""
    found: dict[str, str] = {}
    tried = 0
    async with speaking(wire, api) as model:
        for shape, made in shapes_of(api):
            if shape.expected(api, "calls") != (("purge", json.loads(ONE_TEXT)),) or len(made.pieces) < 3:
                continue
            if b'"c_a"' not in made.body and api != "messages":
                continue  # an answer with other ids is another row's matter
            for body in contradicted(made, api):
                tried += 1
                reply = await model.answer(body, made.media_type)
                assert isinstance(reply, ModelReply), (shape.name, reply)
                if ("purge", json.loads(ONE_TEXT)) in came(reply)["calls"] or TWO_TEXT in str(came(reply)["calls"]):
                    found[shape.name] = repr(came(reply))

    assert tried >= 5
    assert found == {}


def test_every_shape_says_something_of_every_api() -> None:
    names = [shape.name for shape in SHAPES]

    assert len(set(names)) == len(names) >= LEAST_SHAPES
    for shape in SHAPES:
        told = {what for what in KINDS if getattr(shape, what)}
        assert told, shape.name
        assert shape.differs.keys() <= set(APIS), shape.name
        assert all(set(each) <= KINDS for each in shape.differs.values()), shape.name
        for api in APIS:
            made = shape.sent(api)
            assert not isinstance(made, NotSo) or made.why, (shape.name, api)
        assert any(isinstance(shape.sent(api), Sent) for api in APIS), shape.name
