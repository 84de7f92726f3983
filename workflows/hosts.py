"""Takes steps to where they can be taken: to any worker, to those of the one host that has the session's files, or to
the one worker that keeps an MCP server for it.

A host that is away is noticed by a step that nobody takes. The session says so and waits, for as long as it takes: a
task in the host's own queue is answered when somebody polls there again, and the step is taken again.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutType
from temporalio.exceptions import TimeoutError as TemporalTimeout
from temporalio.workflow import ActivityConfig

from longhaul.activities.contract import GREET_HOST, NOT_HERE, GreetHost, RunTool
from longhaul.agent import entries as e
from longhaul.agent.journal import Journal
from longhaul.agent.values.spec.mcp import worker_queue
from longhaul.agent.values.spec.workspace import host_queue
from longhaul.workflows import activity_options
from longhaul.workflows.running_activities import Underway, WorkInterrupted

Answer = TypeVar("Answer")


class AtFiles:
    """The activities of one session that touch its files."""

    def __init__(self, journal: Journal, write: Callable[[e.AnyEntry], None], underway: Underway) -> None:
        self._journal = journal
        self._write = write
        self._underway = underway
        self._elsewhere, self._away = set[str](), set[str]()
        """Of the workers that keep something: those that did not get a call from the session's own queue, and those
        that took none from theirs."""

    async def run(
        self,
        name: str,
        ask: object,
        answer: type[Answer],
        how: ActivityConfig,
        call_id: str = "",
        *,
        once: bool = False,
    ) -> Answer:
        """As `Underway.run`; `call_id` of a tool's call, and whether it may be started `once` alone."""
        host = self._journal.spec.host
        if not host:
            return await self._underway.run(name, ask, answer, how)
        bound = _bound(host_queue(workflow.info().task_queue, host), how)
        while True:
            try:
                return await self._underway.run(name, ask, answer, bound)
            except ActivityError as error:
                if not _may_begin(error, once=once):
                    raise
            self._raise_if_interrupted()
            await self._until_back(host, name, call_id)
            self._raise_if_interrupted()

    async def run_at(
        self, holder: str, name: str, ask: RunTool, answer: type[Answer], how: ActivityConfig, *, once: bool
    ) -> Answer | None:
        """The same at the worker that keeps what the call is about; None where it is away or lacks something, and did
        nothing.

        Most often it is the one that takes the session's steps, and is handed an activity of the session's own queue
        with the answer to its task: that costs no turn in a queue. Another one that gets hold of it leaves it alone.
        """
        if not holder or holder in self._away:
            return None
        held = ask.model_copy(update={"held": True})
        there = _bound(worker_queue(workflow.info().task_queue, holder), how)
        asks_first = not (self._journal.spec.host or holder in self._elsewhere)
        for attempt in (how, there) if asks_first else (there,):
            try:
                # Nobody but the holder can take it, so what is lacking is not waited for.
                policy = attempt.get("retry_policy") or RetryPolicy()
                hard = [*(policy.non_retryable_error_types or ()), NOT_HERE]
                final: ActivityConfig = {**attempt, "retry_policy": replace(policy, non_retryable_error_types=hard)}
                return await self._underway.run(name, held, answer, final)
            except ActivityError as error:
                is_late = _may_begin(error, once=once)
                if not (_is_not_here(error.cause) or is_late):
                    raise
            self._elsewhere.add(holder)
            if is_late:
                self._away.add(holder)  # or each call would wait for it, until one comes to a result elsewhere
            self._raise_if_interrupted()
        return None

    def _raise_if_interrupted(self) -> None:
        """An interrupt in the same task as the end of an activity finds nothing any more that it could cancel."""
        if self._journal.interrupted:
            raise WorkInterrupted

    async def _until_back(self, host: str, doing: str, call_id: str) -> None:
        """Raises WorkInterrupted."""
        if not self._journal.incarnation.host_unavailable:
            why = (
                f"its workspace is on host {host!r}, which is unavailable: no worker takes the work of that host. It "
                f"continues as soon as one runs there with LONGHAUL_HOST={host}"
            )
            self._write(e.WorkerLacks(worker="", doing=doing, call_id=call_id, why=why, host=host))
        how = activity_options.greet_host(host)
        how["task_queue"] = host_queue(workflow.info().task_queue, host)
        back = await self._underway.run(GREET_HOST, GreetHost(host=host), e.HostBack, how)
        if self._journal.incarnation.host_unavailable:
            self._write(back)


def _bound(queue: str, how: ActivityConfig) -> ActivityConfig:
    """To whoever polls there, if that begins soon."""
    return {**how, "task_queue": queue, "schedule_to_start_timeout": timedelta(seconds=activity_options.AWAY_SECONDS)}


def _may_begin(error: ActivityError, *, once: bool) -> bool:
    """Whether the step lay in the queue until its time was up. A `once` call begins again only where no attempt before
    that one had done anything: a new activity would know nothing of them."""
    late = error.cause
    if not isinstance(late, TemporalTimeout) or late.type is not TimeoutType.SCHEDULE_TO_START:
        return False
    before = late.cause
    return not once or before is None or _is_not_here(before)


def _is_not_here(cause: BaseException | None) -> bool:
    return isinstance(cause, ApplicationError) and cause.type == NOT_HERE
