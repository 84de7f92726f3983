"""AgentSession: one session's life as a workflow. It asks `longhaul/agent` what is next, does it, and writes it down.

Nothing is decided here: `run` interprets steps, the handlers put operations through `agent.operations.all_operations`,
the queries read the journal.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, assert_never, cast

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from longhaul.activities import contract as world
    from longhaul.agent import entries as e
    from longhaul.agent.decision import decide
    from longhaul.agent.decisions.continue_as_new import Load
    from longhaul.agent.decisions.model_turn import begins_again
    from longhaul.agent.decisions.subagent_start import answered, closes_with_answer, says_at_its_end
    from longhaul.agent.incarnation.continued_state import Carried, carry
    from longhaul.agent.journal import Journal
    from longhaul.agent.operations.all_operations import receive
    from longhaul.agent.operations.bodies import ReceivedOperation, Unusable
    from longhaul.agent.operations.settings_operations import list_rules
    from longhaul.agent.plain.ids import reply_id
    from longhaul.agent.steps import (
        Act,
        Answer,
        BeginStep,
        Book,
        Checkpoint,
        Close,
        Compress,
        ContinueAsNew,
        Examine,
        Finish,
        HandleInterrupt,
        Idle,
        Join,
        Judge,
        Memorise,
        Park,
        Prepare,
        Probe,
        Remind,
        Report,
        Restore,
        Step,
        TakeIn,
        TakeOver,
        Tell,
        TellAsker,
        TellHub,
        Think,
        Verify,
    )
    from longhaul.agent.values.conversation.messages import ToolResultBlock
    from longhaul.agent.values.permission import PermissionRule
    from longhaul.agent.views.event_types import EventsSoFar
    from longhaul.agent.views.events import EventReducer
    from longhaul.agent.views.session_views import answer, report
    from longhaul.agent.views.would_pass import WouldPass, would_pass
    from longhaul.workflows import activity_failures, views
    from longhaul.workflows.contract import (
        REFUSED,
        RESET,
        TASK_TIMEOUT,
        WORKFLOW,
        Closed,
        EventPage,
        MessagePage,
        PendingCall,
        PendingHere,
        ReplyResult,
        Status,
    )
    from longhaul.workflows.operations import (
        LARGEST_OPERATION,
        MAX_NAME,
        Turns,
        decode,
        open_journal,
        opening_of,
        read_start,
        weigh,
    )
    from longhaul.workflows.session_timers import DeadlineClock, IdleClock, TaskClock, tell_waits
    from longhaul.workflows.steps import Doing
    from longhaul.workflows.subagents import for_user
    from longhaul.workflows.views import Snapshot, SnapshotAsk
    from longhaul.workflows.web_ui import Showing


@workflow.defn(name=WORKFLOW)
class AgentSession:
    """Started by update-with-start of `submit`; lives until somebody closes it.

    Its own worker's runner makes one input of several or none (`unbegun_task_guard`): the SDK itself fails the task for
    ever on an input of the wrong arity.
    """

    @workflow.init
    def __init__(self, start: RawValue) -> None:
        self._start = read_start(start)
        self._journal = open_journal(self._start, workflow.time_ns() // 1_000_000)
        self._doing = Doing(self._journal, self._write)
        self._deadlines = DeadlineClock(self._journal, self._write, self._doing.beside)
        self._idleness = IdleClock(self._journal, self._write, self._doing.beside)
        self._task = TaskClock(self._journal, self._write, self._doing.beside, self._doing.underway.interrupt)
        self._showing = Showing(self._journal, self._doing.running)
        self._events = EventReducer(self._start.carried.events if self._start.carried else None)
        self._snapshot = Snapshot()
        self._turns = Turns()
        self._was_reset = False
        workflow.register_random_seed_callback(self._note_reset)

    @workflow.run
    async def run(self, start: RawValue) -> Closed:
        del start
        try:
            closed = await self._live()
            # Another session has the key for a report; whose workflow has asked, has none.
            return closed if closed.answer is None else cast(Closed, for_user(closed))
        except asyncio.CancelledError:
            # A run that a worker only takes out of its memory ends in the same way, and goes on elsewhere.
            if workflow.cancellation_reason() is not None:
                await self._doing.children.cancel()
            raise

    async def _live(self) -> Closed:  # noqa: C901, PLR0912, PLR0915  one arm per step
        self._idleness.start_at_once()
        self._task.start()
        self._doing.children.watch()
        while True:
            match await self._next():
                case Restore():
                    await self._restore()
                case Prepare(reply):
                    await self._prepare(reply)
                case Think() as thought:
                    await self._doing.think(thought)
                case Compress(cut):
                    await self._doing.compress(cut)
                case Examine(call_ids):
                    await self._doing.examine(call_ids)
                case Judge(rulings):
                    self._write(e.CallsJudged(rulings=rulings))
                case Act(call_ids, fused):
                    await self._doing.act(call_ids, fused=fused)
                case Answer(entry) | Remind(entry) | Join(entry) | BeginStep(entry) | Book(entry):
                    self._write(entry)
                case TakeIn(call_id):
                    await self._doing.take_in(call_id)
                case (
                    Probe() | Verify() | HandleInterrupt() | Memorise() | Tell() | Report() | TellAsker() | TellHub()
                ) as it:
                    await self._doing.look(it)
                case TakeOver(call_id):
                    self._doing.background.take_over(call_id)
                case Finish() as end:
                    self._write(activity_failures.finished(end))
                case Checkpoint(closing):
                    self._doing.checkpoint(self._load().events, self._events.before, closing=closing)
                case Park() | Idle():
                    await self._until_recorded()
                case ContinueAsNew():
                    self._continue_as_new()
                case Close():
                    return self._closed()
                case _ as never:
                    assert_never(never)

    @workflow.signal(dynamic=True)
    async def on_signal(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Every signal, known or not; a bad one is recorded as refused and changes nothing."""
        if name == RESET and self._was_reset:
            self._look_back_again()
            return
        await self._turns.take(arguments)
        try:
            self._receive(name, arguments)
        except Unusable as refusal:
            self._refuse(name, str(refusal))

    @workflow.update(dynamic=True)
    async def on_update(self, name: str, arguments: Sequence[RawValue]) -> dict[str, Any]:
        """Every update; the answer says what was done, or the failure says why nothing was."""
        await self._turns.take(arguments)
        try:
            return self._receive(name, arguments)
        except Unusable as refusal:
            self._refuse(name, str(refusal))
            kind = [refusal.kind] if refusal.kind else []
            raise ApplicationError(str(refusal), *kind, type=REFUSED, non_retryable=True) from None

    @on_update.validator
    def accept_update(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Turn away what is too large to be accepted: the server would terminate the session for it."""
        if weigh(arguments) > LARGEST_OPERATION:
            raise ApplicationError(
                f"{name[:MAX_NAME]}: the body has {weigh(arguments) // 1000} kB, and the most is "
                f"{LARGEST_OPERATION // 1000} kB",
                type=REFUSED,
                non_retryable=True,
            )

    @workflow.query
    def status(self) -> Status:
        told = views.status(self._journal)
        # Where the agent names none, the server gives a child the priority of the workflow that started it.
        return told.model_copy(update={"priority": workflow.info().priority.priority_key or told.priority})

    @workflow.query
    def pending(self) -> list[PendingCall]:
        return views.pending(self._journal)

    @workflow.query
    def pending_here(self) -> PendingHere:
        """The same, with all that tells where else to ask."""
        return views.pending_here(self._journal)

    @workflow.query
    def would_pass(self, call_id: str = "") -> list[WouldPass]:
        """What each rule that was suggested with a call would have let pass beside it, lately."""
        return would_pass(self._journal, call_id)

    @workflow.query
    def rules(self) -> list[PermissionRule]:
        """Those that the session goes by, of every scope, each with its id; expired ones too, until they make room."""
        return list_rules(self._journal)

    @workflow.query
    def state(self) -> dict[str, Any]:
        """AgentState without its context, which `transcript` gives in pages."""
        return self._journal.state.model_dump(mode="json", exclude={"context"})

    @workflow.query
    def transcript(self, epoch: int = 1, start: int = 0) -> world.TranscriptPage:
        """What the model is shown, summary included: for activities that do not have it. Epoch 0 is the newest."""
        if epoch not in (0, self._journal.context.epoch):
            now = self._journal.context.epoch
            raise ApplicationError(f"epoch {epoch} is not this session's; it is {now}", type=world.STALE_CONTEXT)
        return views.context_page(self._journal, start)

    @workflow.query
    def messages(self, start: int = 0) -> MessagePage:
        """All messages that there ever were, by number, as far as the session still holds them."""
        return views.message_page(self._journal, start)

    @workflow.query
    def events(self, start: int = 1) -> EventPage:
        """Durable events from sequence number `start` on."""
        return views.event_page(self._events, self._journal, start)

    @workflow.query
    def received(self, call_id: str) -> ToolResultBlock:
        """The result that was handed in for a call, until it is taken in."""
        call = self._journal.reply.calls.get(call_id) if self._journal.reply else None
        if call is None or call.received is None:
            raise ApplicationError(f"no result of {call_id[:100]!r} waits to be taken in", type=REFUSED)
        return call.received

    @workflow.query
    def verification(self, number: int) -> dict[str, str | None]:
        """What became of signed decisions: empty when they count, why they do not, or null while nobody knows."""
        if number in self._journal.unverified.waiting:
            return {"why_not": None}
        return {"why_not": self._journal.unverified.resolved.get(number, "nothing is known of it any more")}

    @workflow.query
    def entries(self, start: int = 1) -> world.EntriesPage:
        """The journal itself from entry number `start` on, as far as the session still holds it."""
        return views.entries_page(self._journal, start)

    @workflow.query
    def snapshot(self, saved: int = 0, saved_messages: int = 0, start: int = 0, seq: int = 0) -> world.SnapshotPage:
        """All that the session would carry into another run, as text in pages, without the entries up to `saved`."""
        ask = SnapshotAsk(saved, saved_messages, start, seq)
        return self._snapshot.page(self._journal, self._events.before, ask)

    @workflow.query
    def result(self, reply: str) -> ReplyResult:
        return views.result(self._journal, reply)

    @workflow.query
    def stream(self) -> str:
        """Address of the live stream, as the worker that answers knows it; empty when it has none."""
        told = cast(dict[str, Callable[[], str]], workflow.extern_functions()).get(world.STREAM_ADDRESS)  # pyright: ignore[reportUnknownMemberType]  the SDK's own type
        return told() if told is not None else ""

    @workflow.query
    def spec(self) -> world.SpecTexts:
        """What a worker needs beside the context to call the model."""
        return views.spec_texts(self._journal)

    @property
    def replying(self) -> str:
        """Id of the reply that is being made; empty when there is none."""
        return self._journal.reply.reply_id if self._journal.reply else ""

    def _receive(self, name: str, arguments: Sequence[RawValue]) -> dict[str, Any]:
        workflow_id = workflow.info().workflow_id
        operation = ReceivedOperation(
            name=name[:MAX_NAME],
            arguments=decode(name[:MAX_NAME], arguments),
            fresh_id=str(workflow.uuid4()),
            reply_id_of=lambda request: reply_id(workflow_id, request),
        )
        try:
            received = receive(self._journal, operation)
        except Unusable:
            raise
        except Exception as error:
            # A defect of ours in reading an operation must not fail the task: it would be read again for ever.
            workflow.logger.exception("an operation could not be read")
            raise Unusable(f"{name[:MAX_NAME]}: it could not be read ({type(error).__name__})") from error
        for entry in received.entries:
            self._take(entry)
        return received.answer

    def _take(self, entry: e.AnyEntry) -> None:
        lacking = self._journal.incarnation.lacking
        again = begins_again(self._doing.started, entry, self._journal)
        if again and isinstance(entry, e.Configured):
            entry = entry.model_copy(update={"again": True})
        if not (again and isinstance(entry, e.WorkerLacks)):
            self._write(entry)
            if isinstance(entry, e.WorkerLacks):
                self._showing.begin_waiting()
        # A provider that is away is not asked while the session is paused: the call is made again when it goes on.
        waited_out = isinstance(entry, e.PauseStarted) and lacking is not None and lacking.away is not None
        if isinstance(entry, e.InterruptAsked) or waited_out or again:
            self._doing.underway.interrupt()

    def _refuse(self, name: str, reason: str) -> None:
        self._write(e.OperationRefused(name=name[:MAX_NAME], reason=reason, count=self._journal.refused.count + 1))

    def _write(self, entry: e.AnyEntry) -> None:
        now = workflow.time_ns() // 1_000_000
        tell_waits(self._journal, entry, now)
        if isinstance(entry, e.ModelSaid) and entry.marked:
            self._showing.retitle(entry.marked)
        self._journal.write(entry, now)
        self._doing.background.stop_unwanted()
        if isinstance(entry, e.HostBack) or (isinstance(entry, e.WorkerLacks) and entry.host):
            self._showing.show()  # the session stands still in the midst of a step, where nothing else tells of it

    async def _next(self) -> Step:
        while isinstance(step := decide(self._journal, self._load()), ContinueAsNew | Close) and self._turns.waiting:
            await self._turns.all_read()  # a run that ended would take them along
        self._showing.begin(step)
        return step

    def _load(self) -> Load:
        self._doing.fused.note_task()
        info = workflow.info()
        return Load(
            events=info.get_current_history_length(),
            bytes=info.get_current_history_size(),
            continue_as_new_suggested=info.is_continue_as_new_suggested(),
            running=frozenset(self._doing.running),
            background=frozenset(self._doing.background.running),
            checkpointing=self._doing.checkpointing is not None,
            unfused=frozenset(self._doing.fused.unfused),
            tried=frozenset(self._doing.fused.tried),
            brought=bool(self._doing.fused.brought),
            at=workflow.time_ns() // 1_000_000,
        )

    async def _restore(self) -> None:
        earlier = await self._doing.restore(workflow.time_ns() // 1_000_000)
        if earlier is not None:
            self._events = EventReducer(earlier)
            self._idleness.follow()
            self._task.start()
            self._doing.children.watch()

    async def _prepare(self, reply: str) -> None:
        if self._journal.reply is None:
            self._write(e.ReplyStarted(reply_id=reply))
        self._showing.show()
        await self._doing.prepare(reply)

    async def _until_recorded(self) -> None:
        self._showing.show()
        self._deadlines.set()
        self._idleness.start_late()
        seen = self._journal.seq
        await workflow.wait_condition(lambda: self._journal.seq != seen or self._doing.crash is not None)
        if self._doing.crash is not None:
            raise self._doing.crash

    def _closed(self) -> Closed:
        told = report(self._journal) if says_at_its_end(self._journal) else None
        asker = answered(self._journal) if closes_with_answer(self._journal) else None
        return Closed(
            seq=self._journal.keeping.mirrored,
            incarnation=self._journal.incarnation.number,
            report=told,
            answer=None if asker is None else answer(self._journal, asker),
        )

    def _note_reset(self, _seed: int) -> None:
        """The server gives a run another seed where it goes on with a part of an earlier run's history."""
        self._was_reset = True

    def _look_back_again(self) -> None:
        """What this run knows is what the session had come to where the history was cut, and it has gone further. A run
        of its own finds out how far, as after any end from outside, and hears what this task has brought."""
        self._was_reset = False
        if not self._journal.incarnation.restored:
            return  # whoever restores it looks for earlier runs
        opened = Journal.of([opening_of(self._journal)])
        for entry in self._journal.log:
            if isinstance(entry, e.RequestAccepted | e.AskerCame) and entry.at == workflow.time_ns() // 1_000_000:
                opened.write(entry, entry.at)
        self._go_on_with(carry(opened, EventsSoFar(), 0, 0))

    def _continue_as_new(self) -> None:
        carried = carry(
            self._journal, self._events.before, self._journal.keeping.saved, self._journal.keeping.saved_messages
        )
        self._go_on_with(carried)

    def _go_on_with(self, carried: Carried) -> NoReturn:
        start = self._start.model_copy(update={"spec": None, "request": None, "asker": None, "carried": carried})
        workflow.continue_as_new(
            start,
            task_timeout=TASK_TIMEOUT,
            memo=workflow.memo(),
            # Given again: one that was unset would be carried over as null, and the SDK can't begin a run with that.
            search_attributes=workflow.info().typed_search_attributes,
        )
