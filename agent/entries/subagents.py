"""Entries about sub-agents: of the session that started them, and of their own."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.amount import Amount
from longhaul.agent.values.subagents import Child, Outcome


class ChildStarted(Entry):
    """A call has begun a session of its own, or found the one that it began before."""

    kind: Literal["child_started"] = "child_started"
    child: Child


class ChildrenTold(Entry):
    """What was passed on to sub-agents."""

    kind: Literal["children_told"] = "children_told"
    letter: Literal["interrupt", "pause", "resume", "budget", "observe"]
    call_ids: tuple[str, ...]
    through: int = sparse(0)
    """Of a budget and of words: the newest entry that was passed on."""


class ChildEnded(Entry):
    """A sub-agent has said how its task ended, or can't say it any more. The result of its call is another entry."""

    kind: Literal["child_ended"] = "child_ended"
    call_id: str
    outcome: Outcome
    session_id: str = sparse("")
    spent: Amount | None = sparse(None)
    """With what it says is in doubt; None: nobody knows it, and all that was put aside for it counts as in doubt."""
    doubtful: Amount = sparse(Amount())
    tainted: str = sparse("")
    """Of one in the background: why what it says may hold what others wrote."""


class ParentTold(Entry):
    """Of a sub-agent: whoever started it knows how the task ended; `error`: why it can't be told."""

    kind: Literal["parent_told"] = "parent_told"
    error: str = sparse("")


class ReportAsked(Entry):
    """Of a sub-agent: whoever started it wants to hear once more how the task ended."""

    kind: Literal["report_asked"] = "report_asked"


ChildEntry = ChildStarted | ChildrenTold | ChildEnded | ParentTold | ReportAsked
