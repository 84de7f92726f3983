"""The runner forgets what a query may have brought into being, and nothing else."""

from typing import Any

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from workflows.runner import ForgetfulRunner


class Still(WorkflowInstance):
    """Does nothing."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return WorkflowActivationCompletion(run_id=act.run_id)

    def get_serialization_context(self, command_info: Any) -> Any:
        raise NotImplementedError

    def get_external_store_context(self, command_info: Any) -> Any:
        raise NotImplementedError

    def get_info(self) -> Any:
        raise NotImplementedError


class Stills(WorkflowRunner):
    def prepare_workflow(self, defn: Any) -> None:
        raise NotImplementedError

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return Still()


def activation(word: str) -> WorkflowActivation:
    """`replay`, `activity`, `update`, or a query: `direct` or `with task`."""
    job = WorkflowActivationJob()
    match word:
        case "direct" | "with task":
            job.query_workflow.query_id = "legacy_query" if word == "direct" else "0b6c-1"
        case "update":
            job.do_update.id = "u-1"
        case _:
            job.resolve_activity.seq = 1
    return WorkflowActivation(run_id="r-amber", is_replaying=word == "replay", jobs=[job])


@pytest.mark.parametrize(
    ("words", "forgotten"),
    [
        ("replay, activity, direct", ["r-amber"]),  # what the query's replay came upon was in no task
        ("replay, replay, activity, direct, direct", ["r-amber", "r-amber"]),
        ("replay, direct", []),  # all of it was decided
        ("activity, direct", []),  # the first task of all
        ("replay, update, direct", []),  # updates come with tasks
        ("replay, activity, activity, direct", []),  # the second comes only after the first was decided
        ("replay, direct, activity, direct", ["r-amber"]),  # perhaps a second query, that came upon something newer
        ("replay, direct, activity, activity, direct", []),
        ("replay, activity, with task", []),
    ],
)
def test_a_run_is_forgotten_when_a_query_may_have_gone_ahead_of_its_tasks(words: str, forgotten: list[str]) -> None:
    heard: list[str] = []
    details: Any = None
    instance = ForgetfulRunner(Stills(), heard.append).create_instance(details)

    for word in words.split(", "):
        instance.activate(activation(word))

    assert heard == forgotten
