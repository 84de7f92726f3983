"""Tools that came to a conversation late: they are shown where they came, so that the beginning of the request stays as
the provider has it in its cache, and as thoughts are bound to it.

A hint of the record names them. Models of Anthropic and OpenAI that take tools in the midst of messages get them there
(platform.claude.com, "Mid-conversation system messages and tool changes"; developers.openai.com, "Tool search"). Every
other model reads their schemas there, and calls them through `call_tool`. Without `call_tool` they stand with all
others at the beginning.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.tool_definitions import wire_name
from longhaul.agent.values.conversation.messages import HintBlock, Msg
from longhaul.agent.values.conversation.prompt import LONGHAUL
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.tool_index import CALL_TOOL, schema_text

LATE_TOOLS = "late tools"
"""Our name of what a provider refuses that takes none in the midst of messages."""
_HOSTS = {"messages": "api.anthropic.com", "responses": "api.openai.com"}
"""Of each API the host that takes them. Servers that speak like it are not known to."""
KEPT = 1_000
"""Messages with their schemas; of one that was forgotten they are written again."""


def takes_late_tools(api: str, base_url: str, model: str) -> bool:
    """Whether this model at this address takes tools in the midst of messages."""
    return urlsplit(base_url).hostname == _HOSTS.get(api, api) and rules_of(model).late_tools


def at_the_beginning(request: ModelRequest) -> Sequence[ToolDescriptor]:
    """The tools that stand before the messages."""
    late = _brought(request)
    return [tool for tool in request.tools if tool.name not in late] if late else request.tools


def placed(request: ModelRequest, own: Sequence[ToolDescriptor], *, native: bool) -> ModelRequest:
    """The request, its late tools where they came. `own`: the tools by their own names; those of the request have the
    names that they are sent by."""
    brought = {wire_name(name) for name in _brought(replace(request, tools=own))}
    late = tuple(tool for tool in request.tools if tool.name in brought and tool.name != request.must_call)
    if not late:
        return request
    names = {tool.name for tool in late}
    placed_tools = tuple(tool for tool in request.tools if tool.name not in names)
    if native:
        return replace(request, tools=placed_tools, late_tools=late)
    return replace(request, tools=placed_tools, messages=_SHOWN.of(request.messages, own))


def _brought(request: ModelRequest) -> set[str]:
    """Names of late tools that are offered."""
    offered = {tool.name for tool in request.tools}
    return offered & _places(request.messages).keys() if CALL_TOOL in offered else set()


def _places(messages: Sequence[Msg]) -> dict[str, int]:
    """By name of a late tool, the place of the last message that brings it."""
    return {name: at for at, message in enumerate(messages) for name in _names_in(message)}


def _names_in(message: Msg) -> Iterator[str]:
    if message.name != LONGHAUL or message.role != "user":
        return
    for block in message.content:
        if isinstance(block, HintBlock):
            yield from block.tools


class _Shown:
    """Messages with the schemas of the tools that they bring. The same message is the same object each time: what is
    written of a conversation is found again by its messages."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[Msg, str, Msg]] = OrderedDict()

    def of(self, messages: Sequence[Msg], tools: Sequence[ToolDescriptor]) -> list[Msg]:
        known = {tool.name: tool for tool in tools}
        last = _places(messages)
        told = list(messages)
        for place in sorted(set(last.values())):
            brought = [known[name] for name, at in last.items() if at == place and name in known]
            if brought:
                told[place] = self._shown(messages[place], schema_text(brought))
        return told

    def _shown(self, message: Msg, schemas: str) -> Msg:
        kept = self._kept.pop(id(message), None)
        if kept is None or kept[0] is not message or kept[1] != schemas:
            text = f"Call them by {CALL_TOOL}, each with arguments that fit its schema:\n{schemas}"
            content = tuple(
                block.model_copy(update={"hint": f"{block.hint}\n{text}"})
                if isinstance(block, HintBlock) and block.tools and isinstance(block.hint, str)
                else block
                for block in message.content
            )
            kept = (message, schemas, message.model_copy(update={"content": content}))
        self._kept[id(message)] = kept
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return kept[2]


_SHOWN = _Shown()
