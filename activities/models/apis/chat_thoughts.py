"""Reasoning over Chat Completions, which has no field for it: what servers added, each in its own way, and want back.

`reasoning_content`: DeepSeek, Kimi, GLM, Qwen, SGLang. `reasoning`: vLLM, Groq, Cerebras. `reasoning_details`:
OpenRouter. `extra_content` of a call: Gemini. `<think>` in the text: servers that were not told of their model's way of
thinking. Sources: api-docs.deepseek.com, "Thinking mode"; docs.vllm.ai,
"Reasoning outputs"; openrouter.ai, "Reasoning tokens"; ai.google.dev, "Thought signatures", all as of 2026-11-23.
"""

from collections.abc import Sequence
from typing import Any

from longhaul.activities.models.replies import Assembly, Draft, list_of, text_of
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.turns import AssistantTurn
from longhaul.agent.values.conversation.messages import REASONING_FIELD, ThinkingBlock, ToolCallBlock

FIELDS = ("reasoning_content", "reasoning")
"""A server that sends both sends the same twice."""
_TAGS = ("think", "thinking", "thought")
_TAGGED = frozenset(f"<{tag}>" for tag in _TAGS)
DETAILS, SIGNATURE = "reasoning_details", "thought_signature"
_KEY = "thinking"
_GROWING = {"reasoning.text": "text", "reasoning.summary": "summary"}
"""By type of a detail: the field of it that comes in pieces. Encrypted ones come whole."""

NO_REASONING = " "
"""Where a model wants reasoning back and an answer has none, also one of another model: "The `reasoning_content` in the
thinking mode must be passed back to the API", "reasoning_content is missing in assistant tool call message". An empty
one is missing, too."""
_NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's word for a call that was not its model's."""


class HeardReasoning:
    """Takes it from the pieces of one reply."""

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._details: list[dict[str, Any]] = []
        self._tagged = TaggedThought()

    def say(self, text: str) -> None:
        """Words, with or without a thought in front of them."""
        self._split(*self._tagged.split(text))

    def end(self) -> None:
        """There are no more words."""
        self._split(*self._tagged.rest())

    def _split(self, thought: str, words: str) -> None:
        if thought:
            self._assembly.keep(self.think(thought), **{REASONING_FIELD: f"<{self._tagged.tag}>"})
        if words:
            self._assembly.say("text", "text", words)

    def take(self, delta: dict[str, Any]) -> None:
        said = {name: text for name in FIELDS if (text := text_of(delta.get(name)))}
        for name, text in list(said.items())[:1]:
            self._assembly.keep(self.think(text), **{REASONING_FIELD: name})
        for detail in list_of(delta.get(DETAILS)):
            if isinstance(detail, dict):
                plain = {
                    name: value
                    for name, value in detail.items()
                    if value is None or isinstance(value, str | int | float)
                }
                growing = _GROWING.get(str(plain.get("type")), "")
                if growing and not said:
                    self.think(str(plain.get(growing) or ""))
                self._take_detail(plain, growing)

    def think(self, text: str) -> Draft:
        """There is one thought in a reply."""
        self._tagged.is_over = self._tagged.is_over or not self._tagged.tag
        return self._assembly.say("thinking", _KEY, text)

    def _take_detail(self, detail: dict[str, Any], growing: str) -> None:
        last = self._details[-1] if self._details else {}
        if growing and all(last.get(name) == detail.get(name) for name in ("type", "index")):
            known = {name: value for name, value in detail.items() if value is not None}
            last |= {**known, growing: f"{last.get(growing) or ''}{detail.get(growing) or ''}"}
        else:
            self._details.append(detail)
        self._assembly.keep(self.think(""), **{DETAILS: self._details})

    def take_call(self, draft: Draft, piece: dict[str, Any]) -> None:
        """What came with a piece of this call."""
        match piece.get("extra_content"):
            case {"google": {"thought_signature": str(signature)}} if signature:
                self._assembly.keep(draft, **{SIGNATURE: signature})


class TaggedThought:
    """A thought in tags at the beginning of the text, as it comes from servers that do not read their model's output.
    Whoever thinks in a field of its own means by such tags what they say."""

    def __init__(self) -> None:
        self.tag = ""
        self.is_over = False
        self._held = ""
        """What may be the beginning of a tag."""
        self._is_behind = False
        """The thought has ended, and nothing but empty lines has come."""

    def split(self, text: str) -> tuple[str, str]:
        """The thought and the words in the next piece."""
        text, self._held = self._held + text, ""
        thought = ""
        if not self.tag and not self.is_over:
            started = text.lstrip()
            self.tag = next((tag for tag in _TAGS if started.startswith(f"<{tag}>")), "")
            if not self.tag and any(f"<{tag}>".startswith(started) for tag in _TAGS):
                self._held = text
                return "", ""
            self.is_over = not self.tag
            text = started.removeprefix(f"<{self.tag}>") if self.tag else text
        if self.tag and not self.is_over:
            end = f"</{self.tag}>"
            thought, closed, text = text.partition(end)
            if not closed:
                kept = next((size for size in range(len(end) - 1, 0, -1) if thought.endswith(end[:size])), 0)
                self._held = thought[len(thought) - kept :]
                return thought[: len(thought) - kept], ""
            self.is_over = self._is_behind = True
        if self._is_behind:
            text = text.lstrip("\n")
            self._is_behind = not text
        return thought, text

    def rest(self) -> tuple[str, str]:
        held, self._held = self._held, ""
        return (held, "") if self.tag and not self.is_over else ("", held)


def with_tags(turn: AssistantTurn, text: str) -> str:
    """The text of a turn with the thought in front that came in front of it."""
    for block in turn.blocks:
        field = (block.model_extra or {}).get(REASONING_FIELD) if isinstance(block, ThinkingBlock) else None
        if isinstance(block, ThinkingBlock) and field in _TAGGED:
            return f"{field}{block.thinking}</{field[1:]}\n\n{text}"
    return text


def reasoning_fields(turn: AssistantTurn, model: str, notes: list[str]) -> dict[str, Any]:
    """The fields of an assistant message with the turn's thoughts, under the names under which they came."""
    details: list[Any] = []
    texts: dict[str, list[str]] = {}
    for block in turn.blocks:
        if isinstance(block, ThinkingBlock):
            extras = block.model_extra or {}
            if isinstance(own := extras.get(DETAILS), list):
                details += own
            elif extras.get(REASONING_FIELD) in FIELDS:
                texts.setdefault(extras[REASONING_FIELD], []).append(block.thinking)
            elif extras.get(REASONING_FIELD) not in _TAGGED:
                notes.append("Thinking that this server has not sent was left out.")
    fields: dict[str, Any] = {name: "\n\n".join(said) for name, said in texts.items()}
    if details:
        fields[DETAILS] = details
    if not fields and rules_of(model).wants_back == "reasoning":
        fields[FIELDS[0]] = NO_REASONING
    return fields


def with_signatures(calls: Sequence[ToolCallBlock], sent: Sequence[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """The calls of one turn as they are `sent`, with what their provider signed them with."""
    signed: list[dict[str, Any]] = []
    for call, shown in zip(calls, sent, strict=True):
        signature = call.extras.get(SIGNATURE)
        if not isinstance(signature, str) and not signed and rules_of(model).wants_back == "signature":
            signature = _NO_SIGNATURE
        extra = {"extra_content": {"google": {"thought_signature": signature}}} if isinstance(signature, str) else {}
        signed.append({**shown, **extra})
    return signed
