"""Reads that cost no activity of their own: those that came along with the model's answer, and those within the
session's own task. What passes a bound has no answer, and is asked for by an activity of its own.

A kill within the task costs the task alone, which another worker does again: what led to it is in the history.
"""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from longhaul.activities import contract as world
from longhaul.agent import entries as e
from longhaul.agent.decisions.call_verdicts import MOST_FUSED, rules_sent_along
from longhaul.agent.fold.agent_state import OpenCall
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import Msg
from longhaul.workflows import activity_failures, activity_options
from longhaul.workflows.inputs import activity_inputs
from longhaul.workflows.running_activities import Underway, WorkInterrupted
from longhaul.workflows.within_task import is_found_soon

Answer = TypeVar("Answer")


class FusedReads:
    """Of one run."""

    def __init__(self, record: Record, underway: Underway) -> None:
        self._record = record
        self._underway = underway
        self._brought: dict[str, e.ToolReturned] = {}
        self._brought_at = 0
        self.unfused = set[str]()
        """Tools of which a call passed a bound in this reply; a preparation that did so does until the run ends."""

    def along(self) -> world.ReadsAlong | None:
        """What the next answer's activity may read by."""
        permission = rules_sent_along(self._record, self.unfused - {world.PREPARE_REPLY})
        if permission is None:
            return None
        config = self._record.spec.react_config
        return world.ReadsAlong(
            permission=permission,
            most=MOST_FUSED if config.parallel_tool_calls else 1,
            result_limit=self._record.spec.context_config.tool_result_limit,
        )

    @property
    def brought(self) -> Mapping[str, e.ToolReturned]:
        """What came along with the newest answer, before and behind the verdicts on its calls. What else comes in
        between may have changed what is to be read, or who may read it."""
        return self._brought if self._record.seq <= self._brought_at + 1 else {}

    def bring(self, reads: Mapping[str, e.ToolReturned | None], said: Msg) -> None:
        """Take what an answer, which is the newest entry, has read at once."""
        named = {call.id: call.name for call in said.get_tool_calls()}
        self.unfused |= {named[call_id] for call_id, read in reads.items() if read is None and call_id in named}
        self._brought = {call_id: read for call_id, read in reads.items() if read is not None}
        self._brought_at = self._record.seq

    def begin_reply(self) -> None:
        self.unfused &= {world.PREPARE_REPLY}

    async def prepare(self, ask: world.PrepareReply) -> e.Prepared | None:
        """None when an activity of its own has to. Raises WorkInterrupted."""
        quick = self._record.spec.react_config.fuse_reads or is_found_soon(self._record)
        if self._record.spec.host or not quick or world.PREPARE_REPLY in self.unfused:
            return None
        prepared = await self._asked(world.PREPARE_REPLY, ask, e.Prepared, "find tools and workspace")
        if prepared is None and self._record.interrupted:
            raise WorkInterrupted
        return prepared

    async def read(self, calls: list[OpenCall]) -> list[e.CallOutcome]:
        """Together; what came of those that kept to the bounds, in the order of the calls."""
        brought, self._brought = self.brought, {}
        if brought.keys() >= {call.block.id for call in calls}:
            return [brought[call.block.id] for call in calls]
        outcomes_of = await asyncio.gather(*map(self._read, calls))
        return [outcome for outcome in outcomes_of if outcome is not None]

    async def _read(self, call: OpenCall) -> e.CallOutcome | None:
        ask = activity_inputs.run_tool(self._record, call)
        try:
            told = await self._asked(call.block.name, ask, e.ToolOutcome, activity_inputs.summary_of(call))
        except WorkInterrupted:
            return activity_failures.call_interrupted(call)
        return None if told is None else told.root

    async def _asked(self, name: str, ask: object, answer: type[Answer], summary: str) -> Answer | None:
        told = await self._underway.run_fused(name, ask, answer, activity_options.fused_read(summary))
        if told is None:
            self.unfused.add(name)
        return told
