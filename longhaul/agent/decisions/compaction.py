"""Decides when a context has to become shorter, and where it is cut: from recorded numbers alone.

Rules of this file: a call and its results stay together; the first goal and the newest request stay word for
word; what the system prompt and the tools take does not count against what is kept. What stands in the place of
the rest is made by an activity.
"""

from longhaul.agent.fold.context_state import Cut, as_reported, tokens
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg
from longhaul.agent.values.spec.agent_spec import ContextConfig

WORTH_PERCENT = 5
"""Of the window: less than this is not worth a summary, unless the provider refuses the context as it is."""
GROWTH_PERCENT = 10
"""Of the window: how much must have come in before a compression that failed is tried again by itself."""


def threshold(ledger: Ledger, config: ContextConfig) -> int:
    return int(ledger.provided.window * config.trigger_ratio)


def next_cut(ledger: Ledger) -> Cut | None:
    """Where to cut now, or None when there is no need, or nothing that could go."""
    asked, config = ledger.compaction.asked, _config(ledger)
    if not ledger.provided.window or ledger.compaction.changed_at == ledger.messages_total:
        return None
    if ledger.spec.kind and ledger.reply is not None and ledger.reply.cur_iter:
        return None  # its steps are what the next one is made from
    if must_compress(ledger):
        return cut(ledger, config, least=1) or _cut_all(ledger, config)
    over = tokens(ledger) > threshold(ledger, config)
    if asked is not None:
        return cut(ledger, config, least=1) if over else None
    if not over or not _grown_since_failure(ledger):
        return None
    return cut(ledger, config, least=ledger.provided.window * WORTH_PERCENT // 100)


def must_compress(ledger: Ledger) -> bool:
    """Whether the provider has refused the context as too long, and nothing was done about it yet."""
    return ledger.reply is not None and ledger.reply.overflow == "refused"


def too_big_without_context(ledger: Ledger, config: ContextConfig | None = None) -> ErrorInfo | None:
    """What to tell whoever asks when the system prompt and the tools alone leave no room; None when they do."""
    fixed = as_reported(ledger, ledger.provided.fixed_tokens)
    limit = threshold(ledger, config or ledger.spec.context_config)
    if not ledger.provided.window or fixed <= limit:
        return None
    return ErrorInfo(
        type="context_overflow",
        message=f"The system prompt and the tools alone take {fixed} tokens, more than the {limit} that trigger_ratio "
        f"allows of the model's {ledger.provided.window}. Shorten the prompt, give the agent fewer tools, or take a "
        "model with a larger window.",
    )


def cut(ledger: Ledger, config: ContextConfig, least: int) -> Cut | None:
    """The cut for this reserve; a smaller reserve if that frees less than `least` tokens; None if none does."""
    context = ledger.state.context
    for reserve in (int(ledger.provided.window * config.reserve_ratio), 0):
        keep_from = min(_before_results(context, _newest(ledger, reserve)), _last_turn(ledger))
        pinned = tuple(index for index in range(keep_from) if _is_pinned(ledger, index))
        dropped = sum(mark.tokens for index, mark in enumerate(ledger.context.marks[:keep_from]) if index not in pinned)
        if dropped and as_reported(ledger, dropped + ledger.context.summary_tokens) >= least:
            return Cut(keep_from, pinned, _room(ledger, config, keep_from, pinned))
    return None


def _cut_all(ledger: Ledger, config: ContextConfig) -> Cut | None:
    """All but the requests: when the provider refuses what is left, the newest turn has to go as well."""
    end = len(ledger.state.context)
    pinned = tuple(index for index in range(end) if _is_pinned(ledger, index))
    return Cut(end, pinned, _room(ledger, config, end, pinned)) if len(pinned) < end else None


def _room(ledger: Ledger, config: ContextConfig, keep_from: int, pinned: tuple[int, ...]) -> int:
    """Tokens between what stays and the threshold; at least a twentieth of the window, or nothing could be said."""
    stays = ledger.provided.fixed_tokens + sum(mark.tokens for mark in ledger.context.marks[keep_from:])
    stays += sum(ledger.context.marks[index].tokens for index in pinned)
    return max(threshold(ledger, config) - as_reported(ledger, stays), ledger.provided.window // 20)


def _newest(ledger: Ledger, reserve: int) -> int:
    """The first of the newest messages that fit the reserve together."""
    left, first = reserve, len(ledger.context.marks)
    for index in range(len(ledger.context.marks) - 1, -1, -1):
        left -= as_reported(ledger, ledger.context.marks[index].tokens)
        if left < 0:
            break
        first = index
    return first


def _before_results(context: list[Msg], first: int) -> int:
    """Forward over results whose call would be cut off: no provider takes a result without its call."""
    while first < len(context) and context[first].get_tool_results():
        first += 1
    return first


def _last_turn(ledger: Ledger) -> int:
    """Where the newest turn begins, if it is there and small enough to be kept whatever the reserve says: a model
    that never sees what it has just asked for would ask for it again."""
    context, size = ledger.state.context, 0
    for index in range(len(context) - 1, -1, -1):
        size += ledger.context.marks[index].tokens
        if as_reported(ledger, size) > ledger.provided.window // 3:
            break
        if context[index].get_tool_calls():
            return index
        if not context[index].get_tool_results():
            break
    return len(context)


def _is_pinned(ledger: Ledger, index: int) -> bool:
    number = ledger.context.marks[index].number
    return number in range(*ledger.context.goal) or number in range(*ledger.context.newest)


def _grown_since_failure(ledger: Ledger) -> bool:
    failed_at = ledger.compaction.failed_at
    return not failed_at or tokens(ledger) > failed_at + ledger.provided.window * GROWTH_PERCENT // 100


def _config(ledger: Ledger) -> ContextConfig:
    asked = ledger.compaction.asked
    return asked.config if asked is not None and asked.config is not None else ledger.spec.context_config
