"""Makes of a model's reply what is recorded: its blocks, each call with an id of its own, without calls that it may not
make."""

from itertools import count

from pydantic_core import PydanticSerializationError

from longhaul.activities.models.model import ModelReply
from longhaul.activities.models.requests.text import scrub_json
from longhaul.agent.values.conversation.messages import REFUSALS, ContentBlock, TextBlock, ToolCallBlock


def recorded_content(reply: ModelReply, call_number: int, *, closing: bool) -> tuple[ContentBlock, ...]:
    """`closing`: it may only say where things stand. Calls beside a refusal are not run either."""
    return tuple(map(_sound, _content(reply, call_number, closing=closing)))


def _sound(block: ContentBlock) -> ContentBlock:
    """Without lone surrogates: what can't be recorded would be asked, and paid, for again without end. Providers'
    answers have none; a middleware may give any."""
    try:
        block.model_dump_json()
    except PydanticSerializationError:
        return type(block).model_validate(scrub_json(block.model_dump()))
    return block


def _content(reply: ModelReply, call_number: int, *, closing: bool) -> tuple[ContentBlock, ...]:
    if reply.stop in REFUSALS:
        return _without_calls(reply)
    if closing:
        nothing = TextBlock(text="(The model said nothing when the limit of iterations was reached.)")
        return _without_calls(reply) or (nothing,)
    return tuple(_with_ids(reply, call_number))


def _without_calls(reply: ModelReply) -> tuple[ContentBlock, ...]:
    """What a model says that may not call: a call that it makes all the same is not run."""
    return tuple(block for block in reply.content if not isinstance(block, ToolCallBlock))


def _with_ids(reply: ModelReply, call_number: int) -> list[ContentBlock]:
    """The blocks, each call with an id that no other call of this reply has: findings are kept by id, and permission
    must not judge one call by another's. Ids that earlier replies have used are the record's to see
    (`agent.decisions.call_verdicts`)."""
    used = set[str]()
    fresh = count(1)
    content: list[ContentBlock] = []
    for block in reply.content:
        if isinstance(block, ToolCallBlock):
            call_id = block.id
            while not call_id or call_id in used:
                call_id = f"{block.id or 'call'}-{call_number}-{next(fresh)}"
            used.add(call_id)
            content.append(block.model_copy(update={"id": call_id}))
        else:
            content.append(block)
    return content
