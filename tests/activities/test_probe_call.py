"""Looking whether a call happened: whatever a tool's look does, it comes to a finding."""

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities import call_results
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.call_results import Probing
from longhaul.activities.contract import ProbeCall, RecordedPlace
from longhaul.activities.tool import Found, ToolCall
from longhaul.activities.tools.function import FunctionTool, tool
from longhaul.activities.tools.registry import Toolbox, describe
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import OutcomeProbed
from longhaul.agent.values.conversation.tools import Finding
from longhaul.agent.values.spec.workspace import Workspace


async def outbox(call: ToolCall) -> Found | Finding:
    """What the letter's own address says that looking does."""
    match call.arguments["to"]:
        case "Ana":
            return Found("happened", f"letter {call.id} for {call.place.cwd.name}")
        case "Bo":
            return "did_not"
        case "nowhere":
            raise OSError("no outbox")
        case "slow":
            await asyncio.sleep(5)
            return "happened"
        case odd:
            return cast(Finding, {"odd": odd})


@tool(probe=outbox)
def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


@tool()
def drop(to: str) -> str:
    """Drop a letter."""
    return f"dropped for {to}"


async def looked(tmp_path: Path, arguments: str, one: FunctionTool = send, digest: str = "") -> OutcomeProbed:
    workspaces = Workspaces(tmp_path / "data")
    root = tmp_path / "workspace"
    root.mkdir(exist_ok=True)
    bound = workspaces.bind(Workspace(root=str(root)), "key")
    place = RecordedPlace(root=str(bound[0]), nonce=bound[1])
    ask = ProbeCall(
        call_id="c-7", tool=one.name, arguments=arguments, tool_digest=digest or describe(one).digest, place=place
    )
    probing = Probing(WorkerParts(workspaces=workspaces, toolbox=Toolbox([one])))
    return cast(OutcomeProbed, await ActivityEnvironment().run(probing.probe_call, ask))


@pytest.mark.parametrize(
    ("to", "finding", "detail"),
    [
        ("Ana", "happened", "letter c-7 for workspace"),
        ("Bo", "did_not", ""),
        ("nowhere", "unknown", "looking failed (OSError: no outbox)"),
        ("slow", "unknown", "looking took longer than 0.05 s"),
        ("Eve", "unknown", "the probe of send answered with \"{'odd': 'Eve'}\", which is no finding"),
    ],
)
async def test_a_look_comes_to_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to: str, finding: str, detail: str
) -> None:
    monkeypatch.setattr(call_results, "PROBE_SECONDS", 0.05)

    found = await looked(tmp_path, json.dumps({"to": to}))

    assert (found.call_id, found.finding, found.detail) == ("c-7", finding, detail)


async def test_arguments_that_do_not_fit_are_a_finding_too(tmp_path: Path) -> None:
    assert (await looked(tmp_path, "{}")).detail == "'to' is missing: give text"


async def test_a_worker_with_another_tool_leaves_it_to_another_one(tmp_path: Path) -> None:
    with pytest.raises(ApplicationError) as failure:
        await looked(tmp_path, "{}", digest="0" * 64)
    assert failure.value.type == "NotHere"


def test_only_a_tool_that_can_look_says_so_and_the_digests_of_others_stay() -> None:
    plain: dict[str, Any] = describe(drop).model_dump()

    assert describe(send).probes
    assert "probes" not in plain
    assert describe(drop).digest == "7fa7b019122bad9231b61f797b9a0cf57b18212f54e5d98e11ec3e63ef6e7dd3"
