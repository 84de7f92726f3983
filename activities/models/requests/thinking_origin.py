"""Keeps with each signed thought, and with the extras of texts and calls, where they came from, and leaves them out
where they would be refused or do not belong.

Newer Claude models bind a thought to the model that had it and to all that stood before it: system prompt, tools and
messages ("Preserved thinking", platform.claude.com). Of other models it is bound to the provider at most.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.requests.late_tools import at_the_beginning
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.agent.entries import LeftOut
from longhaul.agent.plain.values import OpenValue, chain_digest, digest_of
from longhaul.agent.reducer.context_state import without
from longhaul.agent.values.conversation.messages import Msg, TextBlock, ThinkingBlock, ToolCallBlock, message_digest
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import VENDORS, split_model

Block = TypeVar("Block", bound=OpenValue)

MADE_BY, MADE_BEHIND = "made_by", "made_behind"
"""Kept with a recorded block: the model, and the digest of what stood before it. Providers never see them."""
OF_MANY_VENDORS = frozenset({"openai-chat", "azure-chat", "qwen", *(f"ai:{vendor}" for vendor in VENDORS)})
"""Prefixes whose servers may offer models of many vendors at one address, each with reasoning of its own kind: it goes
back to the same model alone."""
_DIGEST_CHARS = 20


def binds_thinking(model: str) -> bool:
    """Whether the model refuses a thought after a changed beginning, whatever gateway names it."""
    return rules_of(model).binds


def origin_of(full_model_name: str, config: ModelConfig) -> str:
    """Who answers for thoughts of this model: its name with its provider, and an address of its own."""
    return f"{full_model_name} {config.base_url}" if config.base_url else full_model_name


def chain_of(messages: Sequence[Msg]) -> list[str]:
    """Digests of the context up to and with each message."""
    chain: list[str] = []
    for message in messages:
        chain.append(chain_digest(chain[-1] if chain else "", message_digest(message)))
    return chain


class Beginnings:
    """What stands before each message of one request."""

    def __init__(self, request: ModelRequest, chain: Sequence[str]) -> None:
        self._request = request
        self._chain = chain

    @cached_property
    def _frame(self) -> str:
        """Asked for where there are thoughts alone: a system prompt is long."""
        tools = at_the_beginning(self._request)
        return digest_of([self._request.system, [[tool.name, tool.digest] for tool in tools]])

    def before(self, place: int) -> str:
        return digest_of([self._frame, self._chain[place - 1] if place else ""])[:_DIGEST_CHARS]


def signed(block: OpenValue) -> bool:
    """Whether a provider would look at it when it comes back."""
    return isinstance(block, ThinkingBlock) and bool(block.model_extra)


def with_origin(content: Sequence[Block], origin: str, behind: str) -> tuple[Block, ...]:
    """A reply's content, its thoughts and extras with their origin."""
    return tuple(_with_origin(block, origin, behind) for block in content)


def _with_origin(block: Block, origin: str, behind: str) -> Block:
    if signed(block):
        return block.model_copy(update={MADE_BY: origin, MADE_BEHIND: behind})
    extras = block.extras if isinstance(block, TextBlock | ToolCallBlock) else {}
    return block.model_copy(update={"extras": {**extras, MADE_BY: origin}}) if extras else block


def fitting(request: ModelRequest, origin: str, beginnings: Beginnings) -> ModelRequest:
    """The request without thoughts that are another provider's or, for a model that binds them, stand behind another
    beginning. One without an origin is left to the provider's judgement; extras without one go to nobody."""
    binds = binds_thinking(origin)
    messages = [
        message if message.is_plain else _fitting(message, place, origin, beginnings if binds else None)
        for place, message in enumerate(request.messages)
    ]
    return request.with_messages(messages)


def _fitting(message: Msg, place: int, origin: str, beginnings: Beginnings | None) -> Msg:
    outs = [
        LeftOut(message=place, block=at)
        for at, block in enumerate(message.content)
        if isinstance(block, ThinkingBlock) and not _fits(block, place, origin, beginnings)
    ]
    outs += [LeftOut(message=place, block=at, extras=True) for at in _foreign(message, origin)]
    return without(message, outs) if outs else message


def _foreign(message: Msg, origin: str) -> list[int]:
    """Places of the blocks with extras that are not this provider's."""
    return [
        at
        for at, block in enumerate(message.content)
        if isinstance(block, TextBlock | ToolCallBlock) and block.extras and not _is_of(block.extras, origin)
    ]


def _is_of(extras: Mapping[str, object], origin: str) -> bool:
    made_by = extras.get(MADE_BY)
    return isinstance(made_by, str) and _provider(made_by) == _provider(origin)


def _fits(block: ThinkingBlock, place: int, origin: str, beginnings: Beginnings | None) -> bool:
    extras = block.model_extra or {}
    made_by = extras.get(MADE_BY)
    if not isinstance(made_by, str):
        return True
    if beginnings is None:
        return _provider(made_by) == _provider(origin)
    return made_by == origin and extras.get(MADE_BEHIND) == beginnings.before(place)


def _provider(origin: str) -> tuple[str, str]:
    """Who takes back what this model has said."""
    name, _, address = origin.partition(" ")
    prefix = split_model(name)[0]
    return name if prefix in OF_MANY_VENDORS else prefix, address
