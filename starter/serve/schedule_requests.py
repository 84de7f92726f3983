"""Requests about schedules: each user's own, in whose name they ask; those of others are not found."""

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from longhaul.agent.plain.values import Value
from longhaul.agent.values.scheduled_request import Overlap
from longhaul.starter.client.schedule_cards import BadSchedule, ScheduleCard, ScheduleTerms
from longhaul.starter.serve.problems import Problem
from longhaul.starter.serve.requests import Call, spec_to_begin, user_meant

MOST_SECONDS = 366 * 86_400.0


class NewSchedule(Value):
    """Ask at the times of a cron line, or every so often."""

    name: str
    """1 to 100 letters, digits, dots, dashes and underscores; of all users' schedules each has another one."""
    agent: str = "longhaul"
    """As its file says now."""
    prompt: str
    """The request of each scheduled run."""
    session: str = ""
    """The one that all scheduled runs go to; without it each begins one of its own."""
    cron: str = ""
    """Five fields, or a word as @daily."""
    zone: str = ""
    """Of the cron line, as in Europe/Berlin; else UTC."""
    every: float | None = Field(default=None, ge=1, le=MOST_SECONDS)
    """Seconds, in the place of a cron line."""
    overlap: Overlap = "skip"
    """What becomes of a scheduled run while the one before is at work."""
    catch_up: float = Field(default=86_400.0, ge=10, le=MOST_SECONDS)
    """Seconds: how old a scheduled run may be that is made up for when the server was down."""
    paused: bool = False
    """Whether it waits for somebody to resume it."""


class Why(Value):
    """For the record."""

    why: str = Field(default="", max_length=2_000)


class ScheduleBody(BaseModel):
    """One schedule, with when it fires next."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    terms: ScheduleTerms
    paused: bool
    note: str
    """Why it is paused."""
    next_at: str
    """ISO time; empty when nothing is to come."""


class ScheduleRows(BaseModel):
    """All of the user's, by name."""

    schedules: tuple[ScheduleBody, ...]


class ScheduledRunBody(BaseModel):
    """What one scheduled run came to; under way: that can't be told yet."""

    model_config = ConfigDict(from_attributes=True)

    at: str
    """ISO time at which it was due."""
    state: Literal["asked", "left out", "under way", "failed"]
    session: str
    reply_id: str
    why: str


class ScheduleWithRuns(BaseModel):
    """One schedule, and its newest scheduled runs, the oldest first."""

    schedule: ScheduleBody
    scheduled_runs: tuple[ScheduledRunBody, ...]


async def schedules(call: Call) -> ScheduleRows:
    user = user_meant(call)
    cards = await call.app.schedules.list()
    return ScheduleRows(schedules=tuple(ScheduleBody.model_validate(card) for card in cards if card.terms.user == user))


async def add_schedule(call: Call) -> tuple[int, ScheduleBody]:
    body: NewSchedule = call.body
    user, spec = user_meant(call), spec_to_begin(call, body.agent)
    try:
        card = await call.app.schedules.add(
            body.name,
            body.prompt,
            agent=spec,
            user=user,
            session=body.session,
            cron=body.cron,
            zone=body.zone,
            every=None if body.every is None else timedelta(seconds=body.every),
            overlap=body.overlap,
            catch_up=timedelta(seconds=body.catch_up),
            paused=body.paused,
        )
    except (BadSchedule, ValueError) as error:
        raise Problem("invalid", str(error)) from error
    return 201, ScheduleBody.model_validate(card)


async def schedule(call: Call) -> ScheduleWithRuns:
    card = await _own(call)
    scheduled_runs = await call.app.schedules.scheduled_runs(card.name)
    return ScheduleWithRuns(
        schedule=ScheduleBody.model_validate(card),
        scheduled_runs=tuple(ScheduledRunBody.model_validate(each) for each in scheduled_runs),
    )


async def pause_schedule(call: Call) -> None:
    body: Why = call.body
    card = await _own(call)
    await call.app.schedules.pause(card.name, why=body.why or f"paused by {call.by}")


async def resume_schedule(call: Call) -> None:
    await call.app.schedules.resume((await _own(call)).name)


async def trigger_schedule(call: Call) -> ScheduledRunBody:
    return ScheduledRunBody.model_validate(await call.app.schedules.trigger((await _own(call)).name))


async def remove_schedule(call: Call) -> None:
    await call.app.schedules.remove((await _own(call)).name)


async def _own(call: Call) -> ScheduleCard:
    """Raises Problem: of another user's the same as of none."""
    name = call.path["schedule"]
    absent = Problem("not-found", f"there is no schedule {name[:120]!r}")
    try:
        user, card = user_meant(call), await call.app.schedules.show(name)
    except BadSchedule as error:
        raise absent from error
    except Problem as problem:
        raise absent if problem.kind == "forbidden" else problem from None
    if card.terms.user != user:
        raise absent
    return card
