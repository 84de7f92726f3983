"""Lists the workers that poll a task queue, as the server knows them."""

from datetime import UTC, datetime, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

POLL_SECONDS = 70
"""A worker's poll lasts a minute, so one that was not seen for longer is gone."""


async def workers(client: Client, queue: str) -> list[str]:
    """Identities of those that polled lately; one that was killed stays for a minute. Raises RPCError."""
    described = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    since = datetime.now(UTC) - timedelta(seconds=POLL_SECONDS)
    return sorted({poller.identity for poller in described.pollers if poller.last_access_time.ToDatetime(UTC) > since})
