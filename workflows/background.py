"""Runs commands in the background: an activity for each, beside whatever else the session does.

A run that ends leaves its commands to their workers, and the next one asks these, by an activity for each, for the end.
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, is_cancelled_exception
from temporalio.workflow import ActivityHandle

from longhaul.activities.contract import AWAIT_COMMAND, AwaitCommand
from longhaul.agent import entries as e
from longhaul.agent.decisions.background_commands import ended, lost, started
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.agent_state import OpenCall, effect_of
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.workspace import host_queue
from longhaul.agent.values.subagents import BASH
from longhaul.workflows import activity_failures, activity_inputs, activity_options
from longhaul.workflows.activity_inputs import runtime
from longhaul.workflows.payload_converter import result_of


class Background:
    """The commands of which one run of a session awaits the end."""

    def __init__(
        self,
        journal: Journal,
        write: Callable[[e.AnyEntry], None],
        beside: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._journal = journal
        self._write = write
        self._beside = beside
        self.running: dict[str, ActivityHandle[RawValue]] = {}
        """By call id, in the order of their start."""
        self._stopped = set[str]()

    def begin(self, call: OpenCall) -> None:
        tool = self._journal.provided.tools[call.block.name]
        effect = effect_of(call, tool)
        ask = activity_inputs.run_tool(self._journal, call, workflow.info().run_id)
        how = activity_options.run_in_background(effect, activity_inputs.summary_of(call))
        if host := self._journal.spec.host:
            how["task_queue"] = host_queue(workflow.info().task_queue, host)  # it begins when the host is there
        handle: ActivityHandle[RawValue] = workflow.start_activity(tool.name, ask, result_type=RawValue, **how)
        self.running[call.block.id] = handle
        for entry in started(self._journal, call):
            self._write(entry)
        self._beside(self._until_over(call.block.id, handle, partial(activity_failures.call_failed, call, effect)))

    def take_over(self, call_id: str) -> None:
        """Of a command that an earlier run has started."""
        how = activity_options.await_command()
        if host := self._journal.spec.host:
            how["task_queue"] = host_queue(workflow.info().task_queue, host)
        ask = AwaitCommand(
            call_id=call_id,
            arguments=None,
            tool_digest="",
            effect=Effect.READ,
            analysis=CallAnalysis(),
            place=activity_inputs.place(self._journal),
            agent=self._journal.spec.name,
            epoch=self._journal.context.epoch,
            result_limit=self._journal.spec.context_config.tool_result_limit,
            model=self._journal.spec.model,
            offloader=self._journal.spec.offloader,
            postprocess=self._journal.spec.postprocess.get(BASH, ""),
            unwanted=self._journal.commands[call_id].unwanted,
            runtime=runtime(self._journal),
        )
        handle: ActivityHandle[RawValue] = workflow.start_activity(AWAIT_COMMAND, ask, result_type=RawValue, **how)
        self.running[call_id] = handle
        if ask.unwanted:
            self._stopped.add(call_id)  # a cancellation could come before its worker has heard of this
        self._beside(self._until_over(call_id, handle, None))

    def stop_unwanted(self) -> None:
        """Cancel those that are to stop."""
        for call_id, handle in self.running.items():
            if self._journal.commands[call_id].unwanted and call_id not in self._stopped:
                self._stopped.add(call_id)
                handle.cancel()

    def _lose(self, call_id: str) -> None:
        for entry in lost(self._journal, call_id, workflow.info().workflow_id):
            self._write(entry)

    async def _until_over(
        self,
        call_id: str,
        handle: ActivityHandle[RawValue],
        failed: Callable[[ActivityError], e.ToolReturned] | None,
    ) -> None:
        """`failed`: what is told where nobody has heard its end; None: that it is lost."""
        outcome: e.CallOutcome | None
        try:
            outcome = result_of(await handle, e.ToolOutcome).root
        except (ActivityError, asyncio.CancelledError) as error:
            stopped = self._journal.commands[call_id].unwanted and is_cancelled_exception(error)
            # A run that a worker takes out of its memory is cancelled too, and so is a whole session.
            if workflow.cancellation_reason() is not None or not (stopped or isinstance(error, ActivityError)):
                raise
            outcome = None
            if stopped and failed is None:
                # Its worker had not heard of it: nobody has ended it yet, and it is asked for as one to be ended.
                self.take_over(call_id)
                return
            if not stopped and isinstance(error, ActivityError):
                if failed is None:
                    del self.running[call_id]
                    self._lose(call_id)
                    return
                outcome = failed(error)
        del self.running[call_id]
        for entry in ended(self._journal, call_id, outcome, workflow.info().workflow_id):
            self._write(entry)
