"""The words of a member's session for its hub."""

from pydantic import Field

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.record import Record
from longhaul.agent.values.hubs import LONGEST_SAID_CHARS
from longhaul.agent.views.subagents import last_words
from longhaul.agent.views.transcript import reply_message


class MemberSaid(OpenValue):
    """What a member has answered, wherever it was asked. Sessions send it, each reply once."""

    workflow_id: str = Field(max_length=1_000)
    """Of the member's session."""
    life: str = Field(max_length=200)
    reply_id: str = Field(max_length=1_000)
    text: str = Field(default="", max_length=2 * LONGEST_SAID_CHARS)
    """Its last words; empty: there is nothing to tell the others."""
    tainted: str = sparse("", max_length=1_000)


def member_said(record: Record, workflow_id: str, hub: str, reply: str) -> MemberSaid:
    ended = reply_message(record, reply)
    return MemberSaid(
        workflow_id=workflow_id,
        life=record.hubs[hub].life,
        reply_id=reply,
        text=_cut(last_words(ended.content)) if ended is not None else "",
        tainted=record.state.tainted[:1_000],
    )


def _cut(text: str) -> str:
    if len(text) <= LONGEST_SAID_CHARS:
        return text
    return f"{text[:LONGEST_SAID_CHARS]}\n(cut here: it has {len(text)} characters)"
