"""One session from outside: ask, answer, steer, read."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode

from agent.bodies import ExternalExecutionResultEvent, UserConfirmResultEvent
from agent.event import AgentEvent
from agent.ids import workflow_id
from agent.messages import Msg
from agent.permission.rules import PermissionRule
from agent.settings import AgentSpec
from agent.state import AgentState
from starter.patience import AT_ONCE, Pauses, insist, send_again
from starter.settings import Settings
from starter.wire import as_messages, call_id_of, check_size, plain, refusal_of, start_operation
from workflows.contract import EventPage, MessagePage, PendingCall, ReplyResult, Status, TranscriptPage

Inputs = str | Msg | Sequence[Msg] | UserConfirmResultEvent | ExternalExecutionResultEvent | None
Answer = TypeVar("Answer")
QUERY_TIMEOUT = timedelta(seconds=5)


class NoSession(Exception):
    """Nobody has sent this session a message yet, or it is closed."""


class Session:
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
        self.id = session_id
        self.user = user
        self.spec = spec
        self.workflow_id = known_workflow_id or workflow_id(spec.name, user, session_id)
        self._client = client
        self._sending = asyncio.Semaphore(AT_ONCE)
        self._settings = settings

    async def reply(self, inputs: Inputs = None, *, request_id: str | None = None) -> Msg:
        """Ask, and wait for the message that it comes to.

        That is the final one, or one that says what it waits for: then `finished_reason` is None and
        `metadata["waiting_for"]` names the calls. The same `request_id` sent again gives the same reply.
        A confirm or external-result event goes on with the reply that it is about. Raises Refused.
        """
        return await self.wait(await self._ask(inputs, request_id))

    async def reply_stream(self, inputs: Inputs = None, *, request_id: str | None = None) -> AsyncIterator[AgentEvent]:
        """The same, event by event; ends after REPLY_END, or when the reply waits for somebody."""
        seen = await self._last_event()
        reply_id = await self._ask(inputs, request_id)
        if (await self.result(reply_id)).status == "finished":
            seen = 0
        async for event in self.follow(seen + 1):
            if event.reply_id == reply_id:
                yield event
                if event.type == "REPLY_END":
                    return
            if event.type.startswith("REQUIRE_") and (await self.result(reply_id)).status == "waiting":
                return

    async def submit(self, messages: str | Msg | Sequence[Msg] | None, *, request_id: str | None = None) -> str:
        """Queue a request and return its reply id without waiting; starts the session when there is none."""
        body = {"request_id": request_id or uuid.uuid4().hex, "messages": as_messages(messages)}
        answer = await self._update_with_start("submit", body)
        return str(answer["reply_id"])

    async def wait(self, reply_id: str) -> Msg:
        """Until that reply has ended, or waits for somebody."""
        pauses = Pauses()
        while True:
            found = await self.result(reply_id)
            if found.message is not None and found.status in ("finished", "waiting"):
                return found.message if found.complete else await self._whole(found.message)
            if found.status == "unknown":
                raise NoSession(f"session {self.id!r} knows no reply {reply_id!r}")
            await pauses.rest()

    async def observe(self, messages: str | Msg | Sequence[Msg]) -> None:
        """Add to the context without asking for a reply."""
        await self._update_with_start("observe", {"messages": as_messages(messages)})

    async def configure(self, **settings: Any) -> None:
        """Change `mode`, add `rules`, set `max_iters` or `model`; `by` says who."""
        await self._update_with_start("configure", {key: plain(value) for key, value in settings.items()})

    async def confirm(
        self,
        call: PendingCall | str,
        *,
        allow: bool,
        reason: str = "",
        input: dict[str, Any] | str | None = None,  # noqa: A002  the field's name on the wire
        rules: bool | Sequence[PermissionRule] = (),
        approver: str = "",
    ) -> None:
        """Decide on one call. `rules=True` takes the suggested rules along. Raises Refused.

        A PendingCall stands for what was seen: when that has changed since, the decision is refused.
        """
        word = "allow" if allow else "deny"
        decision: dict[str, Any] = {"call_id": call_id_of(call), "decision": word, "reason": reason}
        if isinstance(call, PendingCall) and call.digest:
            decision["digest"] = call.digest
        if input is not None:
            decision["input"] = input
        if rules:
            decision["rules"] = rules if isinstance(rules, bool) else [plain(rule) for rule in rules]
        await self._update("confirm", {"decisions": [decision], "approver": approver})

    async def external_result(
        self, call: PendingCall | str, output: Any, *, failed: bool = False, by: str = ""
    ) -> None:
        """Hand in the result of an external tool. Raises Refused."""
        result = {"id": call_id_of(call), "output": output, "state": "error" if failed else "success"}
        await self._update("external_result", {"results": [result], "by": by})

    async def interrupt(self, message: str | Msg | None = None, *, reply_id: str | None = None) -> str:
        """End the reply that is being made, or just the named one; a message becomes the next request.

        Returns the reply's id. Raises Refused when no such reply is being made.
        """
        body: dict[str, Any] = {} if message is None else {"message": as_messages(message)}
        if reply_id is not None:
            body["reply_id"] = reply_id
        return str((await self._update("interrupt", body))["interrupted"])

    async def status(self) -> Status:
        return await self._query("status", Status)

    async def pending(self) -> list[PendingCall]:
        """The calls that wait for a person or an outside system."""
        return await self._query("pending", list[PendingCall])

    async def result(self, reply_id: str) -> ReplyResult:
        return await self._query("result", ReplyResult, reply_id)

    async def state(self) -> AgentState:
        """AgentState with its whole context."""
        fields = await self._query("state", dict[str, Any])
        context = [message async for message in self.context()]
        return AgentState.model_validate({**fields, "context": context[bool(fields["summary"]) :]})

    async def context(self) -> AsyncIterator[Msg]:
        """What the model is shown: the summary, when there is one, and the messages since."""
        epoch, start, total = 0, 0, 1
        while start < total:
            page = await self._query("transcript", TranscriptPage, epoch, start)
            for message in page.messages:
                yield message
            epoch, start, total = page.epoch, page.start + len(page.messages), page.total

    async def transcript(self, start: int = 0) -> AsyncIterator[Msg]:
        """All recorded messages from number `start` on: one per model call and per tool result."""
        while True:
            page = await self._query("messages", MessagePage, start)
            for message in page.messages:
                yield message
            start = page.start + len(page.messages)
            if start >= page.total or not page.messages:
                return

    async def events(self, start: int = 1) -> EventPage:
        """Durable events from sequence number `start` on."""
        return await self._query("events", EventPage, start)

    async def follow(self, start: int = 1) -> AsyncIterator[AgentEvent]:
        """Durable events from `start` on, and those to come; ends only when the caller leaves."""
        pauses = Pauses()
        while True:
            page = await self.events(start)
            for event in page.events:
                yield event
            start += len(page.events)
            if page.events:
                pauses = Pauses()
            else:
                await pauses.rest()

    async def _ask(self, inputs: Inputs, request_id: str | None) -> str:
        match inputs:
            case UserConfirmResultEvent():
                await self._update("confirm", plain(inputs))
                return inputs.reply_id
            case ExternalExecutionResultEvent():
                await self._update("external_result", plain(inputs))
                return inputs.reply_id
            case _:
                return await self.submit(inputs, request_id=request_id)

    async def _last_event(self) -> int:
        """Asked for a page from far beyond the end, a session sends no events, but the number of the newest."""
        try:
            return (await self.events(2**31)).last
        except NoSession:
            return 0

    async def _whole(self, shown: Msg) -> Msg:
        """The message with all of its blocks, from the transcript."""
        blocks = [block async for message in self.transcript() if message.id == shown.id for block in message.content]
        return shown.model_copy(update={"content": tuple(blocks)})

    @property
    def _handle(self) -> WorkflowHandle[Any, Any]:
        return self._client.get_workflow_handle(self.workflow_id)

    async def _query(self, name: str, answer: type[Answer], *arguments: Any) -> Answer:
        try:
            found: Answer = await insist(
                lambda: self._handle.query(name, args=list(arguments), result_type=answer, rpc_timeout=QUERY_TIMEOUT)
            )
        except RPCError as error:
            raise self._explained(error) from error
        return found

    async def _update(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        check_size(name, body)
        try:
            answer: dict[str, Any] = await self._handle.execute_update(name, body, result_type=dict)
        except WorkflowUpdateFailedError as error:
            raise refusal_of(error) from error
        except RPCError as error:
            raise self._explained(error) from error
        return answer

    async def _update_with_start(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        check_size(name, body)

        async def send() -> dict[str, Any]:
            start = start_operation(self._settings, self.id, self.user, self.spec, self.workflow_id)
            answer: dict[str, Any] = await self._client.execute_update_with_start_workflow(
                name, body, start_workflow_operation=start, result_type=dict
            )
            return answer

        try:
            async with self._sending:
                # A request carries its id, so that one sent twice is one; an observation does not.
                return await send_again(send, repeatable=name == "submit")
        except WorkflowUpdateFailedError as error:
            raise refusal_of(error) from error

    def _explained(self, error: RPCError) -> Exception:
        if error.status is RPCStatusCode.NOT_FOUND:
            return NoSession(f"there is no open session {self.id!r} of agent {self.spec.name!r}")
        return error
