"""Takes out of a context what no provider is to be sent again; the transcript keeps it."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from longhaul.agent.entries.repairs import LeftOut, Repair
from longhaul.agent.fold.ledger.ledger import Ledger
from longhaul.agent.fold.ledger.ledger_values import NOWHERE, Anchor, Mark
from longhaul.agent.values.conversation.message_tokens import outside_tokens
from longhaul.agent.values.conversation.messages import (
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    with_content,
)

TAKEN_OUT = "taken out of the context by hand"
UNANSWERED = "[left out: the model refused to answer this]"


def apply(ledger: Ledger, repair: Repair) -> None:
    """Nothing that came while the model was asked can stand before these places: it was appended."""
    before = bool(ledger.state.summary)
    for place, message in rewritten(ledger.state.context, repair.left_out, before=before):
        mark = ledger.context.marks[place]
        ledger.state.context[place] = message
        ledger.context.marks[place] = Mark(mark.number, "", outside_tokens(message))
    if repair.left_out:
        ledger.context.tokens = ledger.context.summary_tokens + sum(mark.tokens for mark in ledger.context.marks)
        ledger.context.heard = ledger.context.heard._replace(counted=-1)
        ledger.context.anchor = Anchor(repair.context_digest, repair.context_length)
    if (blind := repair.takes_no_images) and blind not in ledger.context.takes_no_images:
        ledger.context.takes_no_images = [*ledger.context.takes_no_images, blind]


def leave_out_unanswered(ledger: Ledger) -> None:
    """Put words in the place of what no model has answered: what people have said, hints, and results. Their calls
    stay, for each has its result."""
    context, first = ledger.state.context, _newest(ledger.state.context)
    for place in range(first, len(context)):
        context[place] = message = with_content(context[place], _unanswered(context[place].content))
        ledger.context.marks[place] = Mark(ledger.context.marks[place].number, "", outside_tokens(message))
    ledger.context.tokens = ledger.context.summary_tokens + sum(mark.tokens for mark in ledger.context.marks)
    ledger.context.heard = ledger.context.heard._replace(counted=-1)
    if ledger.context.anchor.length > first + bool(ledger.state.summary):
        ledger.context.anchor = NOWHERE


def _newest(context: Sequence[Msg]) -> int:
    """Where what a model has not answered yet begins."""
    said = (TextBlock, ThinkingBlock, ToolCallBlock)
    spoken = (
        place
        for place, message in enumerate(context)
        if message.role == "assistant" and any(isinstance(block, said) for block in message.content)
    )
    return max(spoken, default=-1) + 1


def _unanswered(content: Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Of one message; its own words are left out as one."""
    results = [
        block.model_copy(update={"output": UNANSWERED}) for block in content if isinstance(block, ToolResultBlock)
    ]
    hints = [block.model_copy(update={"hint": UNANSWERED}) for block in content if isinstance(block, HintBlock)]
    return (*results, *hints[:1]) if results or hints else (TextBlock(text=UNANSWERED),)


def rewritten(context: Sequence[Msg], outs: Iterable[LeftOut], *, before: int = 0) -> Iterator[tuple[int, Msg]]:
    """The messages that change, with their places. `before`: how many messages the outs count that are not here."""
    for place, of_message in groupby(outs, key=lambda out: out.message - before):
        if 0 <= place < len(context):
            yield place, without(context[place], tuple(of_message))


def without(message: Msg, outs: Sequence[LeftOut]) -> Msg:
    """The message with words, or nothing, in those places."""
    whole = {out.block: out for out in outs if out.part is None}
    parts = {place: [out for out in outs if out.block == place and out.part is not None] for place in range(_end(outs))}
    content: list[ContentBlock] = []
    for place, block in enumerate(message.content):
        if place in whole:
            content += _instead(block, whole[place])
        else:
            content.append(_with_parts(block, parts.get(place, [])))
    return with_content(message, content)


def suspects(context: Iterable[Msg], why: str = TAKEN_OUT) -> tuple[LeftOut, ...]:
    """All attachments, thinking and extras of a context: whatever a provider may refuse."""
    found: list[LeftOut] = []
    for number, message in enumerate(context):
        for place, block in enumerate(message.content):
            match block:
                case ThinkingBlock():
                    found.append(LeftOut(message=number, block=place))
                case TextBlock(extras=extras) | ToolCallBlock(extras=extras) if extras:
                    found.append(LeftOut(message=number, block=place, extras=True))
                case DataBlock():
                    found.append(LeftOut(message=number, block=place, words=words_for(block, why)))
                case HintBlock(hint=tuple(parts)) | ToolResultBlock(output=tuple(parts)):
                    found += [
                        LeftOut(message=number, block=place, part=at, words=words_for(part, why))
                        for at, part in enumerate(parts)
                        if isinstance(part, DataBlock)
                    ]
                case _:
                    pass
    return tuple(found)


def words_for(block: DataBlock, why: str) -> str:
    """What a model reads in the place of an attachment."""
    kind = block.source.media_type.partition("/")[0]
    what = kind if kind in ("image", "audio", "video") else "attachment"
    name = f" {block.name[:200]!r}" if block.name else ""
    return f"[{what}{name} ({block.source.media_type[:100]}) left out: {why}]"


def _end(outs: Sequence[LeftOut]) -> int:
    return max((out.block for out in outs), default=-1) + 1


def _instead(block: ContentBlock, out: LeftOut) -> list[ContentBlock]:
    if out.extras and isinstance(block, TextBlock | ToolCallBlock):
        return [block.model_copy(update={"extras": {}})]
    if out.media_type and isinstance(block, DataBlock):
        return [_declared(block, out.media_type)]
    return [TextBlock(text=out.words)] if out.words else []


def _with_parts(block: ContentBlock, outs: Sequence[LeftOut]) -> ContentBlock:
    match block:
        case HintBlock(hint=tuple(parts)) if outs:
            return block.model_copy(update={"hint": _parts(parts, outs)})
        case ToolResultBlock(output=tuple(parts)) if outs:
            return block.model_copy(update={"output": _parts(parts, outs)})
        case _:
            return block


def _parts(parts: Sequence[TextBlock | DataBlock], outs: Sequence[LeftOut]) -> tuple[TextBlock | DataBlock, ...]:
    by_place = {out.part: out for out in outs}
    return tuple(_part(part, by_place[at]) if at in by_place else part for at, part in enumerate(parts))


def _part(part: TextBlock | DataBlock, out: LeftOut) -> TextBlock | DataBlock:
    if out.media_type and isinstance(part, DataBlock):
        return _declared(part, out.media_type)
    return TextBlock(text=out.words)


def _declared(block: DataBlock, media_type: str) -> DataBlock:
    return block.model_copy(update={"source": block.source.model_copy(update={"media_type": media_type})})
