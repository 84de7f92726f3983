"""Decides when a context has to become shorter, and where it is cut: from recorded numbers alone.

Rules of this file: a call and its results stay together; the first goal and the newest request stay word for
word; what the system prompt and the tools take does not count against what is kept. What stands in the place of
the rest is made by an activity.
"""

from longhaul.agent.reducer.context_state import Cut, as_reported, tokens
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg
from longhaul.agent.values.spec.agent_spec import ContextConfig

WORTH_PERCENT = 5
"""Of the window: less than this is not worth a summary, unless the provider refuses the context as it is."""
GROWTH_PERCENT = 10
"""Of the window: how much must have come in before a compression that failed is tried again by itself."""


def threshold(session: SessionState, config: ContextConfig) -> int:
    return int(session.provided.window * config.trigger_ratio)


def next_cut(session: SessionState) -> Cut | None:
    """Where to cut now, or None when there is no need, or nothing that could go."""
    asked, config = session.compaction.asked, _config(session)
    if not session.provided.window or session.compaction.changed_at == session.messages_total:
        return None
    if session.spec.custom_agent and session.reply is not None and session.reply.cur_iter:
        return None  # its steps are what the next one is made from
    if must_compress(session):
        return cut(session, config, least=1) or _cut_all(session, config)
    over = tokens(session) > threshold(session, config)
    if asked is not None:
        return cut(session, config, least=1) if over else None
    if not over or not _grown_since_failure(session):
        return None
    return cut(session, config, least=session.provided.window * WORTH_PERCENT // 100)


def must_compress(session: SessionState) -> bool:
    """Whether the provider has refused the context as too long, and nothing was done about it yet."""
    return session.reply is not None and session.reply.overflow == "refused"


def too_big_without_context(session: SessionState, config: ContextConfig | None = None) -> ErrorInfo | None:
    """What to tell whoever asks when the system prompt and the tools alone leave no room; None when they do."""
    fixed = as_reported(session, session.provided.fixed_tokens)
    limit = threshold(session, config or session.spec.context_config)
    if not session.provided.window or fixed <= limit:
        return None
    return ErrorInfo(
        type="context_overflow",
        message=f"The system prompt and the tools alone take {fixed} tokens, more than the {limit} that trigger_ratio "
        f"allows of the model's {session.provided.window}. Shorten the prompt, give the agent fewer tools, or take a "
        "model with a larger window.",
    )


def cut(session: SessionState, config: ContextConfig, least: int) -> Cut | None:
    """The cut for this reserve; a smaller reserve if that frees less than `least` tokens; None if none does."""
    context = session.state.context
    for reserve in (int(session.provided.window * config.reserve_ratio), 0):
        keep_from = min(_before_results(context, _newest(session, reserve)), _last_turn(session))
        pinned = tuple(index for index in range(keep_from) if _is_pinned(session, index))
        dropped = sum(
            mark.tokens for index, mark in enumerate(session.context.marks[:keep_from]) if index not in pinned
        )
        if dropped and as_reported(session, dropped + session.context.summary_tokens) >= least:
            return Cut(keep_from, pinned, _room(session, config, keep_from, pinned))
    return None


def _cut_all(session: SessionState, config: ContextConfig) -> Cut | None:
    """All but the requests: when the provider refuses what is left, the newest turn has to go as well."""
    end = len(session.state.context)
    pinned = tuple(index for index in range(end) if _is_pinned(session, index))
    return Cut(end, pinned, _room(session, config, end, pinned)) if len(pinned) < end else None


def _room(session: SessionState, config: ContextConfig, keep_from: int, pinned: tuple[int, ...]) -> int:
    """Tokens between what stays and the threshold; at least a twentieth of the window, or nothing could be said."""
    stays = session.provided.fixed_tokens + sum(mark.tokens for mark in session.context.marks[keep_from:])
    stays += sum(session.context.marks[index].tokens for index in pinned)
    return max(threshold(session, config) - as_reported(session, stays), session.provided.window // 20)


def _newest(session: SessionState, reserve: int) -> int:
    """The first of the newest messages that fit the reserve together."""
    left, first = reserve, len(session.context.marks)
    for index in range(len(session.context.marks) - 1, -1, -1):
        left -= as_reported(session, session.context.marks[index].tokens)
        if left < 0:
            break
        first = index
    return first


def _before_results(context: list[Msg], first: int) -> int:
    """Forward over results whose call would be cut off: no provider takes a result without its call."""
    while first < len(context) and context[first].get_tool_results():
        first += 1
    return first


def _last_turn(session: SessionState) -> int:
    """Where the newest turn begins, if it is there and small enough to be kept whatever the reserve says: a model
    that never sees what it has just asked for would ask for it again."""
    context, size = session.state.context, 0
    for index in range(len(context) - 1, -1, -1):
        size += session.context.marks[index].tokens
        if as_reported(session, size) > session.provided.window // 3:
            break
        if context[index].get_tool_calls():
            return index
        if not context[index].get_tool_results():
            break
    return len(context)


def _is_pinned(session: SessionState, index: int) -> bool:
    number = session.context.marks[index].number
    return number in range(*session.context.goal) or number in range(*session.context.newest)


def _grown_since_failure(session: SessionState) -> bool:
    failed_at = session.compaction.failed_at
    return not failed_at or tokens(session) > failed_at + session.provided.window * GROWTH_PERCENT // 100


def _config(session: SessionState) -> ContextConfig:
    asked = session.compaction.asked
    return asked.config if asked is not None and asked.config is not None else session.spec.context_config
