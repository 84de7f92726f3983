"""What a session does for each step that takes time: an activity is started, and its answer written down."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from activities import contract as world
from agent import entries as e
from agent.calls import with_own_call_ids
from agent.carried import Carried
from agent.compaction import Cut
from agent.entries_offered import Verified, VerifyDecisions
from agent.event import EventsSoFar
from agent.interrupting import parting_words
from agent.messages import FinishedReason
from agent.offers import settle
from agent.record import Record
from agent.state import effect_of
from agent.steps import HandleInterrupt, Probe, Verify
from workflows import asks, asks_life, asks_runtime, options, outcomes
from workflows.underway import Interrupted, Underway, undisturbed

AHEAD_ENTRIES = 2
"""Restored and ReplyStarted; when there are more, something came in that may have changed what the reply needs."""


class Doing:
    """The doing hand of a session. What comes of a step is in the record when its method returns, but for calls and
    checkpoints, which run beside whatever else happens."""

    def __init__(self, record: Record, write: Callable[[e.AnyEntry], None]) -> None:
        self._record = record
        self._write = write
        self.underway = Underway()
        self.running: dict[str, asyncio.Task[None]] = {}
        """Calls, by id."""
        self.checkpointing: asyncio.Task[None] | None = None
        self.crash: BaseException | None = None
        """A defect of ours in a task of its own: the session's task has to fail like one in its loop."""
        self._ahead: tuple[int, e.Prepared] | None = None
        """Found for the first reply together with what was there before it; good where this is the newest entry."""

    async def restore(self, now: int) -> EventsSoFar | None:
        """Returns the events of the earlier life that was found, if there was one."""
        ask = asks_life.restore(self._record, workflow.info().workflow_id)
        asked_at = self._record.seq
        try:
            how = options.restore(prepares=ask.ahead is not None)
            found = await undisturbed(world.RESTORE, ask, e.Restored, how, f"restore-{self._record.seq}")
        except ActivityError as error:
            self._write(outcomes.restore_failed(error))
            return None
        carried = None if found.carried is None else Carried.model_validate(found.carried)
        self._record.restore(found.model_copy(update={"prepared": None}), carried.ledger if carried else None, now)
        self._ahead = None if found.prepared is None else (asked_at + AHEAD_ENTRIES, found.prepared)
        return carried.events if carried else None

    def checkpoint(self, events: int, *, closing: bool) -> None:
        self.checkpointing = self.beside(self._checkpoint(events, closing=closing))

    async def _checkpoint(self, events: int, *, closing: bool) -> None:
        ask = asks_life.checkpoint(self._record, closing=closing)
        outcome: e.Checkpointed | e.CheckpointFailed
        try:
            how = options.checkpoint()
            outcome = await undisturbed(world.CHECKPOINT, ask, e.Checkpointed, how, f"checkpoint-{self._record.seq}")
        except ActivityError as error:
            outcome = outcomes.checkpoint_failed(error, events)
        self.checkpointing = None
        self._write(outcome)

    async def prepare(self, reply: str) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == self._record.seq:
            self._write(ahead[1])
            return
        ask = asks.prepare_reply(self._record, workflow.info().workflow_id)
        try:
            prepared = await self.underway.run(world.PREPARE_REPLY, ask, e.Prepared, options.prepare())
        except Interrupted:
            words = parting_words(self._record)
            self._write(e.ReplyFinished(reply_id=reply, reason=FinishedReason.INTERRUPTED, said=words))
        except ActivityError as error:
            self._write(outcomes.reply_failed(reply, error))
        else:
            self._write(prepared)

    async def think(self, model: str, *, closing: bool) -> None:
        ask = asks.call_model(self._record, model, closing=closing)
        try:
            how = options.call_model(ask.config, asks.summary_of_thought(ask))
            said = await self.underway.run(world.CALL_MODEL, ask, e.ModelSaid, how)
        except Interrupted:
            pass  # what a model has half said is nothing that it said
        except ActivityError as error:
            if not outcomes.is_left(self._record, error):
                self._write(outcomes.model_failed(model, error))
        else:
            self._write(with_own_call_ids(said, self._record))

    async def handle_interrupt(self) -> None:
        """No interrupt concerns it: it is what comes of one."""
        ask = asks_runtime.handle_interrupt(self._record)
        try:
            how = options.handle_interrupt()
            name = f"interrupt-{self._record.seq}"
            handled = await undisturbed(world.HANDLE_INTERRUPT, ask, e.InterruptHandled, how, name)
        except ActivityError as error:
            handled = outcomes.interrupt_not_handled(ask.reply_id, error)
        self._write(handled)

    async def compress(self, cut: Cut) -> None:
        ask = asks.compress(self._record, cut)
        try:
            how = options.compress(ask.config)
            shorter = await self.underway.run(world.COMPRESS, ask, e.ContextCompressed, how)
        except Interrupted:
            pass  # nothing has changed, and nobody waits for it any more
        except ActivityError as error:
            if not outcomes.is_left(self._record, error):
                self._write(outcomes.compression_failed(error))
        else:
            self._write(shorter)

    async def examine(self, call_ids: tuple[str, ...]) -> None:
        calls = [asks.open_call(self._record, call_id) for call_id in call_ids]
        ask = asks.examine_calls(self._record, calls)
        try:
            how = options.examine(len(calls), analyzed=ask.analysis is not None)
            examined = await self.underway.run(world.EXAMINE_CALLS, ask, e.CallsExamined, how)
        except Interrupted:
            pass  # the calls are closed with the reply
        except ActivityError as error:
            self._write(outcomes.not_examined(calls, error))
        else:
            self._write(examined)

    def act(self, call_ids: tuple[str, ...]) -> None:
        for call_id in call_ids:
            self.running[call_id] = self.beside(self._run_call(call_id))

    async def _run_call(self, call_id: str) -> None:
        call = asks.open_call(self._record, call_id)
        tool = self._record.tools[call.block.name]
        effect = effect_of(call, tool)
        outcome: e.ToolReturned | e.CallUnsettled
        try:
            how = options.run_tool(tool, effect, asks.summary_of(call))
            ask = asks.run_tool(self._record, call)
            outcome = (await self.underway.run(tool.name, ask, e.ToolOutcome, how)).root
        except Interrupted:
            outcome = outcomes.call_interrupted(call)
        except ActivityError as error:
            outcome = outcomes.call_failed(call, effect, error)
        del self.running[call_id]
        self._write(outcome)

    async def look(self, step: Probe | Verify | HandleInterrupt) -> None:
        """Find out what is true outside, of a call or of a signature; or what hooks say there."""
        match step:
            case HandleInterrupt():
                await self.handle_interrupt()
            case Probe(call_id):
                await self.probe(call_id)
            case Verify(offer):
                await self.verify(offer)

    async def probe(self, call_id: str) -> None:
        ask = asks.probe_call(self._record, self._record.doubts[call_id])
        try:
            how = options.probe(ask.tool)
            found = await self.underway.run(world.PROBE_CALL, ask, e.DoubtProbed, how)
        except Interrupted:
            found = outcomes.not_probed(call_id, "the reply was interrupted")
        except ActivityError as error:
            found = outcomes.probe_failed(call_id, error)
        self._write(found)

    async def verify(self, offer: int) -> None:
        ask = VerifyDecisions(body=self._record.offers[offer].body)
        try:
            found = await self.underway.run(world.VERIFY_DECISIONS, ask, Verified, options.verify())
        except Interrupted:
            return  # nobody waits for it any more
        except ActivityError as error:
            found = Verified(why=outcomes.not_verified(error))
        for entry in settle(self._record, offer, found.why, found.key):
            self._write(entry)

    async def take_in(self, call_id: str) -> None:
        call = asks.open_call(self._record, call_id)
        ask = asks.run_tool(self._record, call)
        try:
            how = options.take_result(call.block.name)
            outcome = await self.underway.run(world.TAKE_RESULT, ask, e.ToolReturned, how)
        except Interrupted:
            return  # the call is closed with the reply
        except ActivityError as error:
            outcome = outcomes.not_taken_in(call, error)
        self._write(outcome)

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work that the session's own loop does not wait for."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._note_crash)
        return task

    def _note_crash(self, task: asyncio.Task[None]) -> None:
        """A defect in `_run_call` must fail the task like one in the loop, not vanish with its asyncio task."""
        if not task.cancelled() and task.exception() is not None:
            self.crash = task.exception()
