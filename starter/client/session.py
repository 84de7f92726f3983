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
from longhaul.starter.client.tree import AnswerEvent, SessionTree
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
from longhaul.starter.connection.query_retries import ASK_SECONDS, insist
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

Inputs = str | Msg | Sequence[Msg] | AnswerEvent | None


class Session(Steering):
    """A handle for one session. Creating the handle starts nothing. Get it from `Longhaul.session`."""

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
        """The session's state: export it, import it, change places of it, copy it, delete it."""
        self.rules = SessionRules(self._asking, self._sending)
        """The session's permission rules: what its agent may do without approval."""
        self.tree = SessionTree(
            self,
            lambda above, child: Session(
                client, settings, child.session_id, above.user, AgentSpec(name=child.agent), child.workflow_id
            ),
            lambda card: of_card(client, settings, card),
            client.list_workflows,
        )
        """The session with all open sub-agents below it."""
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
        """Send a request, wait for its reply, and return the message. Starts the session when there is none.

        The message is the final message of the reply, or says what the reply waits for. If the reply waits,
        `finished_reason` is None and `metadata["waiting_for"]` names the calls; `pending` lists them. They may be calls
        of sub-agents, if nothing moves until these calls are answered. The same `request_id` sent again returns the
        same reply. A confirm or external-result event continues the reply that it answers. It may answer calls of
        sub-agents too, with the reply id of this session or of the call: then it continues this session's reply.
        `context`, up to 4 kB of JSON, is for hooks and tools (`RuntimeContext`). `structured_model` is a pydantic
        model, or a JSON schema of an object: the agent then answers with a value that fits it. The message has the
        value in `metadata` (and `structured_output`). Raises Refused.
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
        """Send a request and yield its reply, event by event, as it happens. Ends after REPLY_END, or when the reply
        waits for somebody.

        If the reply waits, the last events are the question; a question that was asked before comes again without a
        `seq`. If sub-agents wait and nothing moves without an answer, the last event is CUSTOM `waits_below`, and
        `pending` lists the calls. Join the deltas of a block to get its text, exactly once. Live events have no `seq`.
        A recorded delta leaves out text that was sent live, and contains text that was not. A CUSTOM event says when
        live text no longer counts. `restarted`: the model writes the text again. `withdrawn`: the recorded text
        differs. `live` False: recorded events only. For a request that was sent before, the events come from its
        beginning. `ReplyReducer` builds a message from all events.
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
        """Send a request and return its reply id without waiting. Starts the session when there is none.

        `when` says what happens while another reply is under way. `queue`: the request waits for its turn. `now`: the
        model reads the request at that reply's next step boundary. `interrupt`: that reply ends, and the request is
        next. If a request has joined another reply, its reply id stands for that reply, and its `context` is not used.
        `wait` returns the message.
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
        """Send a request as `submit` does, but only if no reply is under way and no request waits. Otherwise sends
        nothing and returns None."""
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
        """Wait until that reply has ended or waits for somebody, and return the message as `reply` does."""
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
        """Approve or deny one call. `rules=True` also adds the rules that Longhaul suggested with the call.

        If you pass a PendingCall and the call has changed since you read it, the session refuses the decision. Returns
        `1 of 2` if another person must approve the call too, else an empty string. Raises Refused.
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
        """Approve or deny several calls in one operation. If the session refuses one of the decisions, none counts.
        Returns, by call id, what `confirm` returns, for calls that another person must approve too. Raises Refused."""
        decisions = [decision_on(call, "allow" if allow else "deny", reason, None, rules) for call in calls]
        return await self.decide(calls, decisions, approver)

    async def decide(
        self, calls: Sequence[PendingCall | str], decisions: Sequence[dict[str, Any]], approver: str = ""
    ) -> dict[str, str]:
        """Approve or deny several calls, with a decision for each call, as in the body of `confirm`. Longhaul sends one
        operation for each sub-agent whose calls are among them."""
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
        """Hand in the result of an external tool. With `partial`, `output` is a delta of the result's text, and more
        will follow. You may also name a call of a sub-agent by its id.

        Raises Refused, which names each place where the result does not fit the tool's schema.
        """
        result = {"id": call_id_of(call_id), "output": output, "state": "error" if failed else "success"}
        if partial:
            result["partial"] = True
        await self._update_where_it_waits(call_id, "external_result", {"results": [result], "by": by})

    async def resolve(
        self, call_id: PendingCall | str, *, happened: bool, output: str = "", by: str = "", reason: str = ""
    ) -> None:
        """Say whether a call of unknown outcome happened. The model reads it. You may also name a sub-agent's call by
        its id. Raises Refused."""
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
        """Links to other pages about the session, by what each page shows, if the settings say where those pages
        are."""
        naming, settings = Naming(self._settings), self._settings
        values = {"agent": self.spec.name, "session": self.id, "user": self.user or "", "workflow_id": self.workflow_id}
        conversation = self.workflow_id if naming.is_opaque else self.id
        namespace = self._asking.client.namespace
        return links(
            settings.web_ui, settings.trace_url, {**values, "conversation": conversation, "namespace": namespace}
        )

    async def has_started(self) -> bool:
        """Whether the server knows the session, open or closed."""
        return await insist(self._asking.was_there)

    async def end(self) -> str:
        """How the newest run ended: `completed` if the session closed by itself, `terminated`, `canceled`, …. Empty
        while it runs, or if the server does not say."""
        return await self._asking.end()

    async def status(self) -> Status:
        status = await self._asking.query("status", Status)
        return status if status.outage is None else await with_newest_try(self._asking, status)

    async def last_event(self) -> int:
        """Number of the newest recorded event; 0 if there is none. To get only later events, `follow` from the next
        number."""
        return await self._reading.last_event()

    async def pending(self) -> list[PendingCall]:
        """Calls that wait for a person or an external system, in the session and in all open sub-agents below it. For a
        call of a sub-agent, `at` says where it waits and `path` whose it is. Answer all of them with this session's
        `confirm`, `external_result` and `resolve`."""
        return [each.listed for each in await self.tree.pending()]

    async def own_pending(self) -> list[PendingCall]:
        """The calls that wait in this session, without those of sub-agents."""
        return await self._asking.query("pending", list[PendingCall])

    async def pending_here(self) -> PendingHere:
        """The calls that wait in this session, its status, and its sub-agents, read with one query."""
        return await self._asking.query("pending_here", PendingHere)

    async def tasks(self) -> tuple[Task, ...]:
        """The task list that the model keeps."""
        told = await self._asking.query("state", dict[str, Any])
        return TasksContext.model_validate(told.get("tasks_context", {})).tasks

    async def tools(self) -> tuple[ToolDescriptor, ...]:
        """The tools that the model may call, as of the newest prepared reply. Empty before the first reply."""
        return (await self._asking.query("spec", SpecTexts)).tools

    async def result(self, reply_id: str) -> ReplyResult:
        return await self._reading.result(reply_id)

    async def compress_context(
        self, context_config: ContextConfig | None = None, *, instructions: str = "", by: str = ""
    ) -> bool:
        """Shorten the context now, and wait until it is done. Returns False if the context is below its threshold; it
        stays as it is.

        `context_config` counts for this call only. Raises TooBig, a RuntimeError, if the system prompt and the tools
        alone exceed the threshold. Raises CompressionFailed if the compression failed, and CompressionPending if the
        session waits for somebody.
        """
        return await session_requests.compact(
            self._sending.update, self.status, self._moves(), context_config, instructions, by
        )

    async def stop_background(self, call_id: str | None = None, *, by: str = "") -> dict[str, str]:
        """Stop the background command or sub-agent that this call started. Without `call_id`, stop all of them.

        Waits up to 15 seconds. Returns, by call id, how each ended. A command: `stopped`, or `unknown` if its worker is
        gone. A sub-agent: `interrupted`, or how its task had ended before. Empty if the end is not known yet. A
        repeated call returns the same. A closed session is opened again for it. Raises Refused if nothing runs in the
        background for that call, and then names the calls for which something does. Raises NoSession.
        """
        check_given("call_id", call_id)
        body = {"by": by} if call_id is None else {"call_id": call_id, "by": by}
        answer = await self.stored.open_or_not(lambda: self._sending.update("stop_background", body))
        return await session_requests.ends_of(answer["call_ids"], self.status, self._moves())

    async def state(self) -> AgentState:
        """The session's AgentState with its whole context, as of one moment."""
        return (await self._reading.session()).state

    async def rescue(self, *, by: str = "") -> Rescued:
        """End a session whose workflow tasks keep failing, and start it again from its last checkpoint. The session is
        then quarantined until you call `resume`. Raises Refused if the session is well."""
        return await rescue(self._asking, self._sending, by)

    async def settings(self) -> AgentSpec:
        """The settings that the running session started with, and all changes by `configure` since."""
        return (await self._reading.session()).spec

    def context(self) -> AsyncIterator[Msg]:
        """The messages that the model reads: the summary, if there is one, and all messages since."""
        return self._reading.context()

    def transcript(self, start: int = 0) -> AsyncIterator[Msg]:
        """All recorded messages from number `start` on: one for each model call and each tool result.

        Raises HistoryUnreadable if the messages are stored where this client can't read.
        """
        return self._reading.transcript(start)

    def trajectory(self, start: int = 1) -> AsyncIterator[TrajectoryEvent]:
        """Everything that happened from entry `start` on, as actions, observations, messages and condensations. With a
        later `start` Longhaul reads less, but a condensation may not say which messages it dropped. Raises
        HistoryUnreadable."""
        return self._reading.trajectory(start)

    async def run_spans(self, start: int = 1) -> list[Span]:
        """Everything that took time from entry `start` on, for a timeline of the session: replies, calls, waits and
        sub-agents. Raises HistoryUnreadable."""
        return await self._reading.run_spans(start)

    async def events(self, start: int = 1) -> EventPage:
        """Recorded events from sequence number `start` on."""
        return await self._reading.events(start)

    async def follow(self, start: int = 1, *, live: bool = True) -> AsyncGenerator[AgentEvent]:
        """Yield events from `start` on, and new events as they happen. Ends only when the caller stops reading.

        Each recorded event has a `seq` and comes once, in order. To continue later, start at the number after the last
        `seq` that you read. Unless `live` is False, live events come in between. They have no `seq`, belong to the
        newest attempt, and are replaced by the recorded events. A CUSTOM event says when live text starts again
        (`restarted`), has a gap (`lost`), or is not available here (`live_unavailable`).
        """
        async with aclosing(self.following(start, live=live)) as following:
            while True:
                for event in await following.next():
                    yield event

    def following(self, start: int = 1, *, live: bool = True, shown: bool = True) -> Following:
        """The events of `follow` in batches, for a caller that has other work in between. Close it afterwards. `shown`
        False: the events are not shown to anybody, so no `print` hook runs."""
        printing = Printing(self.hooks, self) if shown else None
        return Following(self._reading.events, self._stream() if live else None, start, printing, self._moves())

    def until(self, reply_id: str, start: int = 1, *, live: bool = True) -> Until:
        """The events of `follow` until that reply has ended or waits for somebody. Anybody may have sent the
        request. If the reply waits, its questions come last, without a `seq` if they were asked before `start`. If its
        sub-agents wait, the last event says so, as in `reply_stream`."""
        questions = Questions(reply_id, self._reading.standing, self.own_pending)
        questions.resume()
        return Until(self.following(start, live=live), questions, self.tree.standing_still)

    def _moves(self, *, for_rest: bool = False) -> Moves:
        return Moves(lambda: glance(self._asking), ASK_SECONDS, for_rest=for_rest)

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
                return await self._answer("confirm", inputs)
            case ExternalExecutionResultEvent():
                return await self._answer("external_result", inputs)
            case _:
                return await self._submit(inputs, request_id, context, when, structured_model)

    async def _answer(self, name: str, event: AnswerEvent) -> str:
        """Id of the reply here that goes on with it. As for `external_result`, sub-agents are asked for the calls when
        the session itself has refused the event."""
        try:
            await self._sending.update(name, plain(event))
        except Refused:
            parts, reply_id = await self.tree.parts_of(event)
            if not parts:
                raise
            for place, part in parts:
                await place._sending.update(name, plain(part))  # noqa: SLF001  a session too
            return reply_id
        return event.reply_id


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
