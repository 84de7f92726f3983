"""Runs workflows on a worker so that nothing is recorded of what the server has not started: a guard against a defect
of the SDK. And so that a session hears that it was reset before anything else is started in the run that came of it.

**The invariant.** Each command that a session makes was made in a task that the server had started, and after all
events of the tasks before it. Then a replay, which goes from task to task, makes the same commands in the same order.

A query that comes by itself breaks it. The server lets it out while no task is open; a worker that does not have the
session in its memory, or that is not asked by its own queue any more (a query that waits for longer than the sticky
time-out does that), gets the whole history with it, up to the moment of reading. Events may have come by then. The SDK
applies them as if a task had started, at the time of the task before, and keeps the commands for the next task that it
completes: in an order, and with times, in which nobody can replay them. The run works on until its worker forgets it,
and is dead from then on.

Two things hold it:
- Who began an activation is not told, but a task moves the time on and a query does not. An activation that brings
  events at the old time is refused before the session hears of it: the query fails with `AHEAD`, the SDK forgets the
  run, nothing was made. Of a run that was ended from outside, such events stay the last ones each time that it is
  asked: it does not hear of them, and answers as it was after its last task.
- The history may even hold the beginning of a task that somebody else is given, and with it updates that stand in no
  history. So before a query is answered by a run that has done anything new since the last look, the server is asked
  whether this worker has completed the task. If it has not, the run is forgotten after the answer; tasks wait until it
  is. Another worker may have completed it, since the history was read: it has seen what this one has not. No answer
  counts as no. What is a replay, up to the last task that was completed, is not asked for.

**Of a reset** the SDK tells by another random seed, after the operations of the same task, which the server sends
again. What these begin, such as a call that they approve, was perhaps begun in the run before. So the seed is told by
itself when everything else was heard, and with it the signal `RESET`; where the session ends its run for it, whatever
it has begun in the task is left out, and only the answers to operations stay. A replay comes to the same.

What a reading of the SDK's source (managed_run.rs, history_update.rs of 1.35) says besides: while a query is under way
no task of the run is applied, and a run that is asked to be forgotten takes none before it is.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from temporalio.api.enums.v1 import CommandType
from temporalio.bridge.proto.workflow_activation import (
    InitializeWorkflow,
    SignalWorkflow,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.workflow import Info

from longhaul.agent.plain.ids import is_target_activity
from longhaul.workflows.contract import AHEAD, RESET, WORKFLOW, WRONG_ARITY

CANCELLING = frozenset(("request_cancel_activity", "cancel_workflow_execution", "fail_workflow_execution"))
"""Commands after which the server wants no more of what activities do. Those of a session that ends hear it as those
that are cancelled: with a heartbeat."""
DIRECT = "legacy_query"
"""The SDK's id of a query that came by itself; one that came with a task has an id of its own and does no harm."""

ENDS = {
    "schedule_activity": "resolve_activity",
    "schedule_local_activity": "resolve_activity",
    "start_child_workflow_execution": "resolve_child_workflow_execution",
    "schedule_nexus_operation": "resolve_nexus_operation",
}
"""The SDK's words: of what a run begins, and of the news that it is over."""

LAST = frozenset(
    (
        "complete_workflow_execution",
        "fail_workflow_execution",
        "cancel_workflow_execution",
        "continue_as_new_workflow_execution",
        "remove_from_cache",
    )
)
"""The SDK's words for the end of a run, and for that of its stay in the worker's memory."""

STAYS = frozenset(("update_response", "continue_as_new_workflow_execution"))
"""The SDK's words for what a run makes in the task in which it hears that it was reset, and ends for it."""

Forget = Callable[[str], None]
"""Drops the run of this id from the worker's memory, once the activation under way is done."""

Cancelling = Callable[[str], None]
"""Hears which workflow asks the server to cancel activities, just before it does. Returns at once."""


class Ends(Protocol):
    """What the server knows of the ends of tasks and runs. Answers within a second; False is always right."""

    def decided(self, workflow_id: str, run_id: str, started_event: int) -> bool:
        """Whether it has the end of the task that began with this event, from this worker. False costs a replay."""
        ...

    def over(self, workflow_id: str, run_id: str) -> bool:
        """Whether the run has ended. False costs an answer."""
        ...


class Parked(Protocol):
    """Hears after each thing that a run does whether it waits: whether nothing that it has started is under way."""

    def told(self, run_id: str, *, waits: bool) -> None: ...


TO_OTHERS = frozenset(
    (
        CommandType.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
        CommandType.COMMAND_TYPE_SIGNAL_EXTERNAL_WORKFLOW_EXECUTION,
        CommandType.COMMAND_TYPE_SCHEDULE_NEXUS_OPERATION,
    )
)
"""Commands whose payloads another session reads, with its own key and from its own blobs, or code of the user's."""


class ForgetfulRunner(WorkflowRunner):
    """Runs workflows as `inner` does."""

    def __init__(
        self, inner: WorkflowRunner, forget: Forget, ends: Ends, cancelling: Cancelling, parked: Parked
    ) -> None:
        self._inner = inner
        self._forget = forget
        self._ends = ends
        self._cancelling = cancelling
        self._parked = parked

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        workflow_id, run_id = det.info.workflow_id, det.info.run_id
        return _Instance(
            self._inner.create_instance(det),
            forget=lambda: self._forget(run_id),
            decided=lambda started: self._ends.decided(workflow_id, run_id, started),
            over=lambda: self._ends.over(workflow_id, run_id),
            cancelling=lambda: self._cancelling(workflow_id),
            parked=lambda waits: self._parked.told(run_id, waits=waits),
        )

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._inner.set_worker_level_failure_exception_types(types)


class RunnerOfBoth(WorkflowRunner):
    """Runs these workflows in one way, and those of an application in its own, as if there were no others."""

    def __init__(self, ours: WorkflowRunner, names: frozenset[str], theirs: WorkflowRunner) -> None:
        self._ours = ours
        self._names = names
        self._theirs = theirs

    def prepare_workflow(self, defn: Any) -> None:
        self._of(defn).prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return self._of(det.defn).create_instance(det)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._ours.set_worker_level_failure_exception_types(types)
        self._theirs.set_worker_level_failure_exception_types(types)

    def _of(self, defn: Any) -> WorkflowRunner:
        return self._ours if defn.name in self._names else self._theirs


class _Instance(WorkflowInstance):
    def __init__(
        self,
        inner: WorkflowInstance,
        forget: Callable[[], None],
        decided: Callable[[int], bool],
        over: Callable[[], bool],
        cancelling: Callable[[], None],
        parked: Callable[[bool], None],
    ) -> None:
        self._is_session = False
        self._inner = inner
        self._forget = forget
        self._decided = decided
        self._over = over
        self._cancelling = cancelling
        self._parked = parked
        self._under_way = set[tuple[str, int]]()
        """Kinds and numbers of what the run has started and not heard the end of."""
        self._of_user = set[int]()
        """Numbers of those activities among them that run the user's code."""
        self._task = (0, 0, 0)
        """Time (seconds and nanoseconds) and size of the history at the newest task that was seen."""
        self._length: int = 0
        self._looked = False
        """Whether it is known that what the run did last was decided."""
        self._ahead = False
        self._whose: Any = None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        queries = [job.query_workflow.query_id for job in act.jobs if job.HasField("query_workflow")]
        if not queries:
            if self._is_of_no_task(act):
                return _unheard(act) if self._over() else _refused(act)
        elif DIRECT in queries and not self._looked:
            self._looked = not self._ahead and self._decided(self._length)
            if not self._looked:
                self._forget()
        done = self._heard(act)
        if not act.is_replaying and any(one.WhichOneof("variant") in CANCELLING for one in done.successful.commands):
            self._cancelling()
        self._count(act, done)
        return done

    def _heard(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        """In two parts where it brings the news of a reset; `RESET` is for sessions alone."""
        seeds: list[WorkflowActivationJob] = []
        for job in act.jobs:
            if job.HasField("initialize_workflow"):
                self._is_session = job.initialize_workflow.workflow_type == WORKFLOW
                if self._is_session:
                    _with_one_input(job.initialize_workflow)
            elif job.HasField("update_random_seed"):
                seeds.append(job)
        if not seeds or not self._is_session:
            return self._inner.activate(act)
        told = SignalWorkflow(signal_name=RESET, originating_event_id=act.history_length)
        # Each by itself: of what comes together signals are heard first.
        parts = [job for job in act.jobs if job not in seeds], seeds, [WorkflowActivationJob(signal_workflow=told)]
        made: list[WorkflowCommand] = []
        done = WorkflowActivationCompletion()
        for part in parts:
            done = self._inner.activate(_with_jobs(act, part))
            if done.HasField("failed"):
                return done
            made += done.successful.commands
        if any(one.HasField("continue_as_new_workflow_execution") for one in made):
            made = [one for one in made if one.WhichOneof("variant") in STAYS]
        del done.successful.commands[:]
        done.successful.commands.extend(made)
        return done

    def _count(self, act: WorkflowActivation, done: WorkflowActivationCompletion) -> None:
        over = False
        for job in act.jobs:
            if (kind := str(job.WhichOneof("variant"))) in ENDS.values():
                self._under_way.discard((kind, getattr(job, kind).seq))
            if kind == "resolve_activity":
                self._of_user.discard(job.resolve_activity.seq)
            over = over or kind in LAST
        for command in done.successful.commands:
            if (kind := str(command.WhichOneof("variant"))) in ENDS:
                self._under_way.add((ENDS[kind], getattr(command, kind).seq))
            if kind == "schedule_activity" and is_target_activity(command.schedule_activity.activity_id):
                self._of_user.add(command.schedule_activity.seq)
            over = over or kind in LAST
        # Each of a hundred runs that are over would put one that waits out of the memory.
        self._parked(not self._under_way and not over)

    def _is_of_no_task(self, act: WorkflowActivation) -> bool:
        """Events of a task that has started come with its time. Only where the clocks of servers differ can two tasks
        have one; the second then has a larger history, and counts as what it is unless a query follows at once."""
        time = int(act.timestamp.seconds), int(act.timestamp.nanos)
        size, length = int(act.history_size_bytes), int(act.history_length)
        same_time = time == self._task[:2] and length != self._length and self._length > 0
        if same_time and size == self._task[2]:
            return True
        self._task, self._length = (*time, size), length
        self._looked, self._ahead = act.is_replaying and not same_time, same_time
        return False

    def get_serialization_context(self, command_info: Any) -> Any:
        """One for all payloads but those to others: `SessionConverter` asks only whose they are. The SDK asks five
        times for each, and would make a new one each time."""
        if command_info is not None:
            kind, number = command_info.command_type, command_info.command_seq
            is_users = kind == CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK and number in self._of_user
            if is_users or kind in TO_OTHERS:
                return self._inner.get_serialization_context(command_info)
        if self._whose is None:
            self._whose = self._inner.get_serialization_context(None)
        return self._whose

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()


def _with_jobs(act: WorkflowActivation, jobs: Sequence[WorkflowActivationJob]) -> WorkflowActivation:
    part = WorkflowActivation()
    part.CopyFrom(act)
    del part.jobs[:]
    part.jobs.extend(jobs)
    return part


def _with_one_input(started: InitializeWorkflow) -> None:
    """A session with several inputs, or none, says so; the SDK would fail its task for ever."""
    if (came := len(started.arguments)) != 1:
        del started.arguments[:]
        started.arguments.add(metadata={"encoding": WRONG_ARITY}, data=str(came).encode())


def _unheard(act: WorkflowActivation) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.successful.SetInParent()
    return completion


def _refused(act: WorkflowActivation) -> WorkflowActivationCompletion:
    completion = WorkflowActivationCompletion(run_id=act.run_id)
    completion.failed.failure.message = AHEAD
    return completion
