"""Sessions that were alive yesterday go on under today's code: their histories replay."""

import base64
import json
import lzma
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from longhaul.agent.decision import BEHAVIOUR
from longhaul.workflows.contract import DATA_CONVERTER
from longhaul.workflows.hubs import AgentHub
from longhaul.workflows.session import AgentSession
from tests.replay.scenarios import SCENARIOS

HISTORIES = Path(__file__).with_name("histories")
NAMES = sorted(path.name.removesuffix(".json.xz") for path in HISTORIES.iterdir())
LARGEST_BYTES = 20_000
_DATA = re.compile(r'"data": "([A-Za-z0-9+/=]+)"')
_BEHAVIOUR = re.compile(rb'"behaviour":(\d+)')

Events = list[dict[str, Any]]


def stored(name: str) -> tuple[str, Events]:
    """Workflow id and events."""
    history = json.loads(lzma.decompress((HISTORIES / f"{name}.json.xz").read_bytes()))
    return history["workflow_id"], history["events"]


async def failure_of_replay(
    workflow_id: str, events: Events, runner: type[WorkflowRunner] = UnsandboxedWorkflowRunner
) -> BaseException | None:
    replayer = Replayer(
        workflows=[AgentSession, AgentHub], build_id="replay", data_converter=DATA_CONVERTER, workflow_runner=runner()
    )
    history = WorkflowHistory.from_json(workflow_id, {"events": events})
    return (await replayer.replay_workflow(history, raise_on_replay_failure=False)).replay_failure


def scheduled(events: Events) -> list[dict[str, Any]]:
    """The types of the activities, in the order of their start; changing one changes the history."""
    key = "activityTaskScheduledEventAttributes"
    return [event[key]["activityType"] for event in events if key in event]


@pytest.mark.parametrize("runner", [UnsandboxedWorkflowRunner, SandboxedWorkflowRunner])
@pytest.mark.parametrize("name", NAMES)
async def test_a_stored_history_replays(name: str, runner: type[WorkflowRunner]) -> None:
    """As workers run it, and in the sandbox, which refuses clocks, chance and files."""
    workflow_id, events = stored(name)

    assert await failure_of_replay(workflow_id, events, runner) is None


@pytest.mark.parametrize("name", ["three_calls_with_approval", "edit_and_rules", "continue_as_new_1"])
async def test_a_history_with_two_activities_swapped_does_not_replay(name: str) -> None:
    """Without this a replay that looks at nothing would pass as well."""
    workflow_id, events = stored(name)
    kinds = scheduled(events)
    first = next(kind for kind in kinds if kind["name"] == "longhaul.call_model")
    other = next(kind for kind in kinds if not kind["name"].startswith("longhaul."))

    first["name"], other["name"] = other["name"], first["name"]

    assert isinstance(await failure_of_replay(workflow_id, events), NondeterminismError)


async def test_a_history_that_says_something_else_does_not_replay() -> None:
    """The same activities, but permission was never asked: the session of today would wait."""
    workflow_id, events = stored("three_calls_with_approval")
    asked = next(
        number for number, event in enumerate(events)
        if event["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED"
        and event["workflowExecutionUpdateAcceptedEventAttributes"]["acceptedRequest"]["input"]["name"] == "confirm"
    )  # fmt: skip
    request = events[asked]["workflowExecutionUpdateAcceptedEventAttributes"]["acceptedRequest"]["input"]

    request["name"] = "observe"

    assert isinstance(await failure_of_replay(workflow_id, events), NondeterminismError)


def test_every_scenario_has_its_history_and_every_history_its_scenario() -> None:
    assert {name.rstrip("_0123456789") for name in NAMES} == set(SCENARIOS)


def test_the_histories_are_of_rules_that_this_code_knows_and_the_newest_rules_have_one() -> None:
    """A rule that takes a number takes a scenario of its own, and no history asks for a rule that is gone."""
    numbers = {int(number) for name in NAMES for number in _BEHAVIOUR.findall(_payloads_of(stored(name)[1]))}

    assert numbers <= {*range(1, BEHAVIOUR + 1)}
    assert BEHAVIOUR in numbers


def _payloads_of(events: Events) -> bytes:
    return b"\n".join(base64.b64decode(data) for data in _DATA.findall(json.dumps(events)))


def test_the_continue_as_new_is_stored_with_the_runs_before_and_after_it() -> None:
    chain = [stored(name)[1] for name in NAMES if name.startswith("continue_as_new")]

    assert len(chain) >= 2
    for before, after in pairwise(chain):
        start = after[0]["workflowExecutionStartedEventAttributes"]
        end = before[-1]["workflowExecutionContinuedAsNewEventAttributes"]
        assert end["newExecutionRunId"] == start["originalExecutionRunId"]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_history_is_small_and_was_written_by_a_live_worker(name: str) -> None:
    """Without the flags of a live worker the replayer overlooks a swapped activity."""
    _, events = stored(name)
    metadata = [event.get("workflowTaskCompletedEventAttributes", {}).get("sdkMetadata", {}) for event in events]

    assert any(each.get("coreUsedFlags") for each in metadata)
    assert (HISTORIES / f"{name}.json.xz").stat().st_size <= LARGEST_BYTES
