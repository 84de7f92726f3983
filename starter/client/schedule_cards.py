"""One schedule: as somebody wants it, checked before the server is asked; and as it is shown, with its terms in words,
its next time and its last scheduled runs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast

from pydantic import ValidationError

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.plain.ids import check_name
from longhaul.agent.plain.values import OpenValue, digest_of, sparse
from longhaul.agent.values.deadlines import LONGEST_SECONDS
from longhaul.agent.values.scheduled_request import Overlap, ScheduledRequest
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import checked

PREFIX = "longhaul.schedule."
"""Of our ids among the schedules of a namespace."""
MEMO = "longhaul"
_MEANS: dict[Overlap, str] = {
    "skip": "a run is skipped while the previous run is working",
    "queue": "a run waits until the previous run has ended",
    "now": "a run is sent to the working run at its next step",
    "interrupt": "a run ends the working run",
    "beside": "runs do not wait for each other",
}


class ScheduleTerms(OpenValue):
    """When a schedule sends its request, and what happens in each scheduled run."""

    cron: str = sparse("")
    """Five fields, or a word such as @daily. Empty: `every_seconds` counts."""
    zone: str = sparse("")
    """Time zone of the cron line, as in Europe/Berlin. Empty: UTC."""
    every_seconds: float = sparse(0.0)
    overlap: Overlap = "skip"
    catch_up_seconds: float = 86_400.0
    """After an outage of the server, scheduled runs that are at most this old are made up for."""
    agent: str = sparse("")
    user: str | None = sparse(None)
    session: str = sparse("")
    """The session that all scheduled runs go to. Empty: each scheduled run starts a new session."""
    prompt: str = sparse("")
    """The prompt, or as much as lists show of it."""
    file: str = sparse("")
    """Name of the agent whose file added the schedule. Empty: a person or program added it."""
    digest: str = sparse("")
    """Digest of all that the file says about the schedule and the agent."""

    def in_words(self) -> str:
        """The terms as one sentence."""
        when = f"at {self.cron!r} in {self.zone or 'UTC'}" if self.cron else f"every {_span(self.every_seconds)}"
        where = f"uses session {self.session!r}" if self.session else "uses a new session"
        missed = "runs missed while the server was down start late, if they are not older than "
        return f"{when}; each run {where}; {_MEANS[self.overlap]}; {missed}{_span(self.catch_up_seconds)}"


@dataclass(frozen=True, slots=True)
class ScheduleCard:
    """One schedule as the server knows it."""

    name: str
    terms: ScheduleTerms
    paused: bool
    note: str
    """Why the schedule is paused, if somebody gave a reason."""
    next_at: str
    """ISO time of the next scheduled run. Empty: there is none."""


@dataclass(frozen=True, slots=True)
class PastScheduledRun:
    """One of a schedule's newest scheduled runs."""

    at: str
    """ISO time at which the run was due."""
    state: Literal["asked", "left out", "under way", "failed"]
    session: str = ""
    reply_id: str = ""
    why: str = ""
    """Why the run was left out or failed."""


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


LONGEST_REQUEST_BYTES = 200_000
"""Prompt and agent: what goes by reference would belong to no session."""
SHORTEST_CATCH_UP_SECONDS = 10.0
"""The server takes no less."""
LONGEST_SHOWN_CHARS = 200
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MOST_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_NO_PLACES = ("local", "localtime", "factory", "posixrules")
"""The server takes them as time zones."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FRESH: tuple[Overlap, ...] = ("skip", "beside")
_LASTING: tuple[Overlap, ...] = ("skip", "queue", "now", "interrupt")


class BadSchedule(BadInput):
    """The schedule is not valid, its name is taken, or it does not exist. Nothing was changed."""


class NoSchedule(BadSchedule):
    """There is no schedule of that name."""


@dataclass(frozen=True, slots=True)
class WantedSchedule:
    """One that can be added as it stands. Get it from `wanted_schedule`."""

    name: str
    request: ScheduledRequest
    terms: ScheduleTerms
    paused: bool


def wanted_schedule(name: str, prompt: str, agent: AgentSpec, terms: ScheduleTerms, *, paused: bool) -> WantedSchedule:
    """`terms`: without what prompt and agent say. Raises BadSchedule, BadAgent, and ValueError for a name that can't be
    stored."""
    _check(name, prompt, terms)
    check_name("session", terms.session)
    check_name("user", terms.user or "")
    spec = checked(agent)
    request = ScheduledRequest(
        schedule=name, prompt=prompt, spec=spec, user_id=terms.user, session=terms.session, overlap=terms.overlap
    )
    if (size := len(request.model_dump_json().encode())) > LONGEST_REQUEST_BYTES:
        raise BadSchedule(
            f"prompt and agent have {size // 1000} kB together, and {LONGEST_REQUEST_BYTES // 1000} kB are the "
            "most; put the content into a file that the agent reads"
        )
    terms = terms.model_copy(update={"agent": spec.name, "prompt": prompt[:LONGEST_SHOWN_CHARS]})
    if terms.file:
        said = [request.model_dump(mode="json"), terms.model_dump(mode="json")]
        terms = terms.model_copy(update={"digest": digest_of(said)})
    return WantedSchedule(name, request, terms, paused)


def _check(name: str, prompt: str, terms: ScheduleTerms) -> None:
    if not _NAME.fullmatch(name):
        raise BadSchedule(f"name: {name[:120]!r} must be 1 to 100 letters, digits, dots, dashes and underscores")
    if not prompt.strip():
        raise BadSchedule("prompt: it is empty; say what the agent should do at each run")
    if bool(terms.cron) == (terms.every_seconds != 0):
        raise BadSchedule("give a cron line or `every`, one of the two")
    _check_zone(terms)
    if not terms.cron and terms.every_seconds < 1:
        raise BadSchedule(f"every: {terms.every_seconds:g} seconds is too often; once a second is the most")
    if terms.cron:
        _check_cron(terms.cron)
    if max(terms.every_seconds, terms.catch_up_seconds) > LONGEST_SECONDS:
        raise BadSchedule(f"every, catch_up: {LONGEST_SECONDS / 86_400:g} days are the most")
    if terms.catch_up_seconds < SHORTEST_CATCH_UP_SECONDS:
        raise BadSchedule(
            f"catch_up: {terms.catch_up_seconds:g} seconds is too short; {SHORTEST_CATCH_UP_SECONDS:g} are the least"
        )
    allowed = _LASTING if terms.session else _FRESH
    if terms.overlap not in allowed:
        kind = "that all use one session" if terms.session else "that use new sessions"
        raise BadSchedule(f"overlap: {terms.overlap!r} is not for runs {kind}; there are: {', '.join(allowed)}")


def _check_zone(terms: ScheduleTerms) -> None:
    if terms.zone and not terms.cron:
        raise BadSchedule("zone: it is for a cron line; `every` counts from midnight UTC, 1970")
    if terms.zone.lower() in _NO_PLACES:
        raise BadSchedule(f"zone: {terms.zone!r} differs between machines; name a place, such as Europe/Berlin")


def _check_cron(line: str) -> None:
    """Whether it says what it seems to: the server takes a sixth field for the year, text behind `#` for a note, and a
    zone in front of the fields, which no list would show."""
    if line.startswith("@"):
        return
    fields = line.split()
    if len(fields) != 5 or "=" in line or "#" in line:
        raise BadSchedule(
            f"cron: {line[:120]!r} must be five fields (minute, hour, day of the month, month, day of the "
            "week) or a word as @daily; give a time zone separately"
        )
    # February 30, say: the server takes it, and never fires. What can't be read here, the server refuses.
    days = fields[2]
    months = fields[3]
    try:
        first = min(day for part in days.split(",") for day in _each(part, 31))
        never_comes = first > max(_MOST_DAYS[month - 1] for part in months.split(",") for month in _each(part, 12))
    except (ValueError, IndexError):
        never_comes = False
    if never_comes:
        raise BadSchedule(f"cron: {line[:120]!r} never comes: no month that it names has a day that it names")


def _each(part: str, most: int) -> range:
    """The numbers of `*`, `4`, `4-9`, `4/2` (to the end) or `4-9/2`; months by their names too."""
    span, _, step = part.partition("/")
    first, _, last = span.replace("*", f"1-{most}").partition("-")
    end = last or (str(most) if step else first)
    return range(_number(first), _number(end) + 1, int(step or "1"))


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _MONTHS.index(word[:3].lower()) + 1
