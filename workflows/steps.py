"""Does each step that takes time: an activity is started, and its answer written down."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError

from longhaul.activities import contract as world
from longhaul.agent import entries as e
from longhaul.agent.decisions.background_commands import is_wanted
from longhaul.agent.decisions.call_rulings import with_own_call_ids
from longhaul.agent.decisions.model_turn import (
    StartedStep,
    parting_words,
    started,
    why_overdue,
    with_new_adjustments,
    with_tools_from_before,
)
from longhaul.agent.entries import Verified, VerifyDecisions
from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.journal import Journal
from longhaul.agent.operations.approval_operations import conclude_verification
from longhaul.agent.reducer.agent_state import effect_of
from longhaul.agent.reducer.context_state import Cut
from longhaul.agent.steps import HandleInterrupt, Memorise, Probe, Report, Tell, TellAsker, TellHub, Think, Verify
from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.mcp import holder_of
from longhaul.agent.views.event_types import EventsSoFar
from longhaul.workflows import activity_failures, activity_inputs, activity_options, within_task
from longhaul.workflows.background import Background
from longhaul.workflows.hosts import AtFiles
from longhaul.workflows.running_activities import Underway, WorkInterrupted, undisturbed
from longhaul.workflows.subagents import Children, tell_asker, tell_hub
from longhaul.workflows.temporal_calls import TemporalCalls
from longhaul.workflows.within_task import FusedReads

AHEAD_ENTRIES = 2
"""Restored and ReplyStarted; when there are more, something came in that may have changed what the reply needs."""


class Doing:
    """The doing hand of a session. What comes of a step is in the journal when its method returns, but for calls and
    checkpoints, which run beside whatever else happens."""

    def __init__(self, journal: Journal, write: Callable[[e.AnyEntry], None]) -> None:
        self._journal = journal
        self._write = write
        self.underway = Underway()
        self._at_files = AtFiles(journal, write, self.underway)
        self.fused = FusedReads(journal, self.underway)
        self._temporal_calls = TemporalCalls(self.underway)
        self.children = Children(journal, write, self.beside)
        self.background = Background(journal, write, self.beside)
        self.running: dict[str, asyncio.Task[None]] = {}
        """Calls, by id."""
        self.checkpointing: asyncio.Task[None] | None = None
        self.crash: BaseException | None = None
        """A defect of ours in a task of its own: the session's task has to fail like one in its loop."""
        self.started: StartedStep | None = None
        """Of those that ask a model, or look for what it needs: the one that is under way."""
        self._slow = False
        """Whether a checkpoint within the task has taken too long: activities write the further ones of this run."""
        self._ahead: tuple[int, e.Prepared] | None = None
        """Found for the first reply together with what was there before it; good where this is the newest entry."""

    async def restore(self, now: int) -> EventsSoFar | None:
        """Returns the events of the earlier incarnation that was found, if there was one."""
        # A run that went on from another one has been restored there, but for one that follows on a reset.
        ask = activity_inputs.restore(
            self._journal, workflow.info().workflow_id, workflow.info().continued_run_id or ""
        )
        asked_at = self._journal.seq
        how = activity_options.restore(prepares=ask.ahead is not None)
        try:
            found = await within_task.restored(self._journal, ask)
            if found is None:
                found = await undisturbed(world.RESTORE, ask, e.Restored, how)
        except ActivityError as error:
            self._write(activity_failures.restore_failed(error))
            return None
        carried = None if found.carried is None else Carried.model_validate(found.carried)
        self._journal.restore(found.model_copy(update={"prepared": None}), carried.session if carried else None, now)
        self._ahead = None if found.prepared is None else (asked_at + AHEAD_ENTRIES, found.prepared)
        return carried.events if carried else None

    def checkpoint(self, events: int, before: EventsSoFar, *, closing: bool) -> None:
        self.checkpointing = self.beside(self._checkpoint(events, before, closing=closing))

    async def _checkpoint(self, events: int, before: EventsSoFar, *, closing: bool) -> None:
        ask = activity_inputs.checkpoint(self._journal, closing=closing)
        outcome: e.Checkpointed | e.CheckpointFailed | None
        try:
            outcome = None
            if (full := within_task.to_write(self._journal, ask, before, slow=self._slow)) is not None:
                outcome = await within_task.checkpointed(full)
                self._slow = outcome is None
            if outcome is None:
                how = activity_options.checkpoint()
                outcome = await undisturbed(world.CHECKPOINT, ask, e.Checkpointed, how)
        except ActivityError as error:
            outcome = activity_failures.checkpoint_failed(error, events)
        self.checkpointing = None
        self._write(outcome)

    async def prepare(self, reply: str) -> None:
        ahead, self._ahead = self._ahead, None
        self.fused.begin_reply()
        if ahead is not None and ahead[0] == self._journal.seq:
            self._write(ahead[1])
            return
        ask = activity_inputs.prepare_reply(self._journal, workflow.info().workflow_id)
        try:
            prepared = None if ask.is_under_way else await self.fused.prepare(ask)
            if prepared is None:
                with self._by_settings(world.PREPARE_REPLY):
                    how = activity_options.prepare()
                    prepared = await self._at_files.run(world.PREPARE_REPLY, ask, e.Prepared, how)
        except WorkInterrupted:
            if ask.is_under_way or not self._journal.interrupted:
                return  # it is ended as any reply in its midst, or prepared again
            words, overdue = parting_words(self._journal), why_overdue(self._journal)
            self._write(e.ReplyFinished(reply_id=reply, reason=FinishedReason.INTERRUPTED, error=overdue, said=words))
        except ActivityError as error:
            failed = activity_failures.reply_failed(reply, error)
            why = failed.error.message if failed.error else ""
            self._write(with_tools_from_before(self._journal, why) if ask.is_under_way else failed)
        else:
            self._write(prepared)

    async def think(self, step: Think) -> None:
        model = step.model
        ask = activity_inputs.call_model(self._journal, step, self.fused.along())
        try:
            how = activity_options.call_model(
                ask.config,
                activity_inputs.summary_of_thought(ask),
                waits=activity_inputs.is_last_model(self._journal, model),
            )
            with self._by_settings(world.CALL_MODEL):
                said = await self._at_files.run(world.CALL_MODEL, ask, e.ModelSaid, how)
        except WorkInterrupted:
            self._release(1)  # it had said nothing yet
        except ActivityError as error:
            self._release(activity_failures.lost_attempts(error, min(ask.attempts_paid, ask.config.max_retries + 1)))
            if (
                not activity_failures.is_left(error)
                and not activity_failures.is_out_of_budget(error)
                and not self._journal.interrupted
            ):
                self._write(activity_failures.model_failed(model, error))
        else:
            if workflow.cancellation_reason() is not None:
                raise asyncio.CancelledError  # what it has half said must not keep a cancelled session going
            reads, said = said.reads, with_new_adjustments(said.model_copy(update={"reads": {}}), self._journal)
            said = with_own_call_ids(said, self._journal)
            self._write(said)
            self.fused.bring(reads, said.message, lost=said.lost_attempts > 0)

    async def handle_interrupt(self) -> None:
        """No interrupt concerns it: it is what comes of one."""
        ask = activity_inputs.handle_interrupt(self._journal)
        try:
            how = activity_options.handle_interrupt()
            handled = await undisturbed(world.HANDLE_INTERRUPT, ask, e.InterruptHandled, how)
        except ActivityError as error:
            handled = activity_failures.interrupt_not_handled(ask.reply_id, error)
        self._write(handled)

    async def memorise(self) -> None:
        """No interrupt concerns it: what it writes down has been said."""
        ask = activity_inputs.record_memory(self._journal)
        try:
            how = activity_options.record_memory()
            recorded = await undisturbed(world.RECORD_MEMORY, ask, e.MemoryRecorded, how)
        except ActivityError as error:
            recorded = activity_failures.memory_not_recorded(ask.reply_id, error)
        self._write(recorded)

    async def compress(self, cut: Cut) -> None:
        ask, epoch = activity_inputs.compress(self._journal, cut), self._journal.context.epoch
        try:
            waits = activity_inputs.needs_model(self._journal, ask)
            how = activity_options.compress(ask.config, waits=waits)
            with self._by_settings(world.COMPRESS):
                shorter = await self._at_files.run(world.COMPRESS, ask, e.ContextCompressed, how)
        except WorkInterrupted:
            self._release(1)  # nothing has changed, and nobody waits for it any more
        except ActivityError as error:
            lost = activity_failures.lost_attempts(error, min(ask.attempts_paid, ask.config.max_retries + 1))
            if activity_failures.is_left(error) or activity_failures.is_out_of_budget(error):
                self._release(lost)
            else:
                self._write(activity_failures.compression_failed(error, lost))
        else:
            if self._journal.context.epoch == epoch:
                self._write(with_new_adjustments(shorter, self._journal))
            else:
                self._release(1)  # the state was replaced meanwhile: it is a summary of another context

    @contextmanager
    def _by_settings(self, activity: str) -> Iterator[None]:
        self.started = started(activity, self._journal)
        try:
            yield
        finally:
            self.started = None

    def _release(self, lost: int) -> None:
        """What was put aside for a call that gave no answer."""
        if self._journal.account is not None and self._journal.account.open:
            self._write(e.BudgetReleased(lost=lost))

    async def examine(self, call_ids: tuple[str, ...]) -> None:
        calls = [activity_inputs.open_call(self._journal, call_id) for call_id in call_ids]
        ask = activity_inputs.examine_calls(self._journal, calls)
        try:
            how = activity_options.examine(len(calls), analyzed=ask.risk_analysis is not None)
            examined = await self._at_files.run(world.EXAMINE_CALLS, ask, e.CallsExamined, how)
        except WorkInterrupted:
            pass  # the calls are closed with the reply
        except ActivityError as error:
            self._write(activity_failures.not_examined(calls, error))
        else:
            self._write(with_new_adjustments(examined, self._journal))

    async def act(self, call_ids: tuple[str, ...], *, fused: bool) -> None:
        """Those that are fused have a result when this returns, but for what passed a bound."""
        if fused:
            calls = [activity_inputs.open_call(self._journal, call_id) for call_id in call_ids]
            for outcome in await self.fused.read(calls):
                self._write(outcome)
            return
        for call_id in call_ids:
            call = activity_inputs.open_call(self._journal, call_id)
            if is_wanted(call):
                self.background.begin(call)
                continue
            tool = self._journal.provided.tools[call.block.name]
            self.running[call_id] = self.beside(self._start_child(call_id) if tool.child else self._run_call(call_id))

    async def _start_child(self, call_id: str) -> None:
        entries = await self.children.start(call_id)
        del self.running[call_id]
        for entry in entries:
            self._write(entry)

    async def _run_call(self, call_id: str) -> None:
        call = activity_inputs.open_call(self._journal, call_id)
        tool = self._journal.provided.tools[call.block.name]
        effect = effect_of(call, tool)
        outcome: e.CallOutcome | e.ResultReceived
        try:
            summary = activity_inputs.summary_of(call)
            if tool.target is not None:
                outcome = await self._temporal_calls.run(call, tool, tool.target, summary)
                del self.running[call_id]
                self._write(outcome)
                return
            how = activity_options.run_tool(tool, effect, summary)
            ask = activity_inputs.run_tool(self._journal, call, workflow.info().run_id)
            holder, once = holder_of(ask.connection), effect is Effect.ONCE
            came = await self._at_files.run_at(holder, tool.name, ask, e.ToolOutcome, how, once=once)
            if came is None:
                came = await self._at_files.run(tool.name, ask, e.ToolOutcome, how, call_id, once=once)
            outcome = came.root
        except WorkInterrupted:
            outcome = activity_failures.call_interrupted(call)
        except ActivityError as error:
            outcome = activity_failures.call_failed(call, effect, error)
        del self.running[call_id]
        self._write(outcome)

    async def look(
        self, step: Probe | Verify | HandleInterrupt | Memorise | Tell | Report | TellAsker | TellHub
    ) -> None:
        """Find out what is true outside, of a call or of a signature; or speak with hooks and other sessions there."""
        match step:
            case HandleInterrupt():
                await self.handle_interrupt()
            case Memorise():
                await self.memorise()
            case Tell() | Report():
                await self.children.say(step)
            case TellAsker(request):
                self._write(await tell_asker(self._journal, request))
            case TellHub(hub, reply):
                self._write(await tell_hub(self._journal, hub, reply))
            case Probe(call_id):
                await self.probe(call_id)
            case Verify(decisions_at):
                await self.verify(decisions_at)

    async def probe(self, call_id: str) -> None:
        ask = activity_inputs.probe_call(self._journal, self._journal.unknown_outcomes[call_id])
        try:
            how = activity_options.probe(ask.tool)
            found = await self._at_files.run(world.PROBE_CALL, ask, e.OutcomeProbed, how)
        except WorkInterrupted:
            found = activity_failures.not_probed(call_id, "the reply was interrupted")
        except ActivityError as error:
            found = activity_failures.probe_failed(call_id, error)
        self._write(found)

    async def verify(self, decisions_at: int) -> None:
        ask = VerifyDecisions(body=self._journal.unverified.waiting[decisions_at].body)
        try:
            found = await self.underway.run(world.VERIFY_DECISIONS, ask, Verified, activity_options.verify())
        except WorkInterrupted:
            return  # nobody waits for it any more
        except ActivityError as error:
            found = Verified(why=activity_failures.not_verified(error))
        for entry in conclude_verification(self._journal, decisions_at, found.why, found.key):
            self._write(entry)

    async def take_in(self, call_id: str) -> None:
        call = activity_inputs.open_call(self._journal, call_id)
        ask = activity_inputs.run_tool(self._journal, call)
        try:
            how = activity_options.take_result(call.block.name)
            outcome = await self._at_files.run(world.TAKE_RESULT, ask, e.ToolReturned, how)
        except WorkInterrupted:
            return  # the call is closed with the reply
        except ActivityError as error:
            outcome = activity_failures.not_taken_in(call, error)
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
