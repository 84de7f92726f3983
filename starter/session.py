"""One session from outside: ask, answer, steer, read."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from temporalio.client import Client

from agent.bodies import ExternalExecutionResultEvent, UserConfirmResultEvent
from agent.entries_requests import When
from agent.event import AgentEvent
from agent.hooks import Hooks
from agent.messages import Msg
from agent.permission.rules import PermissionRule
from agent.settings import AgentSpec, ContextConfig
from agent.state import AgentState
from agent.trajectory import TrajectoryEvent
from starter import compacting
from starter.asking import Asking
from starter.following import Following
from starter.history import Entries
from starter.hooks import CLIENT_POINTS, Printing
from starter.kept import Kept
from starter.live_stream import LiveStream
from starter.naming import Naming
from starter.reading import Reading
from starter.replying import events_of, message_of
from starter.rules import SessionRules
from starter.segments import SealedSegments
from starter.sending import Sending
from starter.settings import Settings
from starter.signed import Deciding
from starter.steering import Steering
from starter.stored import Stored
from starter.wire import Given, as_messages, call_id_of, decision_on, plain, start_operation
from workflows.contract import EventPage, PendingCall, ReplyResult, Status

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
            self._asking, lambda: start_operation(settings, session_id, user, spec, self.workflow_id)
        )
        self._deciding = Deciding(self._asking, self._sending, settings, self.workflow_id)
        self._reading = Reading(self._asking, Entries(self._asking, SealedSegments(client, settings)))
        self._settings = settings
        kept = Kept(client, settings, session_id, user, spec.name, self.workflow_id)
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

    async def reply(
        self, inputs: Inputs = None, *, request_id: str | None = None, context: Given = None, when: When = "queue"
    ) -> Msg:
        """Ask, and wait for the message that it comes to.

        That is the final one, or one that says what it waits for: then `finished_reason` is None and
        `metadata["waiting_for"]` names the calls. The same `request_id` sent again gives the same reply.
        A confirm or external-result event goes on with the reply that it is about. `context`, up to 4 kB of JSON, is
        for hooks and tools (`RuntimeContext`). Raises Refused.
        """
        reply_id = await self._ask(inputs, request_id, context, when)
        message = await message_of(reply_id, self.result, self._stream(), just_asked=True)
        return cast(Msg, await self.hooks.after("reply", self, inputs, message))

    async def reply_stream(
        self, inputs: Inputs = None, *, request_id: str | None = None, context: Given = None
    ) -> AsyncIterator[AgentEvent]:
        """The same, event by event as it happens; ends after REPLY_END, or when the reply waits for somebody.

        Events with a `seq` are recorded; the others are told while something is made, and `ReplyFold` puts both into
        one message. `follow` says more.
        """
        seen = await self._reading.last_event()
        reply_id = await self._ask(inputs, request_id, context)
        if (await self._reading.standing(reply_id)).status == "finished":
            seen = 0
        async with aclosing(events_of(reply_id, self._reading.standing, self.follow(seen + 1))) as events:
            async for event in events:
                yield event

    async def submit(
        self,
        messages: str | Msg | Sequence[Msg] | None,
        *,
        request_id: str | None = None,
        context: Given = None,
        when: When = "queue",
    ) -> str:
        """Send a request and return its reply id without waiting; starts the session when there is none.

        `when`: while another reply is being made it waits for its turn (`queue`), is told to the model at that reply's
        next step boundary (`now`), or ends that reply and is next (`interrupt`). A reply id whose request has joined
        another reply stands for that one; its `context` is not used then.
        """
        body: dict[str, Any] = {"messages": as_messages(messages), **({"context": context} if context else {})}
        body["request_id"] = request_id or uuid.uuid4().hex
        if when != "queue":
            body["when"] = when
        answer = await self._sending.update_with_start("submit", body)
        return str(answer["reply_id"])

    async def wait(self, reply_id: str) -> Msg:
        """Until that reply has ended, or waits for somebody."""
        return await message_of(reply_id, self.result, self._stream())

    async def confirm(
        self,
        call: PendingCall | str,
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
        decision = decision_on(call, "allow" if allow else "deny", reason, input, rules)
        answer = await self._deciding.send(call, decision, approver)
        return str(answer.get("approvals", {}).get(call_id_of(call), ""))

    async def external_result(
        self, call: PendingCall | str, output: Any, *, failed: bool = False, partial: bool = False, by: str = ""
    ) -> None:
        """Hand in the result of an external tool; with `partial`, a piece of its text, and more will come.

        Raises Refused, which names the places where it does not fit the tool's schema.
        """
        result = {"id": call_id_of(call), "output": output, "state": "error" if failed else "success"}
        if partial:
            result["partial"] = True
        await self._sending.update("external_result", {"results": [result], "by": by})

    async def settle(
        self, call: PendingCall | str, *, happened: bool, output: str = "", by: str = "", reason: str = ""
    ) -> None:
        """Say whether a call happened whose outcome is unknown; the model hears of it. Raises Refused."""
        body = {"call_id": call_id_of(call), "happened": happened, "output": output, "by": by, "reason": reason}
        await self._sending.update("settle", body)

    async def status(self) -> Status:
        return await self._asking.query("status", Status)

    async def pending(self) -> list[PendingCall]:
        """The calls that wait for a person or an outside system."""
        return await self._asking.query("pending", list[PendingCall])

    async def result(self, reply_id: str) -> ReplyResult:
        return await self._reading.result(reply_id)

    async def compress_context(
        self, context_config: ContextConfig | None = None, *, instructions: str = "", by: str = ""
    ) -> bool:
        """Make the context shorter now, and wait for it. False: it is below its threshold, and stays as it is.

        `context_config` is for this once. Raises TooBig, a RuntimeError, when the system prompt and the tools alone are
        above the threshold; CompressionFailed, when nothing came of it; CompressionPending for a session that waits.
        """
        return await compacting.compact(self._sending.update, self.status, context_config, instructions, by)

    async def state(self) -> AgentState:
        """AgentState with its whole context, as of one moment."""
        return (await self._reading.ledger()).state

    async def settings(self) -> AgentSpec:
        """What a running session was set up with, and what `configure` has changed since."""
        return (await self._reading.ledger()).spec

    def context(self) -> AsyncIterator[Msg]:
        """What the model is shown: the summary, when there is one, and the messages since."""
        return self._reading.context()

    def transcript(self, start: int = 0) -> AsyncIterator[Msg]:
        """All recorded messages from number `start` on: one per model call and per tool result.

        Raises HistoryUnreadable when they were written down where this client can't read.
        """
        return self._reading.transcript(start)

    def trajectory(self) -> AsyncIterator[TrajectoryEvent]:
        """All that happened, as actions, observations, messages and condensations. Raises HistoryUnreadable."""
        return self._reading.trajectory()

    async def events(self, start: int = 1) -> EventPage:
        """Durable events from sequence number `start` on."""
        return await self._reading.events(start)

    async def follow(self, start: int = 1, *, live: bool = True) -> AsyncGenerator[AgentEvent]:
        """Events from `start` on, and those to come; ends only when the caller leaves.

        Recorded ones have a `seq`: each comes once, in order, and a client that comes back goes on from the one after
        its last. Between them, unless `live` is False, comes what is made while it is made: without `seq`, from the
        newest attempt, and replaced by what is recorded of it. CUSTOM events say when that begins anew (`restarted`),
        lacks something (`lost`) or can't be had here (`live_unavailable`).
        """
        async with aclosing(self.following(start, live=live)) as following:
            while True:
                for event in await following.next():
                    yield event

    def following(self, start: int = 1, *, live: bool = True) -> Following:
        """The same in bunches, for whoever has other things to do in between. Close it."""
        printing = Printing(self.hooks, self)
        return Following(self._reading.events, self._stream() if live else None, start, printing)

    def _stream(self) -> LiveStream:
        return LiveStream(self._asking, self._settings, self.workflow_id)

    async def _ask(self, inputs: Inputs, request_id: str | None, context: Given, when: When = "queue") -> str:
        inputs = await self.hooks.before("reply", self, inputs)
        match inputs:
            case UserConfirmResultEvent():
                await self._sending.update("confirm", plain(inputs))
                return inputs.reply_id
            case ExternalExecutionResultEvent():
                await self._sending.update("external_result", plain(inputs))
                return inputs.reply_id
            case _:
                return await self.submit(inputs, request_id=request_id, context=context, when=when)
