"""Decides whether what a worker has found for a reply has to be found anew in its midst, and how a worker is found that
keeps something for it."""

from longhaul.agent.entries import every as e
from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.hints import hint_message

LISTS_TOOLS_ANEW = 5
"""The behaviour (`decision.BEHAVIOUR`) from which on the tools of a reply change in its midst."""
LEARNS_OF_HOLDERS = 6
"""The same, from which on the worker that keeps an MCP server is looked for in the session's own queue first, and not
at all once it has left a call in its own queue."""
KEEPS_TOOLS = 6
"""The same, from which on a reply whose tools can't be listed anew goes on with those that it has."""


def must_list_anew(record: Record, reply: ReplyContext) -> bool:
    """A server offers other tools than those that the reply began with, and the model is about to be asked."""
    return bool(record.provided.outdated) and record.state.behaviour >= LISTS_TOOLS_ANEW and not reply.answered


def with_tools_from_before(record: Record, why: str) -> e.Prepared | None:
    """What stands in the place of a new list that could not be had; None for a reply of an older behaviour."""
    if record.state.behaviour < KEEPS_TOOLS:
        return None
    known = record.provided
    told = f"The tools could not be listed anew, and are those from before: {why}"
    return e.Prepared(
        behaviour=record.state.behaviour,
        spec_digest=known.spec_digest,
        workspace_root=known.workspace_root,
        workspace_nonce=known.workspace_nonce,
        fixed_tokens=known.fixed_tokens,
        hints=(hint_message(told, "mcp"),),
    )


def learns_of_holders(record: Record) -> bool:
    """Whether a run remembers where a worker that keeps something for the session was found, or that it was not."""
    return record.state.behaviour >= LEARNS_OF_HOLDERS
