"""Proves the demo's claims at its end, where they can't be made up: in the files, the history and the clock."""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from longhaul.agent.values.conversation.messages import Msg, ToolResultState
from longhaul.starter.demo.story import AFTER, BEFORE, BROKEN_FILE, PROJECT

CALL_MODEL = "longhaul.call_model"
"""As the worker registers it; the activities' contract is not for `starter/`."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of the whole session, over all its crashes."""

    events: int
    history_bytes: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


async def history_size(client: Client, workflow_id: str) -> tuple[int, int]:
    """Events and bytes of the session's history."""
    described = await client.get_workflow_handle(workflow_id).describe()
    info = described.raw_description.workflow_execution_info
    return info.history_length, info.history_size_bytes


async def attempt_of_model_call(client: Client, workflow_id: str) -> int:
    """Which attempt of a model call runs now; 0 when none does."""
    described = await client.get_workflow_handle(workflow_id).describe()
    for running in described.raw_description.pending_activities:
        if running.activity_type.name == CALL_MODEL and running.HasField("last_started_time"):
            return running.attempt
    return 0


@dataclass(frozen=True, slots=True)
class Activities:
    """What the server's history tells, by kind of activity."""

    completed: Counter[str]
    repeated: Counter[str]
    """Completed by a further attempt, because the one before was lost."""


async def activities(client: Client, workflow_id: str) -> Activities:
    """Read the history from its beginning."""
    kinds: dict[int, str] = {}
    told = Activities(Counter(), Counter())
    async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
        if event.HasField("activity_task_scheduled_event_attributes"):
            kinds[event.event_id] = event.activity_task_scheduled_event_attributes.activity_type.name
        elif event.HasField("activity_task_started_event_attributes"):
            started = event.activity_task_started_event_attributes
            told.repeated[kinds[started.scheduled_event_id]] += started.attempt > 1
        elif event.HasField("activity_task_completed_event_attributes"):
            told.completed[kinds[event.activity_task_completed_event_attributes.scheduled_event_id]] += 1
    return told


def complaints(project: Path, told: Activities, reply: Msg) -> list[str]:
    """Everything that is not as it must be; empty when all is well."""
    results = reply.get_tool_results()
    answered = Counter(result.id for result in results)
    edits = [result for result in results if result.name == "Edit"]
    checks = {
        "the reply did not complete": reply.error is None and reply.finished_reason == "completed",
        "a call has not exactly one result": answered == Counter(call.id for call in reply.get_tool_calls()),
        "the edit did not succeed exactly once": [edit.state for edit in edits] == [ToolResultState.SUCCESS],
        "the history does not hold exactly one completed Edit": told.completed["Edit"] == 1,
        "no worker was killed in a model call": told.repeated[CALL_MODEL] == 1,
        "the file is not the old one with just that change": _is_mended(project),
        "another file of the project was changed": _others_are_untouched(project),
        "the project's tests are not green": tests_are_green(project),
    }
    return [complaint for complaint, holds in checks.items() if not holds]


def _is_mended(project: Path) -> bool:
    shipped = (PROJECT / BROKEN_FILE).read_text(encoding="utf-8")
    return (project / BROKEN_FILE).read_text(encoding="utf-8") == shipped.replace(BEFORE, AFTER)


def _others_are_untouched(project: Path) -> bool:
    names = [
        path.name for path in PROJECT.iterdir() if path.is_file() and path.name not in ("__init__.py", BROKEN_FILE)
    ]
    return all((project / name).read_bytes() == (PROJECT / name).read_bytes() for name in names)


def tests_are_green(project: Path) -> bool:
    """Run by the demo itself, not by the agent; -B, so that no stale bytecode answers."""
    command = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0
