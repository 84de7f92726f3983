"""The demo's story: a small broken project, and the words and calls of the scripted model in it; and at its end the
proof of its claims where they can't be made up: in the files, the history and the clock.
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from longhaul.agent.values.conversation.messages import Msg, ToolResultState
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace

PROJECT = Path(__file__).parent / "project"
TESTS = "python3 -m unittest"
REQUEST = "The tests of this project are red. Find out why and fix it."
SESSION, USER, APPROVER = "mend-the-shop", "demo", "you"

BROKEN_FILE = "shipping.py"
BEFORE, AFTER = "if goods_cents > FREE_FROM_CENTS:", "if goods_cents >= FREE_FROM_CENTS:"

LONG_THOUGHT = 3
"""Number of the model call (from 0) in which the worker is killed."""
LONG_THOUGHT_MS = 60_000
"""Far longer than anybody needs to kill it, so that the demo never depends on being quick."""


def lay_out_project(folder: Path) -> None:
    """A fresh copy of the broken project."""
    # The project's __init__.py only keeps the rule that each folder of our packages has one.
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))


def write_script(file: Path, *, long_thought: bool) -> None:
    """The model's replies. With `long_thought` the one before the edit takes a minute."""
    lines = [dict(line) for line in _REPLIES]
    if long_thought:
        lines[LONG_THOUGHT] |= {"delay_ms": LONG_THOUGHT_MS}
    draft = file.with_suffix(".draft")
    draft.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    draft.replace(file)


def agent(script: Path, workspace: Path) -> AgentSpec:
    """May run exactly one command unasked: the tests. Every change to a file asks."""
    tests = PermissionRule(
        tool_name="Bash", rule_content=TESTS, behavior=Behavior.ALLOW, source="the demo's agent: it may run the tests"
    )
    return AgentSpec(
        name="mender",
        system_prompt="You fix small Python projects. Read first, make the smallest change, run the tests again.",
        model=f"scripted:{script}",
        permission=PermissionContext(rules=(tests,)),
        workspace=Workspace(root=str(workspace)),
    )


def _call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "input": arguments}


# Each `expect` stops the demo when the tools did not show the model what its next reply is about. Calls that ran side
# by side are answered in the order in which they were done, so there only the number of messages is known.
_REPLIES: tuple[Mapping[str, Any], ...] = (
    {
        "text": "I look at the project first.",
        "tool_calls": [_call("Glob", pattern="*.py"), _call("Read", file_path="README.md")],
    },
    {
        "text": "Now the tests.",
        "tool_calls": [_call("Bash", command=TESTS)],
        "expect": {"messages": 4},
    },
    {
        "text": "An order of exactly 50.00 pays for shipping, and the README says that it must not.",
        "tool_calls": [
            _call("Grep", pattern="FREE_FROM_CENTS", output_mode="content"),
            _call("Read", file_path=BROKEN_FILE),
        ],
        "expect": {"last_contains": "FAILED (failures=1)"},
    },
    {
        "text": "The comparison leaves out the limit itself. One character fixes it.",
        "tool_calls": [_call("Edit", file_path=BROKEN_FILE, old_string=BEFORE, new_string=AFTER)],
        "expect": {"messages": 9},
    },
    {
        "text": "Are the tests green now?",
        "tool_calls": [_call("Bash", command=TESTS)],
        "expect": {"last_contains": "Replaced 1 occurrence"},
    },
    {
        "text": "Done. Shipping was free only above 50.00; the README says from 50.00 on. "
        "I changed `>` to `>=` in shipping.py, and all three tests pass.",
        "expect": {"last_contains": "OK"},
    },
)


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
    shipped = (PROJECT / BROKEN_FILE).read_text(encoding="utf-8")
    is_fixed = (project / BROKEN_FILE).read_text(encoding="utf-8") == shipped.replace(BEFORE, AFTER)
    names = [
        path.name for path in PROJECT.iterdir() if path.is_file() and path.name not in ("__init__.py", BROKEN_FILE)
    ]
    untouched = all((project / name).read_bytes() == (PROJECT / name).read_bytes() for name in names)
    checks = {
        "the reply did not complete": reply.error is None and reply.finished_reason == "completed",
        "a call has not exactly one result": answered == Counter(call.id for call in reply.get_tool_calls()),
        "the edit did not succeed exactly once": [edit.state for edit in edits] == [ToolResultState.SUCCESS],
        "the history does not hold exactly one completed Edit": told.completed["Edit"] == 1,
        "no worker was killed in a model call": told.repeated[CALL_MODEL] == 1,
        "the file is not the old one with just that change": is_fixed,
        "another file of the project was changed": untouched,
        "the project's tests are not green": tests_are_green(project),
    }
    return [complaint for complaint, holds in checks.items() if not holds]


def tests_are_green(project: Path) -> bool:
    """Run by the demo itself, not by the agent; -B, so that no stale bytecode answers."""
    command = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(command, cwd=project, capture_output=True, check=False).returncode == 0
