"""One schedule as it is shown: its terms in words, when it fires next, and what its firings came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from pydantic import ValidationError

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.scheduled_request import Overlap

PREFIX = "longhaul.schedule."
"""Of our ids among the schedules of a namespace."""
MEMO = "longhaul"
_MEANS: dict[Overlap, str] = {
    "skip": "a firing is left out while the one before is at work",
    "queue": "a firing waits for its turn",
    "now": "a firing while another is at work is told to it at its next step",
    "interrupt": "a firing ends what is being made",
    "beside": "firings do not wait for each other",
}


class ScheduleTerms(OpenValue):
    """When a schedule fires, and what becomes of each firing."""

    cron: str = sparse("")
    """Five fields, or a word as @daily; empty: `every_seconds` holds."""
    zone: str = sparse("")
    """Of the cron line, as in Europe/Berlin; empty: UTC."""
    every_seconds: float = sparse(0.0)
    overlap: Overlap = "skip"
    catch_up_seconds: float = 86_400.0
    """After the server was down: how old a firing may be that is made up for."""
    agent: str = sparse("")
    user: str | None = sparse(None)
    session: str = sparse("")
    """The one that all firings go to; empty: each begins one of its own."""
    prompt: str = sparse("")
    """As far as lists show it."""
    file: str = sparse("")
    """The agent by whose file it was brought into being; empty: by hand."""
    digest: str = sparse("")
    """Of all that the file says of it, and of the agent."""

    def in_words(self) -> str:
        """One sentence."""
        when = f"at {self.cron!r} in {self.zone or 'UTC'}" if self.cron else f"every {_span(self.every_seconds)}"
        where = f"goes to session {self.session!r}" if self.session else "begins a session of its own"
        missed = "those missed while the server was down are made up for if they are not older than "
        return f"{when}; each firing {where}; {_MEANS[self.overlap]}; {missed}{_span(self.catch_up_seconds)}"


@dataclass(frozen=True, slots=True)
class ScheduleCard:
    """One schedule as the server knows it."""

    name: str
    terms: ScheduleTerms
    paused: bool
    note: str
    """Why it is paused, where somebody has said so."""
    next_at: str
    """ISO time; empty when nothing is to come."""


@dataclass(frozen=True, slots=True)
class PastFiring:
    """One of the newest firings of a schedule."""

    at: str
    """ISO time at which it was due."""
    state: Literal["asked", "left out", "under way", "failed"]
    session: str = ""
    reply_id: str = ""
    why: str = ""
    """Of one that was left out or has failed."""


def terms_in(told: object) -> ScheduleTerms:
    """Of a memo."""
    try:
        return ScheduleTerms.model_validate_json(cast(str, told))
    except ValidationError:
        return ScheduleTerms()  # somebody else's under our prefix


def card(
    schedule_id: str,
    terms: ScheduleTerms,
    coming: Sequence[datetime],
    *,
    paused: bool,
    note: str | None,
) -> ScheduleCard:
    next_at = coming[0].isoformat(timespec="seconds") if coming and not paused else ""
    return ScheduleCard(schedule_id.removeprefix(PREFIX), terms, paused, (note or "") if paused else "", next_at)


def _span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"
