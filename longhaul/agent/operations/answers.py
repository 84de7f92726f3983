"""Answers to people who send an operation, where there is more to say than that it was taken. Each has one field, which
is what the method of `Session` gives.
"""

from pydantic import BaseModel


class Interrupted(BaseModel):
    """The reply has ended, or will not begin."""

    interrupted: str
    """Id of the reply that was ended."""


class BackgroundEnds(BaseModel):
    """What was to stop."""

    ends: dict[str, str]
    """How each has ended, by the id of the call that began it; empty where nobody has heard of that in fifteen
    seconds."""


class Notified(BaseModel):
    """The session knows of the event."""

    woken: bool
    """False: no call waited for it just now; it is kept until one does."""


class Compacted(BaseModel):
    """Whether there was something to make shorter."""

    compacted: bool
    """False: the context is below its threshold and stays as it is."""


class Paused(BaseModel):
    """It begins nothing new."""

    changed: bool
    """False: it was paused already."""


class Stepping(BaseModel):
    """It takes one step."""

    changed: bool
    """False: it takes a step already, and no further one."""


class BudgetLimits(BaseModel):
    """What the session may spend."""

    limits: dict[str, float]
    """By name: tokens, cost in dollars, calls, steps, seconds; those that are set."""


class Added(BaseModel):
    """Done, at once or not at all."""

    added: tuple[str, ...]
    """Ids of the new rules."""
