"""A request in the shape of pydantic-ai's messages, and its answers in ours. The library gives them each vendor's own
form, and knows which vendors want which thoughts and signatures back."""

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, assert_never

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as ToldRequest
from pydantic_ai.models import Model as VendorsModel

from longhaul.activities.models.apis.chat_thoughts import NO_REASONING
from longhaul.activities.models.apis.vendors import Vendor
from longhaul.activities.models.model import ModelRequest, scrub, scrub_json
from longhaul.activities.models.replies import Assembly
from longhaul.activities.models.requests.model_parameters import arguments_text, attachment_of, state_mark
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.activities.models.requests.tool_definitions import wire_name
from longhaul.activities.models.requests.turns import (
    AssistantTurn,
    Part,
    UserTurn,
    arrange,
    left_out,
    parts_of,
    wire_id,
    with_names,
)
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)

PART = "part"
"""Under this name the extras of a block hold what the library wants back with it: ids, signatures, who it is from."""
_KEPT = ("id", "signature", "provider_name", "provider_details")
_LONGEST_ID = 40
_GIF = "image/gif"
_SOUNDS = {kind: kind for kind in ("audio/wav", "audio/ogg", "audio/flac", "audio/aac", "audio/aiff")} | {
    "audio/mpeg": "audio/mp3"
}
"""What Gemini takes, by its own names (ai.google.dev, "Audio understanding")."""

Shown = str | BinaryContent | ImageUrl


def messages_of(request: ModelRequest, model: VendorsModel, vendor: Vendor, notes: list[str]) -> list[ModelMessage]:
    """The conversation: requests and responses in turn, a request first and last. What had to be left out goes into
    `notes`."""
    telling = _Telling(model, vendor, notes)
    if request.system.strip():
        telling.ask(SystemPromptPart(scrub(request.system)))
    for turn in arrange(request.messages):
        match turn:
            case UserTurn():
                telling.ask(UserPromptPart(_joined([telling.shown(part) for part in with_names(turn.said)])))
            case AssistantTurn():
                telling.answer(turn)
            case _ as never:
                assert_never(never)
    if not any(
        isinstance(message, ToldRequest) and any(isinstance(part, UserPromptPart) for part in message.parts)
        for message in telling.messages[:1]
    ):
        telling.open_with("(The conversation begins here.)")
    if isinstance(telling.messages[-1], ModelResponse):
        telling.ask(UserPromptPart("(Continue.)"))
    return telling.messages


def _joined(shown: list[Shown]) -> str | list[Shown]:
    """Plain text where it suffices: small servers know no lists."""
    texts = [part for part in shown if isinstance(part, str)]
    return "\n\n".join(texts) if len(texts) == len(shown) else shown


class _Telling:
    def __init__(self, model: VendorsModel, vendor: Vendor, notes: list[str]) -> None:
        self._model = model
        self._vendor = vendor
        self._notes = notes
        self.messages: list[ModelMessage] = []

    def ask(self, *parts: ModelRequestPart) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ToldRequest):
            last.parts = [*last.parts, *parts]
        else:
            self.messages.append(ToldRequest(parts=list(parts)))

    def open_with(self, text: str) -> None:
        first = self.messages[0] if self.messages else None
        if isinstance(first, ToldRequest):
            first.parts = [*first.parts, UserPromptPart(text)]
        else:
            self.messages.insert(0, ToldRequest(parts=[UserPromptPart(text)]))

    def answer(self, turn: AssistantTurn) -> None:
        """What the assistant said, as if this model had said it: what is another's was taken out before."""
        parts = [part for block in turn.blocks if (part := self._part_of_block(block)) is not None]
        if turn.calls() and not any(isinstance(part, ThinkingPart) for part in parts):
            # Instead of a thought, where the vendor refuses calls without one.
            name = self._model.profile.get("openai_chat_thinking_field")
            if not isinstance(name, str) or rules_of(self._model.model_name).wants_back != "reasoning":
                no_thought = []
            else:
                no_thought = [ThinkingPart(NO_REASONING, id=name, provider_name=self._model.system)]
            parts = [*no_thought, *parts]
        provider = self._model.provider
        self.messages.append(
            ModelResponse(
                parts=parts,
                provider_name=self._model.system,
                canonical_system=self._model.canonical_system,
                provider_url=provider.base_url if provider is not None else None,
            )
        )
        if results := [self._result(result) for result in turn.answers()]:
            self.ask(*results)

    def _part_of_block(self, block: TextBlock | ThinkingBlock | ToolCallBlock) -> ModelResponsePart | None:
        match block:
            case TextBlock():
                return TextPart(scrub(block.text), **_kept(block.extras, "signature"))
            case ToolCallBlock():
                named = wire_name(block.name)
                kept = _kept(block.extras, "signature")
                return ToolCallPart(named, arguments_text(block), wire_id(block.id, _LONGEST_ID), **kept)
            case ThinkingBlock():
                kept = _kept(block.model_extra or {})
                if not kept:
                    self._notes.append("Thinking that this provider has not sent, or not signed, was left out.")
                    return None
                return ThinkingPart(scrub(block.thinking), **kept)
            case _ as never:
                assert_never(never)

    def _result(self, result: ToolResultBlock) -> ToolReturnPart:
        shown = [self.shown(part) for part in parts_of(result.output)]
        texts = [part for part in shown if isinstance(part, str)]
        files = [part for part in shown if not isinstance(part, str)]
        text = state_mark(result) + ("\n".join(texts) or "(no output)")
        content: Any = [text, *files] if files else text
        return ToolReturnPart(wire_name(result.name), content, wire_id(result.id, _LONGEST_ID))

    def shown(self, part: Part) -> Shown:
        if isinstance(part, TextBlock):
            return scrub(part.text)
        attachment, source = attachment_of(part), part.source
        # Of an address that a vendor does not fetch itself the library would have the worker fetch it.
        fits = attachment is not None and (
            (attachment.kind == "image" and self._vendor.takes_pictures)
            or (attachment.kind == "file" and self._vendor.takes_pdf)
        )
        fits = fits and (self._vendor.takes_gif or source.media_type != _GIF)
        fits = fits or (self._vendor.takes_sound and source.media_type in _SOUNDS)
        if fits and isinstance(source, Base64Source):
            try:
                return BinaryContent(
                    base64.b64decode(source.data), media_type=_SOUNDS.get(source.media_type, source.media_type)
                )
            except binascii.Error:
                return left_out(part, self._notes)
        if fits and attachment is not None and self._vendor.sdk in ("openai", "groq"):
            return ImageUrl(attachment.url)
        return left_out(part, self._notes)


def _kept(extras: dict[str, Any], *unknown: str) -> dict[str, Any]:
    """`unknown`: what the part at hand has no field for."""
    kept = extras.get(PART)
    known = [name for name in _KEPT if name not in unknown]
    return {name: kept[name] for name in known if name in kept} if isinstance(kept, dict) else {}


CALL = "call-"
"""Of a call that was put together here the library is given a number for its id."""


def put_together(
    parts: Sequence[ModelResponsePart], request: ModelRequest, notes: list[str], calls: Assembly | None = None
) -> Assembly:
    """The blocks of an answer, each with what the library wants back with it. `calls`: who has put the calls together,
    where the library has not."""
    assembly = Assembly(lambda _: None, request)
    waiting = {} if calls is None else {f"{CALL}{place}": draft for place, draft in enumerate(calls.calls)}
    for place, part in enumerate(parts):
        match part:
            case TextPart():
                draft = assembly.start("text", place)
                assembly.add(draft, part.content)
            case ThinkingPart():
                draft = assembly.start("thinking", place)
                assembly.add(draft, part.content)
            case ToolCallPart(tool_call_id=call_id) if call_id in waiting:
                draft = assembly.adopt(waiting.pop(call_id))
            case ToolCallPart():
                draft = assembly.start("tool_call", place)
                draft.call_id, draft.names, draft.is_closed = part.tool_call_id, [part.tool_name], True
                # The library tells calls that are whole: of one without arguments it has read none.
                assembly.tell_whole(draft, "" if part.args is None else part.args, first=True)
            case _:
                notes.append(f"A part of type {part.part_kind!r} in the reply was left out.")
                continue
        kept = {name: value for name in _KEPT if _is_json(value := getattr(part, name, None))}
        if kept and (isinstance(part, ThinkingPart) or kept.keys() - {"provider_name"}):
            assembly.keep(draft, **{PART: scrub_json(kept)})
    for draft in waiting.values():
        assembly.adopt(draft)
    if calls is not None:
        assembly.adopt_stray(calls)
    return assembly


def _is_json(value: object) -> bool:
    if value is None:
        return False
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
