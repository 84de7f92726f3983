"""Entries about a session that stands still: paused, let go on, taken one step further."""

from typing import Literal

from longhaul.agent.entries.entry import Entry, Written
from longhaul.agent.plain.values import OpenValue, sparse


class Pause(OpenValue):
    """Part of the ledger, and carried with it: a roll-over, a restart or another life changes nothing of it."""

    at: int
    """Milliseconds since 1970."""
    by: str = sparse("")
    why: str = sparse("")
    step: Literal["", "asked", "begun"] = sparse("")
    """One step is to be taken, or is being taken, before it stands still again."""


class PauseBegun(Entry):
    """Nothing new is begun until somebody resumes; what runs ends by itself. Of a paused session: as it was, without
    the step that it was to take."""

    kind: Literal["paused"] = "paused"
    by: str = sparse("")
    why: Written = sparse("")


class PauseEnded(Entry):
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


PauseEntry = PauseBegun | PauseEnded | StepAsked | StepBegun
