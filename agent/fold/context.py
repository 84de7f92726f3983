"""Changes the ledger by entries about the context as a whole: it becomes shorter, or stays as it is."""

from typing import assert_never

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.context_tokens import MASK, tokens
from longhaul.agent.fold.ledger.ledger import KEPT_ADJUSTMENTS, Ledger
from longhaul.agent.fold.ledger.ledger_values import Anchor, Mark
from longhaul.agent.fold.reminders import standing_hints
from longhaul.agent.values.conversation.message_tokens import outside_tokens
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock, Usage, with_content


def apply(ledger: Ledger, entry: e.ContextEntry) -> None:
    match entry:
        case e.CompressAsked():
            ledger.compaction.asked = entry
        case e.ContextCompressed():
            _compressed(ledger, entry)
        case e.NotCompressed():
            _compression_failed(ledger, entry)
        case _ as never:
            assert_never(never)


def take_marked(ledger: Ledger, marked: dict[int, Msg]) -> None:
    """Put messages without the secrets that they came with in the place of those with them, wherever these are held.

    By their place in a model's context. What came with the entry, and is not held any more, is passed over.
    """
    for at, shown in marked.items():
        place = at - bool(ledger.state.summary)
        if not 0 <= place < len(ledger.state.context):
            continue
        came = ledger.state.context[place]
        message = with_content(came, shown.content)
        ledger.state.context[place] = message
        held = ledger.context.marks[place].number - ledger.context.transcript_base
        if 0 <= held < len(ledger.context.transcript):
            ledger.context.transcript[held] = message
        ledger.log = [_without(entry, came, message) for entry in ledger.log]


def _without(entry: e.AnyEntry, came: Msg, shown: Msg) -> e.AnyEntry:
    """The entry that brought the message goes into segments as the message stands now."""
    if isinstance(entry, e.CallAnswered) and came.content == (entry.result,):
        (result,) = shown.get_tool_results()
        return entry.model_copy(update={"result": result})
    if not isinstance(entry, e.RequestAccepted | e.Observed | e.HubHeard | e.InterruptAsked):
        return entry
    messages = tuple(
        with_content(each, shown.content) if each.content == came.content else each for each in entry.messages
    )
    return entry if messages == entry.messages else entry.model_copy(update={"messages": messages})


def note_adjusted(ledger: Ledger, entry: e.ModelSaid | e.ContextCompressed | e.CallsExamined) -> None:
    if entry.adjusted:
        told = [*ledger.context.adjusted, *((entry.model, each) for each in entry.adjusted)]
        ledger.context.adjusted = told[-KEPT_ADJUSTMENTS:]


def _compressed(ledger: Ledger, entry: e.ContextCompressed) -> None:
    messages, marks = ledger.state.context, ledger.context.marks
    kept = [*entry.pinned, *range(entry.keep_from, len(messages))]
    pairs = [_masked(messages[at], marks[at]) if at in entry.masked else (messages[at], marks[at]) for at in kept]
    ledger.state.context = [message for message, _ in pairs]
    ledger.context.marks = [mark for _, mark in pairs]
    if entry.summary is not None:
        ledger.state.summary, ledger.context.summary_tokens = entry.summary, entry.summary_tokens
    ledger.context.tokens = ledger.context.summary_tokens + sum(mark.tokens for mark in ledger.context.marks)
    ledger.context.epoch = entry.epoch
    ledger.context.heard = ledger.context.heard._replace(counted=-1)
    # What was observed meanwhile stands behind the kept messages, so the prefix that the activity saw still holds.
    ledger.context.anchor = Anchor(entry.context_digest, entry.context_length)
    ledger.context.reminders = standing_hints(ledger)
    ledger.compaction.changed_at, ledger.compaction.failed_at = ledger.messages_total, 0
    ledger.compaction.error = None
    note_adjusted(ledger, entry)
    _tried(ledger, entry.usage)


def _compression_failed(ledger: Ledger, entry: e.NotCompressed) -> None:
    ledger.compaction.failed_at = tokens(ledger)
    ledger.compaction.error = entry.error
    if ledger.reply is not None and ledger.reply.overflow == "refused":
        # Asked again with the same context, the model would refuse it again; another model may take it.
        ledger.reply.failed_models.append(ledger.spec.model)
    _tried(ledger, entry.usage)


def overflowed(ledger: Ledger) -> bool:
    """Note that the provider refused the context as too long; False when that was answered before in this reply."""
    if ledger.current.overflow:
        return False
    ledger.current.overflow = "refused"
    return True


def _tried(ledger: Ledger, usage: Usage | None) -> None:
    ledger.compaction.tries += 1
    ledger.compaction.asked = None
    ledger.spent.usage += usage or Usage()
    if ledger.reply is not None:
        ledger.reply.usage += usage or Usage()
        if ledger.reply.overflow == "refused":
            ledger.reply.overflow = "answered"


def _masked(message: Msg, mark: Mark) -> tuple[Msg, Mark]:
    content = tuple(
        block.model_copy(update={"output": MASK}) if isinstance(block, ToolResultBlock) else block
        for block in message.content
    )
    # Built anew: a copy would keep the cached length of the old text.
    masked = Msg.model_validate({**message.model_dump(), "content": content})
    return masked, Mark(mark.number, "", outside_tokens(masked))
