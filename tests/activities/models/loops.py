"""A loop of calls against a provider on a real port, and what its requests have in common, byte for byte."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.thinking_origin import Beginnings, chain_of, fitting, origin_of, with_origin
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, ToolResultBlock
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import WEATHER, Caller


def answered(reply: ModelReply, model: str, config: ModelConfig, messages: Sequence[Msg]) -> list[Msg]:
    """The messages, the reply as it is recorded, and a result for each of its calls."""
    behind = beginnings(model, config, messages).before(len(messages))
    said = AssistantMsg("longhaul", with_origin(reply.content, origin_of(model, config), behind))
    results = [ToolResultBlock(id=call.id, name=call.name, output="Rain.") for call in said.get_tool_calls()]
    return [*messages, said, *(AssistantMsg("longhaul", [result]) for result in results)]


def beginnings(model: str, config: ModelConfig, messages: Sequence[Msg]) -> Beginnings:
    return Beginnings(ModelRequest(model, "Be brief.", messages, [WEATHER], config), chain_of(messages))


async def step(by: Caller, model: str, messages: Sequence[Msg], **settings: Any) -> list[Msg]:
    """One call as a session makes it: without what is another provider's."""
    config = ModelConfig(base_url=by.base_url, **settings)
    request = ModelRequest(model, "Be brief.", list(messages), [WEATHER], config)
    fit = fitting(request, origin_of(model, config), beginnings(model, config, messages))
    reply = await by.call(model, fit.messages, system="Be brief.", tools=[WEATHER], **settings)
    return answered(reply, model, config, messages)


def told(body: dict[str, Any]) -> tuple[bytes, bytes]:
    """What goes before the messages, and these themselves, without the marks for the cache."""
    plain = _plain(body)
    messages = plain.pop("messages", None) or plain.pop("input")
    return json.dumps(plain).encode(), json.dumps(messages).encode()[:-1]


def assert_each_goes_on_where_the_last_one_ended(bodies: Sequence[dict[str, Any]]) -> None:
    """Each request is the one before, to the byte, and more."""
    for before, after in pairwise(bodies):
        (frame, messages), (next_frame, next_messages) = told(before), told(after)
        assert next_frame == frame
        assert next_messages.startswith(messages)
        assert len(next_messages) > len(messages)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items() if name != "cache_control"}
    return [_plain(part) for part in value if not is_mark(part)] if isinstance(value, list) else value


def is_mark(part: Any) -> bool:
    """Bedrock's for the cache is a block of its own."""
    return isinstance(part, dict) and part.keys() == {"cachePoint"}
