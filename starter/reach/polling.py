"""Lists the workers that poll a task queue, as the server knows them."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

POLL_SECONDS = 70
"""A worker's poll lasts a minute, so one that was not seen for longer is gone."""


class Poller(NamedTuple):
    """A worker, as the server knows it."""

    identity: str
    seen_at: datetime
    """When it last asked for work, to about a minute."""
    build: str
    """Empty where workers are not versioned."""


async def workers(client: Client, queue: str) -> list[str]:
    """Identities of those that polled lately; one that was killed stays for a minute. Raises RPCError."""
    return sorted({one.identity for one in await pollers(client, queue)})


async def pollers(client: Client, queue: str) -> list[Poller]:
    """The same with what else is known of them. Raises RPCError."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    since = datetime.now(UTC) - timedelta(seconds=POLL_SECONDS)
    found = [
        Poller(one.identity, one.last_access_time.ToDatetime(UTC), one.deployment_options.build_id)
        for one in described.pollers
    ]
    return sorted(one for one in found if one.seen_at > since)
