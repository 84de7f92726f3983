"""Decides whether what a worker has found for a reply has to be found anew in its midst."""

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.ledger.agent_state import ReplyContext
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.hints import hint_message


def must_list_anew(record: Record, reply: ReplyContext) -> bool:
    """A server offers other tools than those that the reply began with, and the model is about to be asked."""
    return bool(record.provided.outdated) and not reply.answered


def with_tools_from_before(record: Record, why: str) -> e.Prepared:
    """What stands in the place of a new list that could not be had."""
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
