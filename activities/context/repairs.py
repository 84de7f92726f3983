"""Asks a model without what it would refuse: attachments that are broken, and whatever its provider names or means.

What was left out is recorded with the answer, so no later request has it either, and is asked for only once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from longhaul.activities.context.attachments import is_text_only, looked_into, too_large_among
from longhaul.activities.context.context_cache import SessionContext
from longhaul.activities.models.failures.error_meanings import RefusedContent
from longhaul.activities.models.failures.failure_classification import refusal_in
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.thinking_origin import Beginnings, chain_of, fitting, signed, with_origin
from longhaul.agent.entries import LeftOut, Repair
from longhaul.agent.reducer.context_state import rewritten, without, words_for
from longhaul.agent.values.conversation.messages import (
    CONTINUES,
    IMAGES,
    Base64Source,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    message_digest,
)
from longhaul.agent.values.conversation.prompt import goes_on
from longhaul.agent.values.spec.agent_spec import ModelConfig

log = logging.getLogger(__name__)

MOST_REFUSALS = 4
"""Of one call: one that has thinking, images and a document refused is asked a last time."""
LONGEST_LOOK = 100_000
"""Characters of attachments that are looked into on the event loop; more in a thread."""
NO_IMAGES = "this model takes no images"


class Repairing:
    """Of one model call."""

    def __init__(self, model: str, *, takes_no_images: bool) -> None:
        self._instead: dict[str, DataBlock | TextBlock] = {}
        """By the data or the address of an attachment."""
        self._no_thinking = False
        self._no_images = takes_no_images or is_text_only(model)
        self.learned_no_images = False
        self.refused: list[str] = []
        """What the provider said, each time."""

    async def look_into(self, messages: Sequence[Msg]) -> None:
        """Into the attachments that no model has been sent before."""
        blocks = _attachments(messages)
        if sum(len(_key(block)) for block in blocks) > LONGEST_LOOK:
            await asyncio.to_thread(self._look_into, blocks)
        elif blocks:
            self._look_into(blocks)

    def _look_into(self, blocks: Sequence[DataBlock]) -> None:
        for block in blocks:
            if (shown := looked_into(block)) is not block:
                self._instead[_key(block)] = shown

    async def asked(
        self, request: ModelRequest, ask: Callable[[ModelRequest], Awaitable[ModelReply]], origin: str
    ) -> ModelReply:
        """The reply; asked again without what was refused, as long as that leaves something out. Raises what `ask`
        does. `origin`: whose model it is."""
        images = [block for block in _attachments(self.fitted(request).messages) if block.source.media_type in IMAGES]
        self._instead |= {
            _key(block): TextBlock(text=words_for(block, why)) for block, why in too_large_among(images, origin)
        }
        for _ in range(MOST_REFUSALS):
            fit = self.fitted(request)
            try:
                return await ask(fit)
            except Exception as error:
                refusal, words = refusal_in(error)
                if refusal is None or not self._leave_out(refusal, fit.messages):
                    raise
                log.warning("%s refused part of the conversation; asking again without it: %s", request.model, words)
                self.refused.append(words)
        return await ask(self.fitted(request))

    def fitted(self, request: ModelRequest) -> ModelRequest:
        """The request as the model is sent it."""
        return request.with_messages([each if each.is_plain else self._fitted(each) for each in request.messages])

    def _fitted(self, message: Msg) -> Msg:
        outs = tuple(self._outs(message, 0, images=self._no_images))
        return without(message, outs) if outs else message

    def left_out(self, context: Sequence[Msg]) -> tuple[LeftOut, ...]:
        """What the context is to be without from now on, whatever the model."""
        return tuple(
            out
            for place, message in enumerate(context)
            if not message.is_plain
            for out in self._outs(message, place, images=False)
        )

    def _outs(self, message: Msg, place: int, *, images: bool) -> Iterator[LeftOut]:
        for at, part, block in _inner(message):
            if isinstance(block, ThinkingBlock):
                if self._no_thinking and signed(block):
                    yield LeftOut(message=place, block=at)
            elif isinstance(block, TextBlock | ToolCallBlock):
                if self._no_thinking and block.extras:
                    yield LeftOut(message=place, block=at, extras=True)
            elif (shown := self._instead.get(_key(block))) is not None:
                words = shown.text if isinstance(shown, TextBlock) else ""
                kind = shown.source.media_type if isinstance(shown, DataBlock) else ""
                yield LeftOut(message=place, block=at, part=part, words=words, media_type=kind)
            elif images and block.source.media_type in IMAGES:
                yield LeftOut(message=place, block=at, part=part, words=words_for(block, NO_IMAGES))

    def _leave_out(self, refusal: RefusedContent, sent: Sequence[Msg]) -> bool:
        """Whether there is something to leave out."""
        match refusal.means:
            case "thinking":
                self._no_thinking = any(
                    signed(block) or (isinstance(block, TextBlock | ToolCallBlock) and bool(block.extras))
                    for message in sent
                    for block in message.content
                )
                return self._no_thinking
            case "images at all":
                self.learned_no_images = any(block.source.media_type in IMAGES for block in _attachments(sent))
                self._no_images = self._no_images or self.learned_no_images
                return self.learned_no_images
            case "these":
                return self._replace([block for block in _attachments(sent) if _key(block) in refusal.contents])
            case "attachments":
                # What was there at the last answer was taken then.
                return self._replace(_attachments(sent[_newest(sent) :]) or _attachments(sent))
            case _ as never:
                assert_never(never)

    def _replace(self, refused: Sequence[DataBlock]) -> bool:
        why = "the model's provider refused it"
        self._instead |= {_key(block): TextBlock(text=words_for(block, why)) for block in refused}
        return bool(refused)


def _newest(messages: Sequence[Msg]) -> int:
    """Where what the model has not answered yet begins."""
    for place in range(len(messages) - 1, -1, -1):
        said = messages[place].content if messages[place].role == "assistant" else ()
        if any(isinstance(block, TextBlock | ThinkingBlock | ToolCallBlock) for block in said):
            return place + 1
    return 0


def _attachments(messages: Sequence[Msg]) -> list[DataBlock]:
    particular = (message for message in messages if not message.is_plain)
    return [block for message in particular for _, _, block in _inner(message) if isinstance(block, DataBlock)]


def _inner(message: Msg) -> Iterator[tuple[int, int | None, DataBlock | ThinkingBlock | TextBlock | ToolCallBlock]]:
    """Attachments, thoughts and what may have extras with their places: of the block, and in it."""
    for at, block in enumerate(message.content):
        if isinstance(block, DataBlock | ThinkingBlock | TextBlock | ToolCallBlock):
            yield at, None, block
        for part, inner in enumerate(_parts(block)):
            if isinstance(inner, DataBlock):
                yield at, part, inner


def _parts(block: ContentBlock) -> Sequence[TextBlock | DataBlock]:
    match block:
        case HintBlock(hint=tuple(parts)) | ToolResultBlock(output=tuple(parts)):
            return parts
        case _:
            return ()


def _key(block: DataBlock) -> str:
    source = block.source
    return source.data if isinstance(source, Base64Source) else source.url


REFUSED_CHARS = 1_000
Said = TextBlock | ThinkingBlock | ToolCallBlock


class FitCall:
    """One call. `told`: the session's context as the agent hears it. `origin`: who answers for the model's thoughts."""

    def __init__(
        self,
        session: SessionContext,
        told: Sequence[Msg],
        model: str,
        origin: Callable[[ModelConfig], str],
        *,
        takes_no_images: bool,
    ) -> None:
        self._origin = origin
        self._session = session
        self._told = told
        self._model = model
        self._repairing = Repairing(model, takes_no_images=takes_no_images)
        self.repair: Repair | None = None
        """What the record is to be told of it. The session's context is repaired when it is set."""

    async def look_into(self, first: int) -> None:
        """Into the messages from that one on: the others have been sent before."""
        await self._repairing.look_into(self._told[first:])

    async def ask(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[ModelReply]]) -> ModelReply:
        """The reply, its thoughts with their origin. Raises what `call` does."""
        origin = self._origin(request.config)
        as_recorded = request.messages is self._told  # a middleware may have changed them
        chain = self._session.chain if as_recorded else chain_of(request.messages)
        reply = await self._repairing.asked(fitting(request, origin, Beginnings(request, chain)), call, origin)
        self._note_repair()
        chain = self._session.chain if as_recorded else chain
        behind = Beginnings(request, chain).before(len(chain)) if any(map(signed, reply.content)) else ""
        said = _continued(reply.content) if goes_on(request.messages) else reply.content
        return replace(reply, content=with_origin(said, origin, behind))

    def _note_repair(self) -> None:
        outs = self._repairing.left_out(self._session.messages)
        learned = self._model if self._repairing.learned_no_images else ""
        if not outs and not learned:
            return
        if outs:
            messages = list(self._session.messages)
            for place, message in rewritten(messages, outs):
                messages[place] = message
            self._session.cut(0)
            for message in messages:
                self._session.append(message, message_digest(message))
        self.repair = Repair(
            left_out=outs,
            takes_no_images=learned,
            refused="; ".join(self._repairing.refused)[:REFUSED_CHARS],
            context_digest=self._session.chain[-1],
            context_length=len(self._session.chain),
        )


def _continued(content: Sequence[Said]) -> tuple[Said, ...]:
    """With a mark on the text that belongs to what was said before: whoever reads both parts breaks no line there."""
    at = next((at for at, block in enumerate(content) if not isinstance(block, ThinkingBlock)), -1)
    first = content[at] if content else None
    if not isinstance(first, TextBlock):
        return tuple(content)
    marked = first.model_copy(update={"extras": {**first.extras, CONTINUES: True}})
    return (*content[:at], marked, *content[at + 1 :])
