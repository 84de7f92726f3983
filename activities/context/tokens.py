"""Counts the tokens that a model will read: of a text, a message, a tool's output, the system prompt with the tools.

Counts are exact for OpenAI's models where tiktoken's file is at hand, and estimates elsewhere. They are recorded with
what was counted, so a session may mix both; the provider's report corrects them (`agent.plain.measures`).
"""

import asyncio
import hashlib
import json
from collections.abc import Sequence

import tiktoken

from longhaul.activities.context.attachment_tokens import attachment_tokens
from longhaul.activities.context.context_cache import size_of
from longhaul.activities.context.encodings import Encodings, encoding_name
from longhaul.activities.context.token_estimate import estimate
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    Msg,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    parts_of,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor

MESSAGE_TOKENS = 4
"""Role and framing of a message, as OpenAI counts them."""
CALL_TOKENS = 8
"""Framing of a call or of a result, the id included."""
TOOL_TOKENS = 8
TOOLS_TOKENS = dict.fromkeys(("anthropic", "bedrock", "bedrock-mantle", "foundry", "vertex"), 346)
"""What a provider tells the model about tools as such, as soon as there is one (platform.claude.com, "Tool use")."""

INLINE_BYTES = 100_000
"""A larger message is counted in a thread (`count_aside`): tiktoken needs up to 30 ms for this much random text."""

SLICE_CHARACTERS = 16_000
"""tiktoken's splitter gives up, with a panic that `except Exception` does not catch, on a run of a million blanks."""
EXACT_SLICES = 40
"""Of a longer text so many slices are counted, and the estimate of the whole is corrected by them."""

FIXED_KEPT = 256


class TokenCounter:
    """Counts for any model by its full name (`openai:gpt-…`). Nothing here raises, downloads or waits for a file."""

    def __init__(self, encodings: Encodings | None = None) -> None:
        self._encodings = encodings or Encodings()
        self._fixed: dict[tuple[bytes, str], int] = {}

    async def prepare(self, model: str, longest_seconds: float = 5.0) -> bool:
        """Give the model's encoding time to load, so that a session's first counts are exact too; whether they are."""
        name = encoding_name(model)
        await self._encodings.wait(name, longest_seconds)
        return self._encodings.get(name) is not None

    def count_text(self, text: str, model: str) -> int:
        name = encoding_name(model)
        encoding = self._encodings.get(name)
        return estimate(text, name) if encoding is None else _exact(encoding, text)

    def count_message(self, message: Msg, model: str) -> int:
        """With role, framing and the speaker's name. Blocks for the event loop's sake: see `count_aside`."""
        return MESSAGE_TOKENS + self._name(message, model) + sum(self._block(block, model) for block in message.content)

    async def count_aside(self, message: Msg, model: str) -> int:
        """`count_message`, in a thread when the event loop would stand still for it."""
        if size_of(message) <= INLINE_BYTES:
            return self.count_message(message, model)
        return await asyncio.to_thread(self.count_message, message, model)

    def _parts(self, parts: tuple[str | DataBlock, ...], model: str) -> int:
        return sum(
            self.count_text(part, model) if isinstance(part, str) else attachment_tokens(part, model) for part in parts
        )

    def count_fixed(self, system: str, tools: Sequence[ToolDescriptor], model: str) -> int:
        """What comes with every call: the system prompt, and the tools as JSON. Kept, for it rarely changes."""
        texts = [system, *map(_tool_text, tools)]
        name = encoding_name(model)
        measure = f"{model.partition(':')[0]} {name} {self._encodings.get(name) is not None}"
        key = (hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest(), measure)
        if key not in self._fixed:
            if len(self._fixed) >= FIXED_KEPT:
                self._fixed.clear()
            self._fixed[key] = self._fixed_tokens(texts, model)
        return self._fixed[key]

    def _fixed_tokens(self, texts: list[str], model: str) -> int:
        tools = len(texts) - 1
        framing = MESSAGE_TOKENS + tools * TOOL_TOKENS
        told = TOOLS_TOKENS.get(model.partition(":")[0], 0) if tools else 0
        return framing + told + sum(self.count_text(text, model) for text in texts)

    def _name(self, message: Msg, model: str) -> int:
        """`activities.models.requests.turns` puts the name of whoever is not simply the user before what they say."""
        named = message.role == "user" and message.name.lower() != "user"
        return self.count_text(f"{message.name}: ", model) if named else 0

    def _block(self, block: ContentBlock, model: str) -> int:
        if isinstance(block, ToolCallBlock):
            return CALL_TOKENS + self.count_text(f"{block.name} {block.input}", model)
        tokens = self._parts(parts_of(block), model)
        if isinstance(block, ThinkingBlock):
            return tokens or _sealed(block)
        if isinstance(block, ToolResultBlock):
            return CALL_TOKENS + tokens + (0 if block.state is ToolResultState.SUCCESS else 2)
        return tokens


def _exact(encoding: tiktoken.Encoding, text: str) -> int:
    """All slices of a text up to 640,000 characters; of a longer one some, evenly spread and always the same."""
    starts = range(0, len(text), SLICE_CHARACTERS)
    if len(starts) <= EXACT_SLICES:
        return sum(len(encoding.encode_ordinary(text[start : start + SLICE_CHARACTERS])) for start in starts)
    chosen = [starts[number * len(starts) // EXACT_SLICES] for number in range(EXACT_SLICES)]
    sample = [text[start : start + SLICE_CHARACTERS] for start in chosen]
    counted = sum(len(encoding.encode_ordinary(part)) for part in sample)
    return estimate(text, encoding.name) * counted // sum(estimate(part, encoding.name) for part in sample)


def _sealed(block: ThinkingBlock) -> int:
    """Thinking that only the provider can read: four characters of base64 hold three bytes, four bytes a token."""
    extras = block.model_extra or {}
    sealed = extras.get("redacted_thinking_data") or extras.get("encrypted_content") or ""
    return len(sealed) * 3 // 16 if isinstance(sealed, str) else 0


def _tool_text(tool: ToolDescriptor) -> str:
    try:
        schema = json.dumps(tool.input_schema, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        schema = ""  # no provider takes it either
    return f"{tool.name} {tool.description} {schema}"
