"""What entries about the context as a whole do to the ledger: it becomes shorter, or stays as it is."""

from typing import assert_never

from agent import compaction
from agent import entries as e
from agent.compaction_texts import MASK
from agent.ledger import Ledger
from agent.ledger_values import Anchor, Mark
from agent.messages import Msg, ToolResultBlock, Usage
from agent.sizes import outside_tokens
from agent.standing import standing_hints


def apply(ledger: Ledger, entry: e.CompressAsked | e.ContextCompressed | e.CompressionFailed) -> None:
    match entry:
        case e.CompressAsked():
            ledger.compress_asked = entry
        case e.ContextCompressed():
            _compressed(ledger, entry)
        case e.CompressionFailed():
            _compression_failed(ledger, entry)
        case _ as never:
            assert_never(never)


def _compressed(ledger: Ledger, entry: e.ContextCompressed) -> None:
    messages, marks = ledger.state.context, ledger.marks
    kept = [*entry.pinned, *range(entry.keep_from, len(messages))]
    pairs = [_masked(messages[at], marks[at]) if at in entry.masked else (messages[at], marks[at]) for at in kept]
    ledger.state.context = [message for message, _ in pairs]
    ledger.marks = [mark for _, mark in pairs]
    if entry.summary is not None:
        ledger.state.summary, ledger.summary_tokens = entry.summary, entry.summary_tokens
    ledger.context_tokens = ledger.summary_tokens + sum(mark.tokens for mark in ledger.marks)
    ledger.epoch = entry.epoch
    ledger.heard = ledger.heard._replace(counted=-1)
    # What was observed meanwhile stands behind the kept messages, so the prefix that the activity saw still holds.
    ledger.anchor = Anchor(entry.context_digest, entry.context_length)
    ledger.reminders = standing_hints(ledger)
    ledger.compressed_at, ledger.compression_failed_at = ledger.messages_total, 0
    ledger.last_compression_error = None
    _tried(ledger, entry.usage)


def _compression_failed(ledger: Ledger, entry: e.CompressionFailed) -> None:
    ledger.compression_failed_at = compaction.tokens(ledger)
    ledger.last_compression_error = entry.error
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
    ledger.compressions += 1
    ledger.compress_asked = None
    ledger.usage += usage or Usage()
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
