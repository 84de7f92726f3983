"""The demo's story: a small broken project, and the words and calls of the scripted model in it."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace

PROJECT = Path(__file__).parent / "project"
TESTS = "python3 -m unittest"
REQUEST = "The tests of this project are red. Find out why and mend it."
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
        system_prompt="You mend small Python projects. Read first, make the smallest change, run the tests again.",
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
        "text": "The comparison leaves out the limit itself. One character mends it.",
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
