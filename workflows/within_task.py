"""Work within the session's own workflow task, without an activity, so that a short reply costs few events: quick
reads, the start of a sub-agent that closes with its task, what a later reply needs, and writing the session to
the store.

What takes long or passes a bound gets an activity. A kill within the task costs the task alone, which another
worker repeats, without the reads that may have taken the worker along.
"""

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from temporalio import workflow

from longhaul.activities import contract as world
from longhaul.agent import entries as e
from longhaul.agent.decisions.call_rulings import MOST_FUSED, rules_sent_along
from longhaul.agent.incarnation.continued_state import carry
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.workflows import activity_failures, activity_inputs, activity_options
from longhaul.workflows.running_activities import MaybeStarted, Underway, WorkInterrupted, at_once

QUICK_PLACES = ("shared", "local")
"""Kinds of workspace that are found in a moment; a working tree has to be made."""
LONGEST_CHARS = 100_000
"""Of all that is written down; more is pulled by queries, in pages."""
FEWEST_CHARS = 2
"""Of a token of a context, as they are estimated."""


async def restored(journal: Journal, ask: world.RestoreInput) -> e.Restored | None:
    """None where an activity has to look."""
    closes_with_task = journal.parent is not None and journal.parent.by_result
    # Nobody waits for the first task of a session that another workflow has started.
    closes_with_answer = not journal.spec.host and any(asker.by_result for asker in journal.askers.values())
    if not (closes_with_task or closes_with_answer) or not is_found_soon(journal) or ask.reset_run:
        return None
    return await at_once(
        world.RESTORE, ask, e.Restored, activity_options.at_once("begin, and find tools and workspace")
    )


def to_write(
    journal: Journal, ask: world.CheckpointInput, before: EventsSoFar, *, slow: bool
) -> world.CheckpointInput | None:
    """None where an activity has to write it, or to tell people something beside. `slow`: this run has tried before,
    and it took too long."""
    if slow or journal.keeping.failed is not None or journal.notifications.unsent:
        return None  # while a store is away, each reply would wait for it once more
    if journal.context.tokens * FEWEST_CHARS > LONGEST_CHARS:
        return None  # and so nothing is spelt that is thrown away
    # Of a session that ends the entries stay with its state, and so must the messages that they brought.
    messages = journal.keeping.saved_messages if ask.closing else world.NO_MESSAGES
    whole = carry(journal, before, ask.saved, messages).model_dump_json()
    return None if len(whole) > LONGEST_CHARS else ask.model_copy(update={"whole": whole})


async def checkpointed(ask: world.CheckpointInput) -> e.Checkpointed | None:
    """`ask`: of `to_write`. None where it takes long, or the store does not answer."""
    return await at_once(world.CHECKPOINT, ask, e.Checkpointed, activity_options.at_once("write down what is new"))


def is_found_soon(journal: Journal) -> bool:
    """Of what a reply needs."""
    spec = journal.spec
    return not spec.mcps and (spec.workspace is None or spec.workspace.place in QUICK_PLACES)


Answer = TypeVar("Answer")


class FusedReads:
    """Of one run."""

    def __init__(self, journal: Journal, underway: Underway) -> None:
        self._journal = journal
        self._underway = underway
        self._brought: dict[str, e.ToolReturned] = {}
        self._brought_at = 0
        self._first_task: int = 0
        """How long the history was in the first task that this worker has done itself; 0: it has done none yet."""
        self.unfused = set[str]()
        """Tools of which a call passed a bound in this reply; a preparation that did so does until the run ends."""
        self.tried = set[str]()
        """Ids of calls that may have been started: in an attempt at the model's call, or at a task, that was lost."""

    def note_task(self) -> None:
        """To be called in each task, before anything is read in it."""
        if not self._first_task and not workflow.unsafe.is_replaying():
            self._first_task = workflow.info().get_current_history_length()

    def _may_have_been_started(self) -> bool:
        """Whether a worker before this one may have been lost in this very task, which nobody is told: it is so of the
        first task that a worker does. Other tasks of this one it has not seen before, or it would have forgotten the
        session."""
        return self._first_task in (0, workflow.info().get_current_history_length())

    def along(self) -> world.ReadsAlong | None:
        """What the next answer's activity may read by."""
        permission = rules_sent_along(self._journal, self.unfused - {world.PREPARE_REPLY})
        if permission is None:
            return None
        config = self._journal.spec.react_config
        return world.ReadsAlong(
            permission=permission,
            most=MOST_FUSED if config.parallel_tool_calls else 1,
            result_limit=self._journal.spec.context_config.tool_result_limit,
        )

    @property
    def brought(self) -> Mapping[str, e.ToolReturned]:
        """What came along with the newest answer, before and behind the verdicts on its calls. What else comes in
        between may have changed what is to be read, or who may read it."""
        return self._brought if self._journal.seq <= self._brought_at + 1 else {}

    def bring(self, reads: Mapping[str, e.ToolReturned | None], said: Msg, *, lost: bool) -> None:
        """Take what an answer, which is the newest entry, has read at once. `lost`: it is the answer of an attempt
        behind a lost one, which may have read the same."""
        named = {call.id: call.name for call in said.get_tool_calls()}
        left = {call_id for call_id, read in reads.items() if read is None and call_id in named}
        if lost:
            self.tried |= left
        else:
            self.unfused |= {named[call_id] for call_id in left}
        self._brought = {call_id: read for call_id, read in reads.items() if read is not None}
        self._brought_at = self._journal.seq

    def begin_reply(self) -> None:
        self.unfused &= {world.PREPARE_REPLY}
        self.tried.clear()

    async def prepare(self, ask: world.PrepareReply) -> e.Prepared | None:
        """None when an activity of its own has to. Raises WorkInterrupted."""
        if self._journal.spec.host or not is_found_soon(self._journal) or world.PREPARE_REPLY in self.unfused:
            return None
        prepared = await self._run_fused(world.PREPARE_REPLY, ask, e.Prepared, "find tools and workspace")
        if prepared is None and self._journal.interrupted:
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
        ask = activity_inputs.run_tool(self._journal, call)
        # The input of what runs within a task stands in no history, so that it may say what a replay would not.
        ask = ask.model_copy(update={"maybe_started": self._may_have_been_started()})
        try:
            told = await self._run_fused(call.block.name, ask, e.ToolOutcome, activity_inputs.summary_of(call))
        except WorkInterrupted:
            return activity_failures.call_interrupted(call)
        except MaybeStarted:
            self.tried.add(call.block.id)
            return None
        return None if told is None else told.root

    async def _run_fused(self, name: str, ask: object, answer: type[Answer], summary: str) -> Answer | None:
        told = await self._underway.run_fused(name, ask, answer, activity_options.fused_read(summary))
        if told is None:
            self.unfused.add(name)
        return told
