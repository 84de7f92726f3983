"""Lists the workers that poll a task queue, and what waits for them there, as the server knows it; and tells what time
it is there.
"""

import asyncio
import contextlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, PollActivityTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

POLL_SECONDS = 70
"""A worker's poll lasts a minute, so one that was not seen for longer is gone."""
CLOCK = "longhaul-clock"
"""A task queue in which nothing is ever put."""
ASK_SECONDS, ASK_AGAIN_SECONDS = 2.0, 0.02
_WORKFLOWS, _ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


class Poller(NamedTuple):
    """A worker, as the server knows it."""

    identity: str
    seen_at: datetime
    """When it last asked for work, to about a minute."""
    build: str
    """Empty where workers are not versioned."""


class Backlog(NamedTuple):
    """What waits in a task queue for a worker."""

    tasks: int
    """About so many."""
    oldest: timedelta
    """How long the oldest of them has waited."""


async def backlog_of(client: Client, queue: str, kind: TaskQueueType.ValueType = _WORKFLOWS) -> Backlog:
    """Without what waits for one worker alone, in whose memory its session is. Raises RPCError."""
    asked = DescribeTaskQueueRequest(
        namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind, report_stats=True
    )
    stats = (await client.workflow_service.describe_task_queue(asked)).stats
    return Backlog(int(stats.approximate_backlog_count), stats.approximate_backlog_age.ToTimedelta())


async def workers(client: Client, queue: str) -> list[str]:
    """Identities of those that polled lately; one that was killed stays for a minute. Raises RPCError."""
    return sorted({one.identity for one in await pollers(client, queue)})


async def pollers(client: Client, queue: str, now: datetime | None = None) -> list[Poller]:
    """The same with what else is known of them. `now`: by our clock; None = that of this moment. Raises RPCError."""
    found = [
        Poller(one.identity, one.last_access_time.ToDatetime(UTC), one.deployment_options.build_id)
        for one in await _seen(client, queue, _WORKFLOWS)
    ]
    latest = max([now or datetime.now(UTC), *(one.seen_at for one in found)])
    if any(_is_gone(one, latest) for one in found):
        # Ours may be ahead, and then all workers would seem to be gone: no question would be waited for.
        latest = await _servers_time(client) or latest
    return sorted(one for one in found if not _is_gone(one, latest))


def _is_gone(one: Poller, now: datetime) -> bool:
    return one.seen_at <= now - timedelta(seconds=POLL_SECONDS)


async def _seen(client: Client, queue: str, kind: TaskQueueType.ValueType) -> list[PollerInfo]:
    asked = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind)
    return list((await client.workflow_service.describe_task_queue(asked)).pollers)


async def time_at(client: Client) -> datetime:
    """By the server's clock, by which sessions go; by ours where the server does not tell."""
    return await _servers_time(client) or datetime.now(UTC)


async def _servers_time(client: Client) -> datetime | None:
    """The server tells its time to nobody, but when it saw whom: we poll ourselves, where nothing comes. None where we
    may not, or it does not show us in time."""
    me = uuid.uuid4().hex
    poll = PollActivityTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=CLOCK), identity=me)
    asked = client.workflow_service.poll_activity_task_queue(poll, timeout=timedelta(minutes=1))
    polling = asyncio.ensure_future(asked)
    try:
        async with asyncio.timeout(ASK_SECONDS):
            while not polling.done():
                for one in await _seen(client, CLOCK, _ACTIVITIES):
                    if one.identity == me:
                        return one.last_access_time.ToDatetime(UTC)
                await asyncio.sleep(ASK_AGAIN_SECONDS)
    except (RPCError, TimeoutError):
        return None
    finally:
        polling.cancel()
        with contextlib.suppress(asyncio.CancelledError, RPCError):
            await polling
    return None
