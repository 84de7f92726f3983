"""One session from outside: ask, answer, steer, read."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, cast

from temporalio.client import Client

from longhaul.agent.entries import When
from longhaul.agent.operations.bodies import ExternalExecutionResultEvent, UserConfirmResultEvent
from longhaul.agent.plain.hooks import Hooks
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec, ContextConfig
from longhaul.agent.values.tasks import Task, TasksContext
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.run_spans import Span
from longhaul.agent.views.trajectory import TrajectoryEvent
from longhaul.starter.client import session_requests
from longhaul.starter.client.cards import SessionCard
from longhaul.starter.client.hooks import CLIENT_POINTS, Printing
from longhaul.starter.client.reading.event_reader import Following, Questions, Until, events_of, message_of
from longhaul.starter.client.reading.glance import Moves, glance, with_newest_try
from longhaul.starter.client.reading.journal import Entries, SealedSegments, SessionReader
from longhaul.starter.client.reading.live_stream import LiveStream
from longhaul.starter.client.reading.queries import Asking
from longhaul.starter.client.rescue import Rescued, rescue
from longhaul.starter.client.session_requests import Steering
from longhaul.starter.client.states.session_copies import Kept
from longhaul.starter.client.states.state_operations import Stored
from longhaul.starter.client.tree import SessionTree
from longhaul.starter.client.updates import Deciding, Sending
from longhaul.starter.client.user_rules import SessionRules
from longhaul.starter.client.wire import (
    Asked,
    Given,
    Refused,
    as_messages,
    asked_schema,
    call_id_of,
    check_given,
    decision_on,
    plain,
    start_operation,
)
from longhaul.starter.connection.connect import Naming
from longhaul.starter.connection.query_retries import ask_seconds, insist
from longhaul.starter.links import links
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import (
    EventPage,
    PendingCall,
    PendingHere,
    ReplyResult,
    SpecTexts,
    Status,
    SubAgentPlace,
)

Inputs = str | Msg | Sequence[Msg] | UserConfirmResultEvent | ExternalExecutionResultEvent | None


class Session(Steering):
    """A handle; making one starts nothing. Get it from `Longhaul.session`."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        session_id: str,
        user: str | None,
        spec: AgentSpec,
        known_workflow_id: str | None = None,
    ) -> None:
        self.hooks = Hooks(CLIENT_POINTS)
        self.id = session_id
        self.user = user
        self.spec = spec
        self.workflow_id = known_workflow_id or Naming(settings).workflow_id(spec.name, user, session_id)
        self._asking = Asking(client, self.workflow_id, named := f"session {session_id!r} of agent {spec.name!r}")
        self._sending = Sending(
            self._asking, lambda title: start_operation(settings, session_id, user, spec, self.workflow_id, title)
        )
        self._deciding = Deciding(self._asking, self._sending, settings, self.workflow_id)
        self._reading = SessionReader(self._asking, Entries(self._asking, SealedSegments(client, settings)))
        self._settings = settings
        kept = Kept(client, settings, session_id, user, spec.name, self.workflow_id)
        self._asking.recall = kept.past
        self.stored = Stored(
            named,
            self._asking,
            self._sending,
            self._reading,
            kept,
            lambda name, other: Session(client, settings, name, user, other),
        )
        """Its state taken out, put in, changed in places, copied, deleted."""
        self.rules = SessionRules(self._asking, self._sending)
        """What it may do unasked, rule by rule."""
        self.tree = SessionTree(
            self,
            lambda above, child: Session(
                client, settings, child.session_id, above.user, AgentSpec(name=child.agent), child.workflow_id
            ),
            lambda card: of_card(client, settings, card),
            client.list_workflows,
        )
        """With all sub-agents below it that are open."""
        places = dict[str, Session]()
        self._sub_agent: Callable[[SubAgentPlace], Session] = lambda at: places.setdefault(
            at.workflow_id,
            Session(client, settings, at.session_id, user, AgentSpec(name=at.agent), at.workflow_id),
        )

    async def reply(
        self,
        inputs: Inputs = None,
        *,
        request_id: str | None = None,
        context: Given = None,
        when: When = "queue",
        structured_model: Asked = None,
    ) -> Msg:
        """Ask, and wait for the message that it comes to.

        That is the final one, or one that says what it waits for: then `finished_reason` is None and
        `metadata["waiting_for"]` names the calls, which `pending` lists. They may be calls of sub-agents, where nothing
        moves without an answer to them. The same `request_id` sent again gives the same reply.
        A confirm or external-result event goes on with the reply that it is about. `context`, up to 4 kB of JSON, is
        for hooks and tools (`RuntimeContext`). With `structured_model`, a pydantic model or a JSON schema of an object,
        the answer is a value that fits it: `metadata` (and `structured_output`) of the message. Raises Refused.
        """
        inputs = await self._before_reply(inputs)
        reply_id = await self._ask(inputs, request_id, context, when, structured_model)
        answers = isinstance(inputs, UserConfirmResultEvent | ExternalExecutionResultEvent)
        new = when == "queue" and request_id is None and not answers
        message = await self._message_of(reply_id, just_asked=new)
        return await self._after_reply(inputs, message)

    async def reply_stream(
        self,
        inputs: Inputs = None,
        *,
        request_id: str | None = None,
        context: Given = None,
        live: bool = True,
        structured_model: Asked = None,
    ) -> AsyncGenerator[AgentEvent]:
        """The same, event by event as it happens; ends after REPLY_END, or when the reply waits for somebody: then with
        the question, told again without a `seq` where it was asked before. Where sub-agents wait, and nothing moves
        without an answer to them, the last event is CUSTOM `waits_below`, and `pending` lists the calls.

        Joined, the deltas of a block are its text, exactly once: what was told live (events without a `seq`) is left
        out of the recorded delta, and what was not told is in it. CUSTOM events say where what was told does not count,
        since it is made again (`restarted`) or is not what is recorded (`withdrawn`). `live` False: recorded events
        alone. A request that was sent before is told from its beginning. `ReplyReducer` makes a message of all that.
        """
        inputs = await self._before_reply(inputs)
        seen = await self._reading.last_event()
        reply_id = await self._ask(inputs, request_id, context, structured_model=structured_model)
        questions = Questions(reply_id, self._reading.standing, self.own_pending)
        if isinstance(inputs, UserConfirmResultEvent | ExternalExecutionResultEvent):
            questions.resume()
        elif request_id is not None and not await self._begins_after(seen, reply_id):
            seen = 0
            questions.resume()
        until = Until(self.following(seen + 1, live=live), questions, self.tree.standing_still)
        async with aclosing(events_of(reply_id, until, once=live)) as events:
            async for event in events:
                yield event
        if self.hooks.stand_at("reply") and (message := (await self.result(reply_id)).message) is not None:
            await self._after_reply(inputs, message)

    async def _begins_after(self, seen: int, reply_id: str) -> bool:
        """Whether all events of this reply come behind that number; it may be queued still."""
        if (await self._reading.standing(reply_id)).status == "queued":
            return True
        while (page := await self._reading.events(seen + 1)).events:
            if any(event.reply_id == reply_id and event.type == "REPLY_START" for event in page.events):
                return True
            seen = page.events[-1].seq
        return False

    async def submit(
        self,
        messages: str | Msg | Sequence[Msg] | None,
        *,
        request_id: str | None = None,
        context: Given = None,
        when: When = "queue",
        structured_model: Asked = None,
    ) -> str:
        """Send a request and return its reply id without waiting; starts the session when there is none.

        `when`: while another reply is being made it waits for its turn (`queue`), is told to the model at that reply's
        next step boundary (`now`), or ends that reply and is next (`interrupt`). A reply id whose request has joined
        another reply stands for that one; its `context` is not used then. `wait` gives its message.
        """
        messages = cast(str | Msg | Sequence[Msg] | None, await self.hooks.before("reply", self, messages))
        return await self._submit(messages, request_id, context, when, structured_model)

    async def submit_if_idle(
        self,
        messages: str | Msg | Sequence[Msg],
        *,
        request_id: str | None = None,
        context: Given = None,
        structured_model: Asked = None,
    ) -> str | None:
        """The same where nothing is being made and no request waits; else None, and nothing is asked for."""
        given = cast(str | Msg | Sequence[Msg], await self.hooks.before("reply", self, messages))
        body = {**_submit_body(given, request_id, context, structured_model), "unless_busy": True}
        answer = await self._sending.update_with_start("submit", body)
        return None if answer.get("busy") else str(answer["reply_id"])

    async def _submit(
        self,
        messages: str | Msg | Sequence[Msg] | None,
        request_id: str | None,
        context: Given,
        when: When,
        structured_model: Asked,
    ) -> str:
        body = _submit_body(messages, request_id, context, structured_model)
        if when != "queue":
            body["when"] = when
        answer = await self._sending.update_with_start("submit", body)
        return str(answer["reply_id"])

    async def wait(self, reply_id: str) -> Msg:
        """Until that reply has ended, or waits for somebody, as `reply` does."""
        return await self._after_reply(None, await self._message_of(reply_id))

    async def _message_of(self, reply_id: str, *, just_asked: bool = False) -> Msg:
        moves = self._moves(for_rest=True)
        return await message_of(
            reply_id, self.result, self._stream(), moves, self.tree.standing_still, just_asked=just_asked
        )

    async def _before_reply(self, inputs: Inputs) -> Inputs:
        return cast(Inputs, await self.hooks.before("reply", self, inputs))

    async def _after_reply(self, inputs: Inputs, message: Msg) -> Msg:
        return cast(Msg, await self.hooks.after("reply", self, inputs, message))

    async def confirm(
        self,
        call_id: PendingCall | str,
        *,
        allow: bool,
        reason: str = "",
        input: dict[str, Any] | str | None = None,  # noqa: A002  the field's name on the wire
        rules: bool | Sequence[PermissionRule] = (),
        approver: str = "",
    ) -> str:
        """Decide on one call. `rules=True` takes the suggested rules along. Raises Refused.

        A PendingCall stands for what was seen: when that has changed since, the decision is refused. Returns `1 of 2`
        for an approval that another person's has to follow, else nothing.
        """
        decision = decision_on(call_id, "allow" if allow else "deny", reason, input, rules)
        return (await self.decide([call_id], [decision], approver)).get(call_id_of(call_id), "")

    async def confirm_all(
        self,
        calls: Sequence[PendingCall | str],
        *,
        allow: bool,
        reason: str = "",
        rules: bool = False,
        approver: str = "",
    ) -> dict[str, str]:
        """Decide alike on several calls, in one operation: on all, or, where one of them can't be taken, on none.
        Raises Refused. Returns by call id what `confirm` returns, of the approvals that another person's has to
        follow."""
        decisions = [decision_on(call, "allow" if allow else "deny", reason, None, rules) for call in calls]
        return await self.decide(calls, decisions, approver)

    async def decide(
        self, calls: Sequence[PendingCall | str], decisions: Sequence[dict[str, Any]], approver: str = ""
    ) -> dict[str, str]:
        """The same, with a decision for each call as the body of `confirm` has it. Calls of several sub-agents are one
        operation for each."""
        told, places = dict[str, str](), [self._place(call) for call in calls]
        for place in dict.fromkeys(places):
            pairs = zip(calls, decisions, places, strict=True)
            (whose, said) = zip(*((call, one) for call, one, where in pairs if where is place), strict=True)
            if place is not self:
                told |= await place.decide(whose, said, approver)
                continue
            answer = await self._deciding.send(whose, said, approver)
            told |= {str(call_id): str(count) for call_id, count in answer.get("approvals", {}).items()}
        return told

    def _place(self, call: PendingCall | str) -> "Session":
        """Where it waits: here, or in the sub-agent's session that is said with it."""
        at = call.at if isinstance(call, PendingCall) else None
        return self if at is None or at.workflow_id == self.workflow_id else self._sub_agent(at)

    async def external_result(
        self, call_id: PendingCall | str, output: Any, *, failed: bool = False, partial: bool = False, by: str = ""
    ) -> None:
        """Hand in the result of an external tool; with `partial`, a piece of its text, and more will come. A call of a
        sub-agent may be named by its id too.

        Raises Refused, which names the places where it does not fit the tool's schema.
        """
        result = {"id": call_id_of(call_id), "output": output, "state": "error" if failed else "success"}
        if partial:
            result["partial"] = True
        await self._update_where_it_waits(call_id, "external_result", {"results": [result], "by": by})

    async def resolve(
        self, call_id: PendingCall | str, *, happened: bool, output: str = "", by: str = "", reason: str = ""
    ) -> None:
        """Say whether a call happened whose outcome is unknown; the model hears of it. A call of a sub-agent may be
        named by its id too. Raises Refused."""
        body = {"call_id": call_id_of(call_id), "happened": happened, "output": output, "by": by, "reason": reason}
        await self._update_where_it_waits(call_id, "resolve", body)

    async def _update_where_it_waits(self, call_id: PendingCall | str, name: str, body: dict[str, Any]) -> None:
        """Of a call that has only its id the sub-agents are asked when the session itself has refused it."""
        if isinstance(call_id, PendingCall):
            await self._place(call_id)._sending.update(name, body)  # noqa: SLF001  a session too
            return
        try:
            await self._sending.update(name, body)
        except Refused:
            below = [each for each in await self.tree.pending() if each.above and each.call.call_id == call_id]
            if not below:
                raise
            if len(below) > 1:
                places = ", ".join(each.session.id for each in below)
                told = f"call_id: {call_id!r} waits in several sessions: {places}; answer it in one of these"
                raise Refused(told) from None
            await below[0].session._sending.update(name, body)  # noqa: SLF001  a session too

    @property
    def links(self) -> dict[str, str]:
        """Where else it can be seen, by what is found there; as far as settings say where."""
        naming, settings = Naming(self._settings), self._settings
        values = {"agent": self.spec.name, "session": self.id, "user": self.user or "", "workflow_id": self.workflow_id}
        conversation = self.workflow_id if naming.is_opaque else self.id
        namespace = self._asking.client.namespace
        return links(
            settings.web_ui, settings.trace_url, {**values, "conversation": conversation, "namespace": namespace}
        )

    async def has_started(self) -> bool:
        """Whether the server knows of it, open or closed."""
        return await insist(self._asking.was_there)

    async def end(self) -> str:
        """How its newest run has ended: `completed` where it has closed of itself, `terminated`, `canceled`, …; empty
        while it runs, or where the server does not say."""
        return await self._asking.end()

    async def status(self) -> Status:
        status = await self._asking.query("status", Status)
        return status if status.outage is None else await with_newest_try(self._asking, status)

    async def last_event(self) -> int:
        """Number of the newest recorded event, after which `follow` tells what is new; 0: there is none."""
        return await self._reading.last_event()

    async def pending(self) -> list[PendingCall]:
        """The calls that wait for a person or an outside system, in the session and in all sub-agents below it that
        are open: of those `at` says where, and `path` whose. `confirm`, `external_result` and `resolve` here answer
        them there."""
        return [each.listed for each in await self.tree.pending()]

    async def own_pending(self) -> list[PendingCall]:
        """The same without sub-agents."""
        return await self._asking.query("pending", list[PendingCall])

    async def pending_here(self) -> PendingHere:
        """The same with how it stands and its sub-agents, in one question."""
        return await self._asking.query("pending_here", PendingHere)

    async def tasks(self) -> tuple[Task, ...]:
        """The list that the model keeps."""
        told = await self._asking.query("state", dict[str, Any])
        return TasksContext.model_validate(told.get("tasks_context", {})).tasks

    async def tools(self) -> tuple[ToolDescriptor, ...]:
        """What the model may call, as of the newest reply that was prepared; nothing before the first."""
        return (await self._asking.query("spec", SpecTexts)).tools

    async def result(self, reply_id: str) -> ReplyResult:
        return await self._reading.result(reply_id)

    async def compress_context(
        self, context_config: ContextConfig | None = None, *, instructions: str = "", by: str = ""
    ) -> bool:
        """Make the context shorter now, and wait for it. False: it is below its threshold, and stays as it is.

        `context_config` is for this once. Raises TooBig, a RuntimeError, when the system prompt and the tools alone are
        above the threshold; CompressionFailed, when nothing came of it; CompressionPending for a session that waits.
        """
        return await session_requests.compact(
            self._sending.update, self.status, self._moves(), context_config, instructions, by
        )

    async def stop_background(self, call_id: str | None = None, *, by: str = "") -> dict[str, str]:
        """Stop the command or the sub-agent in the background that this call has started; without one, all of them.

        Waits up to fifteen seconds for their ends. Returns by call id how each has ended: of a command `stopped`, or
        `unknown` where its worker is gone; of a sub-agent `interrupted`, or as its task had ended before; empty while
        nobody has heard of that. Sent again it answers the same. A session that is over is opened again for it. Raises
        Refused for a call that nothing works for, and names those that something does; NoSession.
        """
        check_given("call_id", call_id)
        body = {"by": by} if call_id is None else {"call_id": call_id, "by": by}
        answer = await self.stored.open_or_not(lambda: self._sending.update("stop_background", body))
        return await session_requests.ends_of(answer["call_ids"], self.status, self._moves())

    async def state(self) -> AgentState:
        """AgentState with its whole context, as of one moment."""
        return (await self._reading.session()).state

    async def rescue(self, *, by: str = "") -> Rescued:
        """End a session whose tasks fail for good, and begin it again from its last checkpoint; it is held then, and
        `resume` lets it go on. Raises Refused for one that is well."""
        return await rescue(self._asking, self._sending, by)

    async def settings(self) -> AgentSpec:
        """What a running session was set up with, and what `configure` has changed since."""
        return (await self._reading.session()).spec

    def context(self) -> AsyncIterator[Msg]:
        """What the model is shown: the summary, when there is one, and the messages since."""
        return self._reading.context()

    def transcript(self, start: int = 0) -> AsyncIterator[Msg]:
        """All recorded messages from number `start` on: one per model call and per tool result.

        Raises HistoryUnreadable when they were written down where this client can't read.
        """
        return self._reading.transcript(start)

    def trajectory(self, start: int = 1) -> AsyncIterator[TrajectoryEvent]:
        """All that happened, as actions, observations, messages and condensations, from entry `start` on. A later
        start reads less; then a condensation may not say what it has forgotten. Raises HistoryUnreadable."""
        return self._reading.trajectory(start)

    async def run_spans(self, start: int = 1) -> list[Span]:
        """What took time, for a picture of its run: replies, calls, waits and sub-agents, from entry `start` on. Raises
        HistoryUnreadable."""
        return await self._reading.run_spans(start)

    async def events(self, start: int = 1) -> EventPage:
        """Durable events from sequence number `start` on."""
        return await self._reading.events(start)

    async def follow(self, start: int = 1, *, live: bool = True) -> AsyncGenerator[AgentEvent]:
        """Events from `start` on, and those to come; ends only when the caller leaves.

        Recorded ones have a `seq`: each comes once, in order, and a client that comes back goes on from the one after
        its last. Between them, unless `live` is False, comes what is made while it is made: without `seq`, from the
        newest attempt, and replaced by what is recorded of it. CUSTOM events say when that begins again (`restarted`),
        lacks something (`lost`) or can't be had here (`live_unavailable`).
        """
        async with aclosing(self.following(start, live=live)) as following:
            while True:
                for event in await following.next():
                    yield event

    def following(self, start: int = 1, *, live: bool = True, shown: bool = True) -> Following:
        """The same in bunches, for whoever has other things to do in between. Close it. `shown` False: nobody is shown
        these, so that no hook of `print` hears of them."""
        printing = Printing(self.hooks, self) if shown else None
        return Following(self._reading.events, self._stream() if live else None, start, printing, self._moves())

    def until(self, reply_id: str, start: int = 1, *, live: bool = True) -> Until:
        """The same until that reply has ended or waits for somebody, whenever it was asked for: then its questions are
        told last, without a `seq` where they were told before `start`; or, as the end of `reply_stream`, what its
        sub-agents wait for."""
        questions = Questions(reply_id, self._reading.standing, self.own_pending)
        questions.resume()
        return Until(self.following(start, live=live), questions, self.tree.standing_still)

    def _moves(self, *, for_rest: bool = False) -> Moves:
        seconds = ask_seconds(self._settings, self._asking.client)
        return Moves(lambda: glance(self._asking), seconds, for_rest=for_rest)

    def _stream(self) -> LiveStream:
        return LiveStream(self._asking, self._settings, self.workflow_id)

    async def _ask(
        self,
        inputs: Inputs,
        request_id: str | None,
        context: Given,
        when: When = "queue",
        structured_model: Asked = None,
    ) -> str:
        if structured_model is not None and isinstance(inputs, UserConfirmResultEvent | ExternalExecutionResultEvent):
            raise Refused("structured_model: an answer continues an earlier request; ask for a form in that request")
        match inputs:
            case UserConfirmResultEvent():
                await self._sending.update("confirm", plain(inputs))
                return inputs.reply_id
            case ExternalExecutionResultEvent():
                await self._sending.update("external_result", plain(inputs))
                return inputs.reply_id
            case _:
                return await self._submit(inputs, request_id, context, when, structured_model)


def _submit_body(
    messages: str | Msg | Sequence[Msg] | None, request_id: str | None, context: Given, structured_model: Asked
) -> dict[str, Any]:
    """The body of `submit`."""
    body: dict[str, Any] = {"messages": as_messages(messages), **({"context": context} if context else {})}
    body["request_id"] = request_id or uuid.uuid4().hex
    if structured_model is not None:
        body["structured_schema"] = asked_schema(structured_model)
    return body


def of_card(client: Client, settings: Settings, card: SessionCard) -> Session:
    """The session behind a row of the server's index."""
    spec = AgentSpec(name=card.agent[:200] or "unknown")
    return Session(client, settings, card.session_id, card.user_id, spec, card.workflow_id)
