"""One measurement: wall time, CPU of worker and server apart, and what the history came to."""

import os
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from benchmarks.contenders import Contender, Load

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """Per step, in milliseconds, unless the name says otherwise. History sums over all runs of the session."""

    contender: str
    steps: int
    chars: int
    wall: float
    worker_cpu: float
    server_cpu: float
    events: float
    history_bytes: int
    runs: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


async def measure(client: Client, contender: Contender, load: Load, server_pid: int) -> Sample:
    """Time one session."""
    worker_before, server_before, began = cpu_ms(contender.pid), cpu_ms(server_pid), time.perf_counter()
    workflow_id = await contender.session(load)
    wall = (time.perf_counter() - began) * 1000
    worker, server = cpu_ms(contender.pid) - worker_before, cpu_ms(server_pid) - server_before
    events, size, runs = await history(client, workflow_id)
    return Sample(
        contender=contender.name,
        steps=load.steps,
        chars=load.chars,
        wall=wall / load.steps,
        worker_cpu=worker / load.steps,
        server_cpu=server / load.steps,
        events=events / load.steps,
        history_bytes=size,
        runs=runs,
    )


def cpu_ms(pid: int) -> float:
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:  # noqa: PTH123  read twice per sample, not a path in our care
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


async def history(client: Client, workflow_id: str) -> tuple[int, int, int]:
    """Events, bytes and number of runs, summed along the continue-as-new."""
    found = [run async for run in _runs(client, workflow_id)]
    return sum(run.history_length for run in found), sum(run.history_size_bytes for run in found), len(found)


async def run_ids(client: Client, workflow_id: str) -> list[str]:
    """All runs of a session, the first one first."""
    return [run.execution.run_id async for run in _runs(client, workflow_id)][::-1]


async def _runs(client: Client, workflow_id: str) -> AsyncIterator[WorkflowExecutionInfo]:
    """From the last run back; runs that the server keeps no longer are left out."""
    run_id: str | None = ""
    while run_id is not None:
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=run_id)
        asked = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
        try:
            answer = await client.workflow_service.describe_workflow_execution(asked)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return
            raise
        yield answer.workflow_execution_info
        run_id = await _previous_run(client, workflow_id, answer.workflow_execution_info.execution.run_id)


async def _previous_run(client: Client, workflow_id: str, run_id: str) -> str | None:
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    async for event in handle.fetch_history_events(page_size=1):
        return event.workflow_execution_started_event_attributes.continued_execution_run_id or None
    return None


def memory_bytes(pid: int) -> int:
    """What a process holds in memory now."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as pages:  # noqa: PTH123  as above
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
