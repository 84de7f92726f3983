"""AgentSession: one session's life as a workflow. It asks `agent/` what is next, does it, and writes it down.

Nothing is decided here: `run` interprets steps, the handlers put letters through `agent.reception`, the queries
read the record.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, assert_never

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError, ApplicationError

with workflow.unsafe.imports_passed_through():
    from activities import contract as world
    from agent import entries as e
    from agent.bodies import Unusable
    from agent.calls import with_own_call_ids
    from agent.decision import Act, Examine, Finish, Idle, Judge, Load, Park, Prepare, RollOver, Think, decide
    from agent.events import EventFold
    from agent.ids import reply_id
    from agent.judgement import effect_of
    from agent.letters import Letter
    from agent.messages import FinishedReason
    from agent.reception import receive
    from agent.transcript import page
    from workflows import asks, options, outcomes, views
    from workflows.contract import (
        EPOCH,
        PAGE_BYTES,
        REFUSED,
        STATUS,
        TASK_TIMEOUT,
        WAITING_SINCE,
        EventPage,
        PendingCall,
        ReplyResult,
        Status,
    )
    from workflows.letters import LARGEST_LETTER, MAX_NAME, decode, open_record, read_start, weigh
    from workflows.underway import Interrupted, Underway


@workflow.defn(dynamic=True)
class AgentSession:
    """Started by update-with-start of `submit`; lives until somebody closes it.

    Dynamic, so that every input reaches `read_start`: the SDK itself fails the task for ever on an input of the
    wrong arity.
    """

    @workflow.init
    def __init__(self, arguments: Sequence[RawValue]) -> None:
        self._start = read_start(workflow.info().workflow_type, arguments)
        self._record = open_record(
            self._start, workflow.time_ns() // 1_000_000, rolled_over=workflow.info().continued_run_id is not None
        )
        self._running: dict[str, asyncio.Task[None]] = {}
        self._underway = Underway()
        self._crash: BaseException | None = None
        self._status = workflow.info().typed_search_attributes.get(STATUS)
        self._events = EventFold()

    @workflow.run
    async def run(self, arguments: Sequence[RawValue]) -> None:
        del arguments
        while True:
            match decide(self._record, self._load()):
                case Prepare(reply):
                    await self._prepare(reply)
                case Think(model):
                    await self._think(model)
                case Examine(call_ids):
                    await self._examine(call_ids)
                case Judge(verdicts):
                    self._write(e.CallsJudged(verdicts=verdicts))
                case Act(call_ids):
                    self._act(call_ids)
                case Finish(reply, reason, error, closing):
                    self._write(e.ReplyFinished(reply_id=reply, reason=reason, error=error, closing=closing))
                case Park() | Idle():
                    await self._until_recorded()
                case RollOver():
                    self._roll_over()
                case _ as never:
                    assert_never(never)

    @workflow.signal(dynamic=True)
    def on_signal(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Every signal, known or not; a bad one is recorded as refused and changes nothing."""
        try:
            self._receive(name, arguments)
        except Unusable as refusal:
            self._refuse(name, str(refusal))

    @workflow.update(dynamic=True)
    def on_update(self, name: str, arguments: Sequence[RawValue]) -> dict[str, Any]:
        """Every update; the answer says what was done, or the failure says why nothing was."""
        try:
            return self._receive(name, arguments)
        except Unusable as refusal:
            self._refuse(name, str(refusal))
            raise ApplicationError(str(refusal), type=REFUSED, non_retryable=True) from None

    @on_update.validator
    def accept_update(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Turn away what is too large to be accepted: the server would terminate the session for it."""
        if weigh(arguments) > LARGEST_LETTER:
            raise ApplicationError(
                f"{name[:MAX_NAME]}: the body has {weigh(arguments) // 1000} kB, and the most is "
                f"{LARGEST_LETTER // 1000} kB",
                type=REFUSED,
                non_retryable=True,
            )

    @workflow.query
    def status(self) -> Status:
        return views.status(self._record)

    @workflow.query
    def pending(self) -> list[PendingCall]:
        return views.pending(self._record)

    @workflow.query
    def state(self) -> dict[str, Any]:
        """AgentState without its context, which `transcript` gives in pages."""
        return self._record.state.model_dump(mode="json", exclude={"context"})

    @workflow.query
    def transcript(self, epoch: int = EPOCH, start: int = 0) -> world.TranscriptPage:
        context = self._record.state.context
        if epoch != EPOCH:
            raise ApplicationError(f"epoch {epoch} is not this session's; it is {EPOCH}", type=world.STALE_CONTEXT)
        return world.TranscriptPage(
            epoch=epoch, start=start, total=len(context), messages=page(context, start, PAGE_BYTES)
        )

    @workflow.query
    def events(self, start: int = 1) -> EventPage:
        """Durable events from sequence number `start` on."""
        all_events = self._events.catch_up(self._record.log)
        return EventPage(events=page(all_events, max(start - 1, 0), PAGE_BYTES), last=len(all_events))

    @workflow.query
    def result(self, reply: str) -> ReplyResult:
        return views.result(self._record, reply)

    @workflow.query
    def spec(self) -> world.SpecTexts:
        """What a worker needs beside the context to call the model."""
        return views.spec_texts(self._record)

    def _receive(self, name: str, arguments: Sequence[RawValue]) -> dict[str, Any]:
        letter = Letter(
            name=name[:MAX_NAME], arguments=decode(arguments), weight=weigh(arguments), fresh_id=str(workflow.uuid4())
        )
        workflow_id = workflow.info().workflow_id
        try:
            received = receive(self._record, letter, lambda request: reply_id(workflow_id, request))
        except Unusable:
            raise
        except Exception as error:
            # A defect of ours in reading a letter must not fail the task: it would be read again for ever.
            workflow.logger.exception("a letter could not be read")
            raise Unusable(f"{name[:MAX_NAME]}: it could not be read ({type(error).__name__})") from error
        for entry in received.entries:
            self._write(entry)
            if isinstance(entry, e.InterruptAsked):
                self._underway.interrupt()
        return received.answer

    def _refuse(self, name: str, reason: str) -> None:
        self._write(e.Refused(name=name[:MAX_NAME], reason=reason, count=self._record.refused_count + 1))

    def _write(self, entry: e.AnyEntry) -> None:
        self._record.write(entry, workflow.time_ns() // 1_000_000)

    def _load(self) -> Load:
        info = workflow.info()
        return Load(
            events=info.get_current_history_length(),
            bytes=info.get_current_history_size(),
            roll_over_suggested=info.is_continue_as_new_suggested(),
            running=frozenset(self._running),
        )

    async def _prepare(self, reply: str) -> None:
        if self._record.reply is None:
            self._write(e.ReplyStarted(reply_id=reply))
        self._show()
        ask = asks.prepare_reply(self._record, workflow.info().workflow_id)
        try:
            prepared = await self._underway.run(world.PREPARE_REPLY, ask, e.Prepared, options.prepare())
        except Interrupted:
            self._write(e.ReplyFinished(reply_id=reply, reason=FinishedReason.INTERRUPTED))
        except ActivityError as error:
            self._write(outcomes.reply_failed(reply, error))
        else:
            self._write(prepared)

    async def _think(self, model: str) -> None:
        ask = asks.call_model(self._record, model)
        try:
            how = options.call_model(ask.config, asks.summary_of_thought(ask))
            said = await self._underway.run(world.CALL_MODEL, ask, e.ModelSaid, how)
        except Interrupted:
            pass  # what a model has half said is nothing that it said
        except ActivityError as error:
            self._write(outcomes.model_failed(model, error))
        else:
            self._write(with_own_call_ids(said, self._record))

    async def _examine(self, call_ids: tuple[str, ...]) -> None:
        calls = [asks.open_call(self._record, call_id) for call_id in call_ids]
        ask = asks.examine_calls(self._record, calls)
        try:
            how = options.examine(len(calls))
            examined = await self._underway.run(world.EXAMINE_CALLS, ask, e.CallsExamined, how)
        except Interrupted:
            pass  # the calls are closed with the reply
        except ActivityError as error:
            self._write(outcomes.not_examined(calls, error))
        else:
            self._write(examined)

    def _act(self, call_ids: tuple[str, ...]) -> None:
        for call_id in call_ids:
            task = asyncio.create_task(self._run_call(call_id))
            task.add_done_callback(self._note_crash)
            self._running[call_id] = task

    async def _run_call(self, call_id: str) -> None:
        call = asks.open_call(self._record, call_id)
        tool = self._record.tools[call.block.name]
        effect = effect_of(call, tool)
        outcome: e.ToolReturned | e.CallUnsettled
        try:
            how = options.run_tool(tool, effect, asks.summary_of(call))
            ask = asks.run_tool(self._record, call)
            outcome = (await self._underway.run(tool.name, ask, e.ToolOutcome, how)).root
        except Interrupted:
            outcome = outcomes.call_interrupted(call)
        except ActivityError as error:
            outcome = outcomes.call_failed(call, effect, error)
        del self._running[call_id]
        self._write(outcome)

    def _note_crash(self, task: asyncio.Task[None]) -> None:
        """A defect in `_run_call` must fail the task like one in the loop, not vanish with its asyncio task."""
        if not task.cancelled() and task.exception() is not None:
            self._crash = task.exception()

    async def _until_recorded(self) -> None:
        self._show()
        seen = self._record.seq
        await workflow.wait_condition(lambda: self._record.seq != seen or self._crash is not None)
        if self._crash is not None:
            raise self._crash

    def _show(self) -> None:
        """Tell the Web UI and `list` how things stand; the attribute costs an event, so only when it changed."""
        workflow.set_current_details(views.details(self._record))
        word = views.status_word(self._record)
        if word == self._status or not self._record.search_attributes:
            return
        self._status = word
        since = WAITING_SINCE.value_set(workflow.now()) if word == "waiting" else WAITING_SINCE.value_unset()
        workflow.upsert_search_attributes([STATUS.value_set(word), since])  # pyright: ignore[reportUnknownMemberType]  the SDK's own type

    def _roll_over(self) -> None:
        start = self._start.model_copy(update={"spec": None, "entries": tuple(self._record.carried())})
        workflow.continue_as_new(
            start,
            task_timeout=TASK_TIMEOUT,
            memo=workflow.memo(),
            # Given anew: one that was unset would be carried over as null, and the SDK can't begin a run with that.
            search_attributes=workflow.info().typed_search_attributes,
        )
