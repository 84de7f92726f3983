"""Call ids: the record keeps each one unique, whatever a model sends."""

from longhaul.agent.entries.all_entries import ModelSaid
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock
from longhaul.agent.values.subagents import AGENT


def with_own_call_ids(said: ModelSaid, record: Record) -> ModelSaid:
    """The entry as it came, or with new ids where one is empty, can't name a task or was used before.

    Results, decisions and effects are found by call id, so a repeated id would answer the wrong call. A changed
    message has no digest any more: it travels inline until a model call has seen it.
    """
    used = set[str]()
    facts, unmarked = dict(said.facts), dict(said.unmarked)
    content: list[ContentBlock] = []
    for block in said.message.content:
        if isinstance(block, ToolCallBlock) and (_is_unusable(block) or block.id in used or record.had_call(block.id)):
            own = f"{'call' if _is_unusable(block) else block.id}-{record.seq + 1}-{len(content)}"
            while own in used or record.had_call(own):
                own += "-"
            if block.id in facts and block.id not in used:
                facts[own] = facts[block.id]
            if block.id in unmarked and block.id not in used:
                unmarked[own] = unmarked.pop(block.id)
            block = block.model_copy(update={"id": own})  # noqa: PLW2901  the renamed one takes its place
        if isinstance(block, ToolCallBlock):
            used.add(block.id)
        content.append(block)
    if tuple(content) == said.message.content:
        return said
    message = said.message.model_copy(update={"content": tuple(content)})
    return said.model_copy(
        update={
            "message": message,
            "facts": facts,
            "unmarked": unmarked,
            "digest": "",
            "context_digest": "",
            "context_length": 0,
        }
    )


def _is_unusable(block: ToolCallBlock) -> bool:
    """Whether nothing can be called by its id: a sub-agent names its task by it in letters, to which more is no name.

    Gateways have written thousands of characters into ids, so other tools' ids stay: the model may need them back.
    """
    return not block.id or (block.name == AGENT and len(block.id) > MAX_ID_CHARS)
