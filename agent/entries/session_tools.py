"""Entries that no worker has a part in: calls that the session answers itself, and what it reminds the model of."""

from typing import Any, Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.messages import Msg, ToolResultBlock
from longhaul.agent.values.plan import PlanModeContext
from longhaul.agent.values.plan_notebook import PlanChange
from longhaul.agent.values.stuck_detection import Pattern
from longhaul.agent.values.tasks import Task


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
    plans: PlanChange | None = sparse(None)
    plan: PlanModeContext | None = sparse(None)
    """Of plan mode."""
    groups: tuple[str, ...] | None = sparse(None)
    """Of tools, the active ones."""
    structured_output: dict[str, Any] | None = sparse(None)
    """The answer in the form that was asked for."""
    unwanted: tuple[str, ...] = sparse(())
    """Sub-agents and commands in the background that are to stop, by the call that started each."""
    sent: dict[str, str] = sparse({})
    """What sub-agents are told, in the same way."""


InsideEntry = CallAnswered | Reminded
