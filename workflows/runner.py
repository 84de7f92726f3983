"""How a worker runs workflows so that a query leaves nothing behind: a guard against a defect of the SDK.

A query that finds the session in no worker's memory replays the history up to its end, and that end may lie beyond the
last task that was decided. The SDK then keeps what the session did with the newer events, as if it had been part of a
task. The task that comes next, with the updates that belong before those events, is decided on top of it: what is
recorded is in an order in which nobody can replay it, and the session's tasks fail for ever. Or the updates are
thought to be old, and lost. So the worker forgets an instance when it was a query that brought it into being.
"""

from collections.abc import Callable, Sequence
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner
from temporalio.workflow import Info

DIRECT = "legacy_query"
"""The SDK's id of a query that came by itself; one that came with a task has an id of its own and does no harm."""

Forget = Callable[[str], None]
"""Drops the run of this id from the worker's memory, once the activation under way is done."""


class ForgetfulRunner(WorkflowRunner):
    """Runs workflows as `inner` does."""

    def __init__(self, inner: WorkflowRunner, forget: Forget) -> None:
        self._inner = inner
        self._forget = forget

    def prepare_workflow(self, defn: Any) -> None:
        self._inner.prepare_workflow(defn)

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Instance(self._inner.create_instance(det), self._forget)

    def set_worker_level_failure_exception_types(self, types: Sequence[type[BaseException]]) -> None:
        self._inner.set_worker_level_failure_exception_types(types)


class _Instance(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance, forget: Forget) -> None:
        self._inner = inner
        self._forget = forget
        self._replayed = False
        self._new = 0
        """Activations that were no replay."""
        self._by_task = False
        """Surely brought into being by a task: a query has no updates with it."""
        self._whose: Any = None

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        queries = [job.query_workflow.query_id for job in act.jobs if job.HasField("query_workflow")]
        if not queries:
            self._note(act)
        elif DIRECT in queries and self._perhaps_ahead:
            self._forget(act.run_id)
        return self._inner.activate(act)

    def _note(self, act: WorkflowActivation) -> None:
        if act.is_replaying:
            self._replayed = True
            return
        self._new += 1
        self._by_task = self._by_task or any(job.HasField("do_update") for job in act.jobs)

    @property
    def _perhaps_ahead(self) -> bool:
        """A second new activation proves the first: it comes with a task, and follows on one that was decided. A run
        that began here was begun by a task. What a task has replayed may be forgotten in vain: that costs a replay."""
        return self._replayed and self._new == 1 and not self._by_task

    def get_serialization_context(self, command_info: Any) -> Any:
        """One for all payloads: `SessionConverter` asks only whose they are, and a session starts no other. The SDK
        asks five times for each, and would make a new one each time."""
        del command_info
        if self._whose is None:
            self._whose = self._inner.get_serialization_context(None)
        return self._whose

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._inner.get_external_store_context(command_info)

    def get_info(self) -> Info:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        return self._inner.get_thread_id()
