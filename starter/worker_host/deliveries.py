"""Requests that a worker makes of sessions, as any client does: scheduled runs of schedules, and operations of hubs to
their members.
"""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from temporalio import activity
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.exceptions import ApplicationError

from longhaul.agent.operations.bodies import LEAVING
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.hubs import HUB_SAYS
from longhaul.agent.values.scheduled_request import Requested, ScheduledRun
from longhaul.starter.client.reading.queries import Asking, NoSession
from longhaul.starter.client.updates import Sending
from longhaul.starter.client.wire import Refused, start_operation
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import REFUSED, REQUEST, TELL_MEMBER, ToMember

if TYPE_CHECKING:
    from longhaul.starter.client.client import Longhaul


class HubOperations:
    """By an update that begins the session: one that has closed is opened again, and one that never was begins."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    @activity.defn(name=TELL_MEMBER)
    async def tell_member(self, told: ToMember) -> None:
        """Tried again it says the same, which counts once. What the session refuses is not tried again."""
        member, user = told.member, told.operation.user_id
        asking = Asking(
            self._client, member.workflow_id, f"session {member.session_id!r} of agent {member.spec.name!r}"
        )

        def start(title: str) -> WithStartWorkflowOperation[Any, Any]:
            return start_operation(self._settings, member.session_id, user, member.spec, member.workflow_id, title)

        try:
            operation = told.operation.model_dump(mode="json")
            await _unless_leaving(Sending(asking, start).update_with_start(HUB_SAYS, operation))
        except (Refused, BadSetup) as error:
            raise ApplicationError(str(error), type=REFUSED, non_retryable=True) from error


async def _unless_leaving(send: Coroutine[Any, Any, dict[str, Any]]) -> None:
    """A worker that is shut down may be the only one that could answer: it would wait for itself."""
    sending = asyncio.create_task(send)
    leaving = asyncio.create_task(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ApplicationError("its worker is being shut down", type=LEAVING)
        await sending
    finally:
        sending.cancel()
        leaving.cancel()


class ScheduledRequests:
    """Asks by the worker's own client: names and blobs are as for all clients of its settings."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    @activity.defn(name=REQUEST)
    async def request(self, scheduled_run: ScheduledRun) -> Requested:
        """Tried again it asks for the same reply. What the session refuses is not tried again."""
        from longhaul.starter.client.client import Longhaul  # noqa: PLC0415  a worker starts without what clients need

        try:
            return await self._requested(Longhaul(self._client, self._settings), scheduled_run)
        except (Refused, BadSetup) as error:
            raise ApplicationError(str(error), type=REFUSED, non_retryable=True) from error

    async def _requested(self, app: "Longhaul", scheduled_run: ScheduledRun) -> Requested:
        request, before = scheduled_run.request, scheduled_run.before or Requested()
        name = request.session or session_name(request.schedule, scheduled_run.at)
        if not request.session and request.overlap == "skip" and await _is_at_work(app, scheduled_run):
            return before.model_copy(
                update={"left_out": f"session {before.session!r} of the previous run is still working"}
            )
        session = app.session(name, user=request.user_id, agent=request.spec)
        if request.overlap == "skip":
            reply = await session.submit_if_idle(request.prompt, request_id=scheduled_run.request_id)
            if reply is None:
                return Requested(session=name, left_out=f"session {name!r} is at work")
            return Requested(session=name, reply_id=reply)
        when = "queue" if request.overlap == "beside" else request.overlap
        reply = await session.submit(request.prompt, request_id=scheduled_run.request_id, when=when)
        return Requested(session=name, reply_id=reply)


async def _is_at_work(app: "Longhaul", scheduled_run: ScheduledRun) -> bool:
    """Whether the reply of the scheduled run before has not ended. A session that nobody knows any more has."""
    before, request = scheduled_run.before, scheduled_run.request
    if before is None or not before.reply_id:
        return False
    session = app.session(before.session, user=request.user_id, agent=request.spec)
    try:
        return (await session.result(before.reply_id)).status in ("queued", "working", "waiting")
    except NoSession:
        return False


def session_name(schedule: str, at: int) -> str:
    """Of the session that a scheduled run begins: `nightly-20261123-070000`, in UTC."""
    return f"{schedule}-{datetime.fromtimestamp(at / 1000, UTC):%Y%m%d-%H%M%S}"
