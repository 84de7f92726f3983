"""A workflow of another team, in another namespace: it knows the service by its operations and their JSON alone."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow

LONG = timedelta(minutes=2)


@dataclass
class Call:
    endpoint: str
    operation: str
    given: dict[str, Any]


@workflow.defn
class Caller:
    @workflow.run
    async def run(self, call: Call) -> Any:
        client = workflow.create_nexus_client(service="Agents", endpoint=call.endpoint)
        return await client.execute_operation(call.operation, call.given, schedule_to_close_timeout=LONG)
