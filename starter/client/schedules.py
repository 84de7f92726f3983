"""Schedules: requests that Temporal makes at their times, whether or not anybody of ours is there."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import cast

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.plain.errors import BadInput
from longhaul.agent.values.schedules import Overlap, Requested, ScheduledRequest
from longhaul.agent.values.spec.settings import AgentSpec
from longhaul.starter.client.agents import checked, find_agent
from longhaul.starter.client.schedule_cards import MEMO, PREFIX, PastFiring, ScheduleCard, ScheduleTerms, card, terms_in
from longhaul.starter.client.wire import check_name
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SCHEDULED, TASK_TIMEOUT

LONGEST_REQUEST_BYTES = 200_000
"""Prompt and agent: what goes by reference would belong to no session."""
SHORTEST_CATCH_UP_SECONDS = 10.0
"""The server takes no less."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FRESH: tuple[Overlap, ...] = ("skip", "beside")
_LASTING: tuple[Overlap, ...] = ("skip", "queue", "now", "interrupt")


class BadSchedule(BadInput):
    """A schedule that can't be meant so, whose name is taken, or that is not there; nothing was changed."""


class Schedules:
    """All of a namespace. Get it as `Longhaul.schedules`. Methods raise BadSchedule with a sentence."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def add(  # noqa: PLR0913  one parameter a setting
        self,
        name: str,
        prompt: str,
        *,
        agent: str | AgentSpec = "longhaul",
        user: str | None = None,
        session: str = "",
        cron: str = "",
        zone: str = "",
        every: timedelta | None = None,
        overlap: Overlap | None = None,
        catch_up: timedelta = timedelta(days=1),
        paused: bool = False,
    ) -> ScheduleCard:
        """Have `prompt` asked at the times of a cron line in a time zone, or every so often.

        Each firing begins a session of its own, named by its time, or goes to `session`. The agent is as its file says
        now: one that changes later changes nothing here. `overlap` is `skip` unless something else is said. A firing is
        one request, however often it is tried.
        """
        terms = ScheduleTerms(
            cron=cron,
            zone=zone,
            every_seconds=every.total_seconds() if every is not None else 0.0,
            overlap=overlap or "skip",
            catch_up_seconds=catch_up.total_seconds(),
            user=user,
            session=session,
            prompt=prompt[:200],
        )
        _check(name, prompt, terms)
        check_name("session", session)
        check_name("user", user or "")
        spec = checked(agent) if isinstance(agent, AgentSpec) else find_agent(agent)
        terms = terms.model_copy(update={"agent": spec.name})
        request = ScheduledRequest(
            schedule=name, prompt=prompt, spec=spec, user_id=user, session=session, overlap=terms.overlap
        )
        if (size := len(request.model_dump_json().encode())) > LONGEST_REQUEST_BYTES:
            raise BadSchedule(
                f"prompt and agent have {size // 1000} kB together, and {LONGEST_REQUEST_BYTES // 1000} kB are the "
                "most; put the content into a file that the agent reads"
            )
        with_memo = {MEMO: terms.model_dump_json()}
        async with _explained(name):
            await self._client.create_schedule(
                PREFIX + name, _schedule(self._settings.task_queue, name, request, terms, paused=paused), memo=with_memo
            )
        return await self.show(name)

    async def list(self) -> list[ScheduleCard]:
        """By name. One that was added a moment ago may be missing."""
        found = list[ScheduleCard]()
        async for row in await self._client.list_schedules():
            if row.id.startswith(PREFIX) and row.schedule is not None:
                coming = row.info.next_action_times if row.info else ()
                state = row.schedule.state
                terms = terms_in((await row.memo()).get(MEMO))
                found.append(card(row.id, terms, coming, paused=state.paused, note=state.note))
        return sorted(found, key=lambda card: card.name)

    async def show(self, name: str) -> ScheduleCard:
        async with _explained(name):
            found = await self._handle(name).describe()
            terms = terms_in((await found.memo()).get(MEMO))
        state = found.schedule.state
        return card(found.id, terms, found.info.next_action_times, paused=state.paused, note=state.note)

    async def firings(self, name: str) -> Sequence[PastFiring]:
        """The newest ones, up to ten, the oldest first."""
        async with _explained(name):
            found = await self._handle(name).describe()
            return [await self._past(result) for result in found.info.recent_actions]

    async def _past(self, result: ScheduleActionResult) -> PastFiring:
        at = result.scheduled_at.isoformat(timespec="seconds")
        action = cast(ScheduleActionExecutionStartWorkflow, result.action)  # the SDK knows of no other kind
        handle = self._client.get_workflow_handle(
            action.workflow_id, run_id=action.first_execution_run_id, result_type=Requested
        )
        try:
            if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
                return PastFiring(at, "under way")
            came = await handle.result()
        except WorkflowFailureError as error:
            return PastFiring(at, "failed", why=str(error.cause.__cause__ or error.cause))
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return PastFiring(at, "failed", why="the server knows nothing of it any more")
        if came.left_out:
            return PastFiring(at, "left out", why=came.left_out)
        return PastFiring(at, "asked", came.session, came.reply_id)

    async def pause(self, name: str, *, why: str = "") -> None:
        """It fires no more until somebody resumes it; what it has begun goes on."""
        async with _explained(name):
            await self._handle(name).pause(note=why or "paused by a person")

    async def resume(self, name: str) -> None:
        """What would have fired meanwhile is not made up for."""
        async with _explained(name):
            await self._handle(name).unpause(note="resumed by a person")

    async def trigger(self, name: str) -> None:
        """Have it fire once now, also when it is paused."""
        async with _explained(name):
            await self._handle(name).trigger()

    async def remove(self, name: str) -> None:
        """It fires no more; its sessions stay."""
        async with _explained(name):
            await self._handle(name).delete()

    def _handle(self, name: str) -> ScheduleHandle:
        return self._client.get_schedule_handle(PREFIX + name)


def _check(name: str, prompt: str, terms: ScheduleTerms) -> None:
    if not _NAME.fullmatch(name):
        raise BadSchedule(f"name: {name[:120]!r} has to be 1 to 100 letters, digits, dots, dashes and underscores")
    if not prompt.strip():
        raise BadSchedule("prompt: it is empty; say what the agent should do at each firing")
    if bool(terms.cron) == (terms.every_seconds != 0):
        raise BadSchedule("give a cron line or `every`, one of both")
    if terms.zone and not terms.cron:
        raise BadSchedule("zone: it is for a cron line; `every` counts from midnight UTC, 1970")
    if not terms.cron and terms.every_seconds < 1:
        raise BadSchedule(f"every: {terms.every_seconds:g} seconds is too often; once a second is the most")
    if terms.catch_up_seconds < SHORTEST_CATCH_UP_SECONDS:
        raise BadSchedule(
            f"catch_up: {terms.catch_up_seconds:g} seconds is too short; {SHORTEST_CATCH_UP_SECONDS:g} are the least"
        )
    allowed = _LASTING if terms.session else _FRESH
    if terms.overlap not in allowed:
        kind = "that all go to one session" if terms.session else "that begin sessions of their own"
        raise BadSchedule(f"overlap: {terms.overlap!r} is not for firings {kind}; there are: {', '.join(allowed)}")


def _schedule(queue: str, name: str, request: ScheduledRequest, terms: ScheduleTerms, *, paused: bool) -> Schedule:
    every = [ScheduleIntervalSpec(every=timedelta(seconds=terms.every_seconds))] if terms.every_seconds else []
    return Schedule(
        action=ScheduleActionStartWorkflow(
            SCHEDULED,
            request,
            id=PREFIX + name,
            task_queue=queue,
            task_timeout=TASK_TIMEOUT,
            static_summary=f"firing of schedule {name}",
        ),
        spec=ScheduleSpec(
            cron_expressions=[terms.cron] if terms.cron else [], time_zone_name=terms.zone or None, intervals=every
        ),
        # A firing takes a moment. One behind the other, each knows what the one before has come to.
        policy=SchedulePolicy(
            overlap=ScheduleOverlapPolicy.BUFFER_ALL, catchup_window=timedelta(seconds=terms.catch_up_seconds)
        ),
        state=ScheduleState(paused=paused),
    )


@asynccontextmanager
async def _explained(name: str) -> AsyncIterator[None]:
    try:
        yield
    except ScheduleAlreadyRunningError as error:
        raise BadSchedule(f"there is a schedule {name!r} already; remove it first, or take another name") from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise BadSchedule(f"there is no schedule {name[:120]!r}; `longhaul schedule list` names them") from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise BadSchedule(f"schedule {name[:120]!r}: the server says: {error.message}") from error
        raise
