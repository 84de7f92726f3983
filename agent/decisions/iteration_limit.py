"""Decides what the agent's limit of iterations means for a reply: the last model call closes it without tools; where an
answer in a form is asked for, calls in grace follow, which must give it."""

from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.record import Record


def must_close(record: Record, reply: ReplyContext) -> bool:
    """Whether the next model call is the last one, and gets no tools."""
    return _used_up(record, reply) and reply.structured_schema is None


def in_grace(record: Record, reply: ReplyContext) -> bool:
    """Whether the next model call must give the answer in the form that was asked for."""
    return _used_up(record, reply) and reply.structured_schema is not None


def was_closed(record: Record, reply: ReplyContext) -> bool:
    """Whether the answer came from the closing call, behind the last iteration."""
    return reply.cur_iter > record.spec.react_config.max_iters


def _used_up(record: Record, reply: ReplyContext) -> bool:
    return reply.cur_iter >= record.spec.react_config.max_iters
