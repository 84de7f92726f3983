"""The runner lets nothing happen that no task of the server's has started, whatever a query brings along."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from longhaul.workflows.contract import AHEAD
from longhaul.workflows.unbegun_task_guard import ForgetfulRunner


@dataclass
class Still(WorkflowInstance):
    """Does nothing, and counts what it was given."""

    given: list[int] = field(default_factory=list[int])
    cancels: bool = False
    """Whether it asks for the cancellation of an activity each time."""
    begins: dict[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    """What it begins when it hears of events up to this number, in the SDK's words."""

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        self.given.append(act.history_length)
        completion = WorkflowActivationCompletion(run_id=act.run_id)
        completion.successful.SetInParent()
        if self.cancels:
            completion.successful.commands.add().request_cancel_activity.seq = 1
        for kind in self.begins.pop(act.history_length, ()):
            getattr(completion.successful.commands.add(), kind).seq = 1
        return completion

    def get_serialization_context(self, command_info: Any) -> Any:
        raise NotImplementedError

    def get_external_store_context(self, command_info: Any) -> Any:
        raise NotImplementedError

    def get_info(self) -> Any:
        raise NotImplementedError


class Stills(WorkflowRunner):
    def __init__(self) -> None:
        self.still = Still()

    def prepare_workflow(self, defn: Any) -> None:
        raise NotImplementedError

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return self.still


@dataclass
class Server:
    """Says of each task whether it was decided, and notes what it was asked and which runs were forgotten."""

    undecided: set[int]
    asked: list[int] = field(default_factory=list[int])
    forgotten: list[str] = field(default_factory=list[str])
    cancelling: list[str] = field(default_factory=list[str])
    ended: bool = False
    waits: list[bool] = field(default_factory=list[bool])
    """What was told of the run, after each activation."""

    def told(self, run_id: str, *, waits: bool) -> None:
        assert run_id == "r-amber"
        self.waits.append(waits)

    def over(self, workflow_id: str, run_id: str) -> bool:
        assert (workflow_id, run_id) == ("w-teal", "r-amber")
        return self.ended

    def decided(self, workflow_id: str, run_id: str, started_event: int) -> bool:
        assert (workflow_id, run_id) == ("w-teal", "r-amber")
        self.asked.append(started_event)
        return started_event not in self.undecided


def instance(server: Server, stills: Stills) -> WorkflowInstance:
    details: Any = Any
    details = type("Details", (), {"info": type("Info", (), {"workflow_id": "w-teal", "run_id": "r-amber"})})
    runner = ForgetfulRunner(stills, server.forgotten.append, server, server.cancelling.append, server)
    return runner.create_instance(details)


def task(length: int, *, at: int, size: int = 0, replay: bool = False) -> WorkflowActivation:
    """Events up to number `length`, at second `at`."""
    job = WorkflowActivationJob()
    job.resolve_activity.seq = 1
    act = WorkflowActivation(run_id="r-amber", is_replaying=replay, history_length=length, jobs=[job])
    act.timestamp.seconds = at
    act.history_size_bytes = size or at * 1000
    return act


def query(*, direct: bool = True) -> WorkflowActivation:
    job = WorkflowActivationJob()
    job.query_workflow.query_id = "legacy_query" if direct else "0b6c-1"
    return WorkflowActivation(run_id="r-amber", is_replaying=True, history_length=99, jobs=[job])


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        ("events after the newest task", [task(3, at=10), task(8, at=20), task(12, at=20)]),
        ("events after a replay", [task(3, at=10, replay=True), task(5, at=10)]),
        ("events said to be replayed", [task(3, at=10), task(5, at=10, replay=True)]),
        # A refused update took its task out of the history: the numbers were given again.
        ("events in the place of a task that was taken back", [task(3, at=10), task(9, at=20), task(8, at=20)]),
    ],
)
def test_events_at_the_time_of_the_task_before_never_reach_the_session(
    what: str, steps: list[WorkflowActivation]
) -> None:
    server, stills = Server(set()), Stills()
    run = instance(server, stills)

    *before, ahead = steps
    completions = [run.activate(act) for act in before]
    refused = run.activate(ahead)

    assert all(completion.HasField("successful") for completion in completions), what
    assert refused.failed.failure.message == AHEAD
    assert ahead.history_length not in stills.still.given


def test_a_run_that_is_over_answers_as_it_was_after_its_last_task() -> None:
    stills = Stills()
    run = instance(Server(set(), ended=True), stills)

    completions = [run.activate(act) for act in (task(3, at=10, replay=True), task(5, at=10), query())]

    assert all(completion.HasField("successful") for completion in completions)
    assert stills.still.given == [3, 99]


@pytest.mark.parametrize(
    ("what", "steps"),
    [
        ("the first task", [task(3, at=10)]),
        ("one task after another", [task(3, at=10), task(8, at=11), task(12, at=12)]),
        ("a replay and a task", [task(3, at=10, replay=True), task(8, at=11)]),
        ("more of the same task", [task(3, at=10), task(3, at=10)]),
        ("a task of a server whose clock is behind", [task(3, at=10), task(8, at=10, size=12_000)]),
        ("a task in the place of one that was taken back", [task(3, at=10), task(9, at=20), task(9, at=30)]),
    ],
)
def test_what_a_task_has_started_is_done(what: str, steps: list[WorkflowActivation]) -> None:
    stills = Stills()
    run = instance(Server(set()), stills)

    assert all(run.activate(act).HasField("successful") for act in steps), what
    assert len(stills.still.given) == len(steps)


@pytest.mark.parametrize(
    ("what", "steps", "undecided", "asked", "forgotten"),
    [
        ("a decided task", [task(3, at=10), query()], set[int](), [3], 0),
        ("a task that is not decided", [task(3, at=10), query()], {3}, [3], 1),
        # What it has replayed was decided, whoever did it.
        ("a replay alone", [task(3, at=10, replay=True), query()], {3}, list[int](), 0),
        ("a task behind a replay", [task(3, at=10, replay=True), task(8, at=11), query()], {8}, [8], 1),
        ("the newest of two", [task(3, at=10), task(8, at=11), query()], {8}, [8], 1),
        ("nothing new since the look", [task(3, at=10), query(), query()], set[int](), [3], 0),
        ("something new since", [task(3, at=10), query(), task(8, at=11), query()], set[int](), [3, 8], 0),
        ("asked again until it is decided", [task(3, at=10), query(), query()], {3}, [3, 3], 2),
        ("a query that came with its task", [task(3, at=10), query(direct=False)], {3}, list[int](), 0),
        # Two tasks at one time, or events of none behind a task that failed: nobody can tell, so nobody is asked.
        ("a clock that stood", [task(3, at=10), task(8, at=10, size=12_000), query()], set[int](), list[int](), 1),
    ],
)
def test_a_run_that_may_be_ahead_of_its_tasks_is_forgotten_behind_a_query(
    what: str, steps: list[WorkflowActivation], undecided: set[int], asked: list[int], forgotten: int
) -> None:
    server = Server(undecided)
    run = instance(server, Stills())

    assert all(run.activate(act).HasField("successful") for act in steps), what

    assert server.asked == asked
    assert server.forgotten == ["r-amber"] * forgotten


@pytest.mark.parametrize(
    ("cancels", "step", "told"),
    [(True, task(3, at=10), 1), (False, task(3, at=10), 0), (True, task(3, at=10, replay=True), 0)],
    ids=["it cancels", "it does not", "it did, long ago"],
)
def test_who_cancels_activities_is_told_once(cancels: bool, step: WorkflowActivation, told: int) -> None:
    server, stills = Server(set()), Stills()
    stills.still.cancels = cancels

    instance(server, stills).activate(step)

    assert server.cancelling == ["w-teal"] * told


@pytest.mark.parametrize("kind", ["schedule_activity", "schedule_local_activity"])
def test_a_run_waits_when_nothing_that_it_has_started_is_under_way(kind: str) -> None:
    server, stills = Server(set()), Stills()
    stills.still.begins = {3: (kind,), 7: (kind, "start_timer")}
    run = instance(server, stills)

    for length, at in ((3, 10), (5, 20), (7, 30), (9, 40)):
        run.activate(task(length, at=at))

    assert server.waits == [False, True, False, True]


def test_a_run_with_a_child_waits_when_the_child_is_over() -> None:
    server, stills = Server(set()), Stills()
    stills.still.begins = {3: ("start_child_workflow_execution",)}
    run = instance(server, stills)
    over = task(7, at=30)
    over.jobs[0].resolve_child_workflow_execution.seq = 1

    for act in (task(3, at=10), task(5, at=20), over):
        run.activate(act)

    assert server.waits == [False, False, True]
