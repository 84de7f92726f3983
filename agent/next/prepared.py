"""Decides whether what a worker has found for a reply has to be found anew in its midst."""

from longhaul.agent.fold.ledger.state import ReplyContext
from longhaul.agent.record import Record

LISTS_TOOLS_ANEW = 5
"""The behaviour (`decision.BEHAVIOUR`) from which on the tools of a reply change in its midst."""


def must_list_anew(record: Record, reply: ReplyContext) -> bool:
    """A server offers other tools than those that the reply began with, and the model is about to be asked."""
    return bool(record.provided.outdated) and record.state.behaviour >= LISTS_TOOLS_ANEW and not reply.answered
