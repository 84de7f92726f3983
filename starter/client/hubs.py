"""Hubs: rooms of agents in which what one answers is told to all others, as AgentScope's `MsgHub` has them.

Open hubs are rows of the server's index; its members take part in pipelines.
"""

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from temporalio.client import Client, WithStartWorkflowOperation, WorkflowUpdateFailedError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.hub_membership import PUT_OUT, HubState
from longhaul.agent.plain.errors import BadInput, Unavailable
from longhaul.agent.plain.ids import check_name
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.hubs import NAME
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.cards import texts_of_memo
from longhaul.starter.client.session import Session
from longhaul.starter.client.states.deletion import delete_ended, look_again
from longhaul.starter.client.wire import (
    Refused,
    as_messages,
    check_size,
    plain,
    refusal_of,
    update_with_start,
)
from longhaul.starter.connection.connect import Naming, no_namespace
from longhaul.starter.connection.query_retries import insist, send_again
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import HUB, TASK_TIMEOUT, HubCard, HubStart, priority_of


class HubAgent:
    """A member of a hub. Its `reply` returns when the other members have heard the reply, so the next speaker knows
    it."""

    def __init__(self, hub: "Hub", session: Session) -> None:
        self.hub = hub
        self.session = session
        self.id = session.id

    async def reply(self, inputs: str | Msg | Sequence[Msg] | None = None, **how: Any) -> Msg:
        """Reply as `Session.reply` does. Messages that the hub has sent to the member already are not sent again."""
        given = None if self.hub.has_told(inputs) else inputs
        answer = await self.session.reply(given, **how)
        if answer.finished_reason is not None:
            await self.hub.heard(answer)
        return answer


OPEN_HUBS = f"WorkflowType = '{HUB}' AND ExecutionStatus = 'Running'"


@dataclass(frozen=True, slots=True)
class HubRow:
    """One hub of `Longhaul.hubs()`."""

    name: str
    user: str | None
    """None: the hub's members are sessions without a user."""


def beginning_of(settings: Settings, name: str, user: str | None) -> WithStartWorkflowOperation[Any, Any]:
    """How a hub comes to be with its first members; one that there is stays as it is."""
    naming = Naming(settings)
    return WithStartWorkflowOperation(
        HUB,
        HubStart(hub=HubState(name=name, user_id=user)),
        id=naming.hub_id(user, name),
        task_queue=settings.task_queue,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        task_timeout=TASK_TIMEOUT,
        memo={"hub": name, "user": user},
        priority=priority_of(AgentSpec(), user, naming.indexed),
        static_summary="hub" if naming.is_opaque else f"hub {name}"[:120],
    )


async def hub_rows(client: Client, naming: Naming) -> list[HubRow]:
    """By name. Anybody may start a workflow of our type: a row whose names do not give its id is not told."""
    found = list[HubRow]()
    async for row in client.list_workflows(OPEN_HUBS):
        memo = await texts_of_memo(row) or {}
        name, user = memo.get("hub"), memo.get("user")
        if name and naming.hub_id(user, name) == row.id:
            found.append(HubRow(name, user))
    return sorted(found, key=lambda one: (one.name, one.user or ""))


Members = Session | Mapping[str, Session]
TRIES_TO_HEAR = 6
"""Of 20 seconds each: how long a member's `reply` waits until all others have heard it."""
LEAVING_SECONDS = 10.0
"""How long those who come in wait for those who go."""


class BadHub(BadInput):
    """The hub or a member is not possible: its name, its user, or there is no member. Nothing was changed."""


class NoHub(BadHub):
    """The hub does not exist, or has ended."""


class PutOut(Refused):
    """A session refused to join the hub, and is not a member. The sentence says why. The other sessions have joined."""


class NotHeard(Unavailable):
    """Some members' sessions have not received a message yet. They receive it as soon as they can; no message is
    lost."""


class Hub:
    """A handle for one hub. Creating the handle starts nothing. Get it from `Longhaul.hub`. Methods raise Refused with
    the hub's sentence, and BadHub if the hub does not exist."""

    def __init__(self, client: Client, settings: Settings, name: str, user: str | None) -> None:
        if not NAME.fullmatch(name):
            raise BadHub(f"hub: {name[:80]!r} must be 1 to 64 letters, digits, `.`, `_` and `-`")
        check_name("user", user or "")
        self.name = name
        self.user = user
        self.workflow_id = Naming(settings).hub_id(user, name)
        self._client = client
        self._settings = settings
        self._first: tuple[Members, ...] = ()
        self._announcement: str | Msg | Sequence[Msg] | None = None
        self._auto_broadcast = True
        self._told = set[str]()
        """Replies that all members have heard, as far as this handle has waited for it."""

    def with_members(
        self, members: Sequence[Members], announcement: str | Msg | Sequence[Msg] | None, *, auto_broadcast: bool
    ) -> "Hub":
        """Set the members and the announcement with which `start` starts the hub."""
        self._first, self._announcement, self._auto_broadcast = tuple(members), announcement, auto_broadcast
        return self

    async def __aenter__(self) -> "Hub":
        try:
            await self.start()
        except PutOut:
            await self.end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    async def start(self, *, request_id: str | None = None) -> None:
        """Start the hub, or add new members to a hub that is open, and send the announcement, once for each
        `request_id`. Returns when all members know that they have joined. Raises PutOut."""
        named = self._named(self._first)
        if not named:
            raise BadHub(f"hub {self.name!r}: it needs a member; give sessions")
        answer = await self._joined(named, begins=True)
        if not self._auto_broadcast:
            await self.set_auto_broadcast(enable=False)
        if self._announcement is not None:
            answer = {"number": await self.broadcast(self._announcement, request_id=request_id)}
        await self._until_in(named, int(answer["number"]))

    async def add(self, *members: Members) -> None:
        """Add sessions to the hub. A member's name is its session's name, or its key in a mapping. A new member hears
        only later messages. Raises PutOut."""
        self._told.clear()  # the new ones have not heard it
        named = self._named(members)
        answer = await self._joined(named)
        await self._until_in(named, int(answer["number"]))

    async def _until_in(self, named: list[dict[str, Any]], number: int) -> None:
        await self._until_heard(number=number)
        card = await self.show()
        absent = {one["name"] for one in named} - {member.name for member in card.members}
        if why := [note for note in card.notes if note.partition(PUT_OUT)[0] in absent]:
            raise PutOut(f"hub {self.name!r}: {'; '.join(why)}")

    async def _joined(self, named: list[dict[str, Any]], *, begins: bool = False) -> dict[str, Any]:
        """Whoever has left, and a hub that is over, is gone when the sessions know it; that is waited for."""
        until, is_being_left = time.monotonic() + LEAVING_SECONDS, True
        while True:
            try:
                return await self._update("join", {"members": named}, begins=begins)
            except Refused:
                if time.monotonic() > until or not is_being_left:
                    raise  # asked once more when nobody is: whoever was may have gone since
            await asyncio.sleep(0.1)
            # Somebody is on the way out, or all were and the hub is about to be gone.
            members = (await self.show()).members
            is_being_left = not members or any(member.leaving for member in members)

    async def delete(self, *members: Session | str) -> None:
        """Remove members. They receive everything that was said before, and nothing after."""
        card = await self.show()
        names = [one if isinstance(one, str) else _name_in(card, one) for one in members]
        await self._update("leave", {"members": names})

    async def broadcast(self, messages: str | Msg | Sequence[Msg], *, request_id: str | None = None) -> int:
        """Send messages to all members in the name of a person or a program. The same `request_id` sent again counts
        once."""
        body = {"messages": as_messages(messages), "request_id": request_id or uuid.uuid4().hex}
        return int((await self._update("say", body))["number"])

    async def set_auto_broadcast(self, enable: bool) -> None:  # noqa: FBT001  AgentScope's own signature
        """Turn on or off that members' replies are sent to the other members. Replies that are given while it is off
        are never sent."""
        await self._update("auto_broadcast", {"on": enable})

    async def show(self) -> HubCard:
        """The hub's members, its newest messages, and the sessions that were put out."""
        handle = self._client.get_workflow_handle(self.workflow_id)
        try:
            card: HubCard = await insist(lambda: handle.query("show", result_type=HubCard))
        except RPCError as error:
            raise self._explained(error) from error
        return card

    async def end(self, *, delete: bool = False) -> None:
        """End the hub: remove all members and wait until they know. With `delete`, then delete the hub's key and stored
        data, also of a hub that has ended. Raises Unreachable."""
        try:
            await self._update("end", {})
        except NoHub:
            if not delete:
                raise
        if delete:
            await delete_ended(self._client, self._settings, self.workflow_id)

    def agents(self, *members: Session) -> list[HubAgent]:
        """The members in the form that pipelines take. Without arguments, the members that this handle was created
        with."""
        sessions = list(members)
        for one in self._first if not members else ():
            sessions += [one] if isinstance(one, Session) else list(one.values())
        return [HubAgent(self, session) for session in sessions]

    async def heard(self, message: Msg) -> None:
        """Wait until all other members have received a member's reply. Raises NotHeard."""
        if await self._until_heard(reply_id=message.id):
            self._told.add(message.id)

    def has_told(self, message: object) -> bool:
        return isinstance(message, Msg) and message.id in self._told

    async def _until_heard(self, *, reply_id: str = "", number: int = 0) -> bool:
        """False: it was told to nobody, because the switch was off or nothing was said."""
        answer: dict[str, Any] = {}
        for _ in range(TRIES_TO_HEAR):
            answer = await self._update("heard", {"reply_id": reply_id, "number": number})
            if answer["known"] and not answer["behind"]:
                return bool(answer["told"])
        who = ", ".join(answer["behind"]) or "the hub itself"
        raise NotHeard(
            f"hub {self.name!r}: {who} has not received it yet; it will as soon as its session accepts operations"
        )

    def _named(self, members: Sequence[Members]) -> list[dict[str, Any]]:
        named = dict[str, Session]()
        for one in members:
            for name, session in ({one.id: one} if isinstance(one, Session) else one).items():
                if session.user != self.user:
                    raise BadHub(
                        f"members: session {session.id!r} is of user {session.user!r}, and the hub of {self.user!r}; "
                        "a hub has sessions of one user"
                    )
                if named.setdefault(name, session) is not session:
                    raise BadHub(f"members: two are called {name!r}; name them by a mapping, as in {{'ana': session}}")
        return [
            {"name": name, "session_id": one.id, "workflow_id": one.workflow_id, "spec": plain(one.spec)}
            for name, one in named.items()
        ]

    async def _update(self, name: str, body: dict[str, Any], *, begins: bool = False) -> dict[str, Any]:
        check_size(name, body, self._client)

        async def send() -> dict[str, Any]:
            if begins:
                start = beginning_of(self._settings, self.name, self.user)
                look_again(self._client, self.workflow_id)
                return await update_with_start(self._client, name, body, start)
            handle = self._client.get_workflow_handle(self.workflow_id)
            answer: dict[str, Any] = await handle.execute_update(name, body, result_type=dict)
            return answer

        try:
            return await send_again(send, repeatable=name != "leave")
        except WorkflowUpdateFailedError as error:
            raise refusal_of(error) from error
        except RPCError as error:
            raise self._explained(error) from error

    def _explained(self, error: RPCError) -> Exception:
        if error.status is not RPCStatusCode.NOT_FOUND:
            return error
        no_hub = NoHub(f"hub: there is no hub {self.name!r} of user {self.user!r}, or it has ended; start one")
        return no_namespace(self._client, error) or no_hub


def _name_in(card: HubCard, session: Session) -> str:
    found = [member.name for member in card.members if member.session_id == session.id]
    found = [one for one in found if any(m.name == one and m.agent == session.spec.name for m in card.members)]
    if not found:
        raise BadHub(f"members: session {session.id!r} is not in the hub {card.name!r}")
    return found[0]
