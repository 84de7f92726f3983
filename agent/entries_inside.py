"""The entry of a call that the session answers itself: no worker runs anything for it."""

from typing import Literal

from agent.entry import Entry
from agent.messages import ToolResultBlock
from agent.plan import PlanModeContext
from agent.tasks import Task
from agent.values import sparse


class CallAnswered(Entry):
    """The result, and what of the state is as the call left it. None = as before."""

    kind: Literal["answered"] = "answered"
    result: ToolResultBlock
    tasks: tuple[Task, ...] | None = sparse(None)
    plan: PlanModeContext | None = sparse(None)
