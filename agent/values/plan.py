"""Plan mode: the agent looks and thinks, and changes nothing until a person has approved its plan."""

import posixpath

from longhaul.agent.plain.values import OpenValue, sparse

DEFAULT_FILE = "plans/PLAN.md"
"""Below the workspace, as AgentScope Java has it."""

PLAN_ENTER, PLAN_EXIT = "plan_enter", "plan_exit"
IS_ON, IS_OVER = "Plan mode is on", "Plan mode is over"
"""How the model is told: by the newest of these in its context it knows how things stand."""


class PlanModeContext(OpenValue):
    """The mode to go back to is the one in `permission_context`: plan mode stands above it."""

    active: bool = False
    file: str = sparse("")
    """Where the agent may write its plan, absolute or below the workspace; empty = DEFAULT_FILE."""

    @property
    def place(self) -> str:
        return self.file or DEFAULT_FILE


NO_PLAN = PlanModeContext()


def plan_file(plan: PlanModeContext, workspace_root: str) -> str:
    """The one file that may be written, absolute; empty when it does not lie below the workspace."""
    path = posixpath.normpath(posixpath.join(workspace_root, plan.place))
    return path if workspace_root and path.startswith(f"{workspace_root.rstrip('/')}/") else ""


def on_text(plan: PlanModeContext, *, may_exit: bool) -> str:
    """What the model is told when plan mode begins."""
    end = (
        f"When the plan is ready, call {PLAN_EXIT} with all of it: a person approves it, changes it, or says why not."
        if may_exit
        else "When the plan is ready, tell it as your answer: a person ends plan mode."
    )
    return (
        f"{IS_ON}: only calls run that are proven to change nothing. Find out what you need and work out a plan. "
        f"The only file that you may write is {plan.place}, for the plan. {end}"
    )


def over_text(mode: str) -> str:
    return f"{IS_OVER}: calls run again as permission says, in the mode {mode!r}."
