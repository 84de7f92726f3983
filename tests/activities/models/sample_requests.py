"""Requests, and what comes back, as the tests of the providers write them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Msg,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig

KEYS = {
    "ANTHROPIC_API_KEY": "sk-ant-lilac",
    "OPENAI_API_KEY": "sk-proj-heather",
    "DASHSCOPE_API_KEY": "sk-dash-fern",
    "XAI_API_KEY": "xai-clover-some",
}


def keys_for(url: str) -> list[KeyPlace]:
    """What an operator lists so that all of these may go to that address."""
    return [KeyPlace(name, url) for name in KEYS]


WEATHER = ToolDescriptor(
    name="weather",
    description="Tell the weather of a city.",
    input_schema={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TIDES = ToolDescriptor(name="tides", input_schema={"type": "object", "properties": {"port": {"type": "string"}}})

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Caller:
    """Calls models at one address and keeps the pieces that came."""

    base_url: str
    providers: Providers
    deltas: list[Delta] = field(default_factory=list)
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self,
        model: str,
        messages: Sequence[Msg] | str,
        *,
        system: str = "",
        tools: Sequence[ToolDescriptor] = (),
        **config: Any,
    ) -> ModelReply:
        told = [UserMsg("user", messages)] if isinstance(messages, str) else list(messages)
        settings = ModelConfig(base_url=self.base_url, **config)
        request = ModelRequest(model="", system=system, messages=told, tools=tools, config=settings, call_number=4)
        return await self.providers.call(model, request, self._hear)

    def _hear(self, delta: Delta) -> None:
        self.deltas.append(delta)
        self.began.set()

    def heard(self, kind: str) -> str:
        return "".join(delta.text for delta in self.deltas if delta.kind == kind)


def called(call_id: str, name: str, arguments: str) -> Msg:
    return AssistantMsg("longhaul", [ToolCallBlock(id=call_id, name=name, input=arguments)])


def returned(call_id: str, name: str, output: Any, state: ToolResultState = ToolResultState.SUCCESS) -> Msg:
    return AssistantMsg("longhaul", [ToolResultBlock(id=call_id, name=name, output=output, state=state)])
