"""Schedules: requests that Temporal makes at their times, whether or not anybody of ours is there; and what each
scheduled run came to.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Literal, cast

from temporalio.api.common.v1 import Payload
from temporalio.api.schedule.v1 import SchedulePatch, TriggerImmediatelyRequest
from temporalio.api.workflowservice.v1 import PatchScheduleRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
    WorkflowFailureError,
)
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.values.scheduled_request import Overlap, Requested
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import find_agent
from longhaul.starter.client.schedule_cards import (
    MEMO,
    PREFIX,
    BadSchedule,
    NoSchedule,
    PastScheduledRun,
    ScheduleCard,
    ScheduleTerms,
    WantedSchedule,
    card,
    terms_in,
    wanted_schedule,
)
from longhaul.starter.connection.connect import Naming
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SCHEDULED, TASK_TIMEOUT, priority_of

POLL_SECONDS, TELL_AGAIN_SECONDS = 0.1, 1.0


async def fire_now(client: Client, schedule: ScheduleHandle, within: timedelta) -> PastScheduledRun:
    """What comes of it; "under way" if that is not known in time. Raises RPCError.

    The server forgets a trigger when another change comes in the same moment, so it is told again until it shows the
    scheduled run: the time that goes along is the scheduled run's identity, and two of one second are one.
    """
    due, began, told = datetime.now(UTC).replace(microsecond=0), time.monotonic(), 0
    came = PastScheduledRun(due.isoformat(timespec="seconds"), "under way", why="the server has not started it yet")
    while (spent := time.monotonic() - began) < within.total_seconds() or not told:
        seen = [one for one in (await schedule.describe()).info.recent_actions if one.scheduled_at == due]
        if seen and (came := await past_scheduled_run(client, seen[-1])).state != "under way":
            break
        if not seen and spent >= told * TELL_AGAIN_SECONDS:
            told += 1
            trigger = TriggerImmediatelyRequest()
            trigger.scheduled_time.FromDatetime(due)
            await client.workflow_service.patch_schedule(
                PatchScheduleRequest(
                    namespace=client.namespace,
                    schedule_id=schedule.id,
                    identity=client.identity,
                    patch=SchedulePatch(trigger_immediately=trigger),
                ),
                retry=True,
            )
        await asyncio.sleep(POLL_SECONDS)
    return came


async def past_scheduled_run(client: Client, result: ScheduleActionResult) -> PastScheduledRun:
    at = result.scheduled_at.isoformat(timespec="seconds")
    action = cast(ScheduleActionExecutionStartWorkflow, result.action)  # the SDK knows of no other kind
    handle = client.get_workflow_handle(action.workflow_id, run_id=action.first_execution_run_id, result_type=Requested)
    try:
        if (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:
            return PastScheduledRun(at, "under way")
        came = await handle.result()
    except WorkflowFailureError as error:
        return PastScheduledRun(at, "failed", why=str(error.cause.__cause__ or error.cause))
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return PastScheduledRun(at, "failed", why="the server no longer knows it")
    if came.left_out:
        return PastScheduledRun(at, "left out", why=came.left_out)
    return PastScheduledRun(at, "asked", came.session, came.reply_id)


Put = Literal["added", "changed", "unchanged"]


class Schedules:
    """All schedules of a namespace. Get it as `Longhaul.schedules`. Methods raise BadSchedule with a sentence."""

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
        """Send `prompt` to an agent at the times of a cron line in a time zone, or at an interval.

        Each scheduled run starts a new session, named by its time, or goes to `session`. The schedule keeps the agent
        as its file is now; later changes of the file have no effect. `overlap` is `skip` by default. A scheduled run is
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
        )
        spec = agent if isinstance(agent, AgentSpec) else find_agent(agent)
        await self._create(wanted_schedule(name, prompt, spec, terms, paused=paused))
        return await self.show(name)

    async def put(self, wanted: WantedSchedule) -> Put:
        """Add the schedule, or change the schedule that an earlier text of the same file has added. It stays paused if
        it was, and keeps its scheduled runs. Raises BadSchedule if the name is taken by any other schedule."""
        before = await self.terms_before(wanted)
        if before is None:
            await self._create(wanted)
            return "added"
        if before.digest == wanted.terms.digest:
            return "unchanged"

        def changed(there: ScheduleUpdateInput) -> ScheduleUpdate:
            made = _make_schedule(self._settings, wanted)
            made.state = there.description.schedule.state
            return ScheduleUpdate(made)

        async with _explained(wanted.name):
            await self._handle(wanted.name).update(changed)
        return "changed"

    async def terms_before(self, wanted: WantedSchedule) -> ScheduleTerms | None:
        """The terms of the schedule with this name, if it comes from the same file; None if there is none. Raises
        BadSchedule."""
        try:
            terms = (await self.show(wanted.name)).terms
        except NoSchedule:
            return None
        if not terms.file or (terms.file, terms.user) != (wanted.terms.file, wanted.terms.user):
            raise _taken(wanted.name)
        return terms

    async def _create(self, wanted: WantedSchedule) -> None:
        async with _explained(wanted.name):
            await self._client.create_schedule(
                PREFIX + wanted.name,
                _make_schedule(self._settings, wanted),
                memo={MEMO: wanted.terms.model_dump_json()},
            )

    async def list(self) -> list[ScheduleCard]:
        """All schedules, sorted by name. A schedule that was added a moment ago may be missing."""
        found = list[ScheduleCard]()
        async for row in await self._client.list_schedules():
            if row.id.startswith(PREFIX) and row.schedule is not None:
                coming = row.info.next_action_times if row.info else ()
                state = row.schedule.state
                terms = terms_in((await row.memo()).get(MEMO))
                if terms.file:
                    terms = await self._now(row.id, terms)
                found.append(card(row.id, terms, coming, paused=state.paused, note=state.note))
        return sorted(found, key=lambda card: card.name)

    async def show(self, name: str) -> ScheduleCard:
        async with _explained(name):
            found = await self._handle(name).describe()
            terms = await self._terms(found)
        state = found.schedule.state
        return card(found.id, terms, found.info.next_action_times, paused=state.paused, note=state.note)

    async def _now(self, schedule_id: str, before: ScheduleTerms) -> ScheduleTerms:
        """The terms of one that may have been changed since it began: the list knows those of its beginning."""
        try:
            return await self._terms(await self._client.get_schedule_handle(schedule_id).describe())
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return before  # it was removed a moment ago

    async def _terms(self, found: ScheduleDescription) -> ScheduleTerms:
        """By what it starts: the memo of a schedule can't be changed, that of its action can."""
        action = found.schedule.action
        memo = (action.memo if isinstance(action, ScheduleActionStartWorkflow) else None) or {}
        if not isinstance(kept := memo.get(MEMO), Payload):
            return terms_in((await found.memo()).get(MEMO))
        return terms_in((await self._client.data_converter.decode([kept], [str]))[0])

    async def scheduled_runs(self, name: str) -> Sequence[PastScheduledRun]:
        """The newest scheduled runs, up to ten, the oldest first."""
        async with _explained(name):
            found = await self._handle(name).describe()
            return [await past_scheduled_run(self._client, result) for result in found.info.recent_actions]

    async def pause(self, name: str, *, why: str = "") -> None:
        """Send no requests until somebody resumes the schedule. Sessions that it has started continue."""
        async with _explained(name):
            await self._handle(name).pause(note=why or "paused by a person")

    async def resume(self, name: str) -> None:
        """Send requests again. Times that passed meanwhile are not made up for."""
        async with _explained(name):
            await self._handle(name).unpause(note="resumed by a person")

    async def trigger(self, name: str, *, within: timedelta = timedelta(seconds=10)) -> PastScheduledRun:
        """Start one scheduled run now, even if the schedule is paused.

        Returns what came of it: the session and its reply, or why the run was left out. "under way" if that is not
        known `within` the time, as when no worker runs.
        """
        async with _explained(name):
            return await fire_now(self._client, self._handle(name), within)

    async def remove(self, name: str) -> None:
        """Delete the schedule. Its sessions stay."""
        async with _explained(name):
            await self._handle(name).delete()

    def _handle(self, name: str) -> ScheduleHandle:
        return self._client.get_schedule_handle(PREFIX + name)


def _make_schedule(settings: Settings, wanted: WantedSchedule) -> Schedule:
    terms = wanted.terms
    every = [ScheduleIntervalSpec(every=timedelta(seconds=terms.every_seconds))] if terms.every_seconds else []
    return Schedule(
        action=ScheduleActionStartWorkflow(
            SCHEDULED,
            wanted.request,
            id=PREFIX + wanted.name,
            task_queue=settings.task_queue,
            task_timeout=TASK_TIMEOUT,
            memo={MEMO: terms.model_dump_json()},
            # As of the session that it asks: a scheduled run waits for a worker too.
            priority=priority_of(wanted.request.spec, terms.user, Naming(settings).indexed),
            static_summary=f"run of schedule {wanted.name}",
        ),
        spec=ScheduleSpec(
            cron_expressions=[terms.cron] if terms.cron else [], time_zone_name=terms.zone or None, intervals=every
        ),
        # A scheduled run takes a moment. One behind the other, each knows what the one before has come to.
        policy=SchedulePolicy(
            overlap=ScheduleOverlapPolicy.BUFFER_ALL, catchup_window=timedelta(seconds=terms.catch_up_seconds)
        ),
        state=ScheduleState(paused=wanted.paused),
    )


@asynccontextmanager
async def _explained(name: str) -> AsyncIterator[None]:
    try:
        yield
    except ScheduleAlreadyRunningError as error:
        raise _taken(name) from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise NoSchedule(f"there is no schedule {name[:120]!r}; `longhaul schedule list` names them") from error
        if error.status is RPCStatusCode.INVALID_ARGUMENT:
            raise BadSchedule(f"schedule {name[:120]!r}: the server says: {error.message}") from error
        raise


def _taken(name: str) -> BadSchedule:
    return BadSchedule(f"there is a schedule {name!r} already; remove it first, or use another name")
