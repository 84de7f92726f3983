"""What is recorded when a session is made to stand still: paused, let go on, taken one step further."""

from typing import Literal

from agent.entry import Entry
from agent.values import sparse


class Paused(Entry):
    """Nothing new is begun until somebody resumes; what runs ends by itself. Of a paused session: as it was, without
    the step that it was to take."""

    kind: Literal["paused"] = "paused"
    by: str = sparse("")
    why: str = sparse("")


class Unpaused(Entry):
    """Somebody lets a paused session go on."""

    kind: Literal["unpaused"] = "unpaused"
    by: str = sparse("")


class StepAsked(Entry):
    """A paused session is to take one step, and stand still again."""

    kind: Literal["step_asked"] = "step_asked"
    by: str = sparse("")


class StepBegun(Entry):
    """The step that was asked for is being taken; the first thing that comes of it ends it."""

    kind: Literal["step_begun"] = "step_begun"
