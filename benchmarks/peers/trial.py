"""One trial: a side's sessions of one load at once; what a step cost, and how it ended."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from temporalio.client import Client

from benchmarks.contenders import Contender, Load, SessionEnded
from benchmarks.measure import cpu_ms, history, run_ids
from benchmarks.peers.course import Course, Step

COMPLETED = "completed"

Ending = tuple[str, SessionEnded | None]
"""Workflow id, and how it ended if not with its last step."""


@dataclass(frozen=True, slots=True)
class Size:
    """What is asked of a side: that many sessions at once, each of that load."""

    load: Load
    sessions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Figures are per step done, in milliseconds unless named otherwise; sums are over all sessions and their runs."""

    contender: str
    steps: int
    chars: int
    sessions: int
    ended: str
    """COMPLETED, or in a word how the first session that did not complete came to its end."""
    why: str
    done: int
    """Steps that came to a tool result."""
    wall: float
    worker_cpu: float
    server_cpu: float
    events: float
    actions: float
    """That a history shows to be billed on Temporal Cloud: without heartbeats and queries."""
    history_bytes: int
    runs: int
    course: tuple[Step, ...]
    """Of a session that ran alone; empty where several ran at once."""

    @property
    def steps_per_second(self) -> float:
        return 1000 / self.wall

    def as_json(self) -> dict[str, Any]:
        """Without the course, which is long."""
        return {key: value for key, value in asdict(self).items() if key != "course"}


async def attempt(client: Client, side: Contender, size: Size, server_pid: int) -> Trial:
    """Only the sessions themselves are timed; their histories are read afterwards."""
    before, began = (cpu_ms(side.pid), cpu_ms(server_pid)), time.perf_counter()
    endings = await asyncio.gather(*(_play(side, size.load) for _ in range(size.sessions)))
    wall, after = (time.perf_counter() - began) * 1000, (cpu_ms(side.pid), cpu_ms(server_pid))
    courses = [await _course(client, workflow_id) for workflow_id, _ in endings]
    sums = [await history(client, workflow_id) for workflow_id, _ in endings]
    done = max(sum(len(course.steps) for course in courses), 1)
    failure = _first_failure(endings, courses)
    if failure and size.sessions == 1:
        # The time that we took to see that nothing comes any more is no time of its steps.
        wall = sum(step.ms for step in courses[0].steps)
    return Trial(
        contender=side.name,
        steps=size.load.steps,
        chars=size.load.chars,
        sessions=size.sessions,
        ended=failure.how if failure else COMPLETED,
        why=failure.why if failure else "",
        done=done,
        wall=wall / done,
        worker_cpu=(after[0] - before[0]) / done,
        server_cpu=(after[1] - before[1]) / done,
        events=sum(events for events, _, _ in sums) / done,
        actions=sum(course.actions for course in courses) / done,
        history_bytes=sum(size for _, size, _ in sums),
        runs=sum(runs for _, _, runs in sums),
        course=tuple(courses[0].steps) if size.sessions == 1 else (),
    )


async def _play(side: Contender, load: Load) -> Ending:
    try:
        return await side.session(load), None
    except SessionEnded as ended:
        return ended.workflow_id, ended


def _first_failure(endings: Sequence[Ending], courses: Sequence[Course]) -> SessionEnded | None:
    """With what its workflow task complained of, where nobody said more than that it fails for ever."""
    for (_, failure), course in zip(endings, courses, strict=True):
        if failure:
            return SessionEnded(failure.workflow_id, failure.how, failure.why or course.complaint)
    return None


async def _course(client: Client, workflow_id: str) -> Course:
    course = Course()
    for run_id in await run_ids(client, workflow_id):
        async for event in client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history_events():
            course.add(event)
    return course
