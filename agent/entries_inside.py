"""Entries that no worker has a part in: calls that the session answers itself, and what it reminds the model of."""

from typing import Literal

from agent.entry import Entry
from agent.messages import Msg, ToolResultBlock
from agent.plan import PlanModeContext
from agent.stuck import Pattern
from agent.tasks import Task
from agent.values import sparse


class Reminded(Entry):
    """The model is told again what holds, at the end of its context. The words are recorded, not only the occasion:
    what a context had lost can't be told from the entries behind a seam."""

    kind: Literal["reminded"] = "reminded"
    messages: tuple[Msg, ...]
    stuck: Pattern = sparse("")
    """The model is told, too, that it goes round in circles: how."""


class CallAnswered(Entry):
    """The result, and what of the state is as the call left it. None = as before."""

    kind: Literal["answered"] = "answered"
    result: ToolResultBlock
    tasks: tuple[Task, ...] | None = sparse(None)
    plan: PlanModeContext | None = sparse(None)
    groups: tuple[str, ...] | None = sparse(None)
    """Of tools, the active ones."""
