"""Decides whether what a worker has found for a reply has to be found anew in its midst, and how a worker is found that
keeps something for it."""

from longhaul.agent.fold.ledger.state import ReplyContext
from longhaul.agent.record import Record

LISTS_TOOLS_ANEW = 5
"""The behaviour (`decision.BEHAVIOUR`) from which on the tools of a reply change in its midst."""
LEARNS_OF_HOLDERS = 6
"""The same, from which on the worker that keeps an MCP server is looked for in the session's own queue first, and not
at all once it has left a call in its own queue."""


def must_list_anew(record: Record, reply: ReplyContext) -> bool:
    """A server offers other tools than those that the reply began with, and the model is about to be asked."""
    return bool(record.provided.outdated) and record.state.behaviour >= LISTS_TOOLS_ANEW and not reply.answered


def learns_of_holders(record: Record) -> bool:
    """Whether a run remembers where a worker that keeps something for the session was found, or that it was not."""
    return record.state.behaviour >= LEARNS_OF_HOLDERS
