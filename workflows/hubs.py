"""AgentHub: a room of agents as a workflow. It takes what members and people say, gives each its number, and sees to it
that every member hears all of it, in that order, once.

Nothing is decided here: `agent.hub` has the rules. What is under way when a run ends is done again by the next, and the
members' sessions pass over what they have heard.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RawValue, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from pydantic import ValidationError

    from longhaul.agent import hub_membership
    from longhaul.agent.hub_membership import Member, put_out
    from longhaul.agent.operations.bodies import Unusable
    from longhaul.agent.operations.peer_operations import HubSays
    from longhaul.agent.values.hubs import MEMBER_SAID
    from longhaul.agent.views.session_views import MemberSaid
    from longhaul.workflows.contract import (
        HUB,
        REFUSED,
        TASK_TIMEOUT,
        TELL_MEMBER,
        HubCard,
        HubMember,
        HubStart,
        ToMember,
    )
    from longhaul.workflows.operations import LARGEST_OPERATION, MAX_NAME, Turns, decode, weigh

CONTINUE_AS_NEW_EVENTS = 2_000
OPERATION_SECONDS = 10
"""After which an operation is sent again, by another worker where one was killed."""
ANSWER_SECONDS = 20
"""After which whoever waits until all have heard is told who has not, and asks again."""


@workflow.defn(name=HUB)
class AgentHub:
    """Started by update-with-start; lives until somebody ends it."""

    @workflow.init
    def __init__(self, start: HubStart) -> None:
        self._hub = start.hub
        self._incarnation = workflow.info().first_execution_run_id
        self._telling: dict[str, asyncio.Task[None]] = {}
        """By member."""
        self._turns = Turns()
        self._answering = 0
        """Updates that wait."""

    @workflow.run
    async def run(self, start: HubStart) -> HubCard:
        del start
        while True:
            await workflow.wait_condition(self._has_work)
            # A defect of ours has to fail the task, and not vanish with a task of its own.
            for task in self._telling.values():
                if task.done():
                    task.result()
            if self._hub.ended and not self._hub.members:
                await self._all_answered()
                return self.show()
            if self._is_long():
                # Operations under way are sent again by the next run.
                await self._all_answered()
                workflow.continue_as_new(HubStart(hub=self._hub), task_timeout=TASK_TIMEOUT, memo=workflow.memo())
            for member, operation in self._to_tell():
                self._telling[member.name] = asyncio.create_task(self._tell(member, operation))

    @workflow.signal(dynamic=True)
    async def on_signal(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Signals of members; any other, and one that can't be read, changes nothing."""
        await self._turns.take(arguments)
        if name != MEMBER_SAID:
            return
        try:
            said = MemberSaid.model_validate(*decode(name, arguments))
        except (Unusable, ValidationError, TypeError) as error:
            workflow.logger.warning("a signal to a hub could not be used: %s", str(error)[:300])
            return
        self._hub = hub_membership.member_said(self._hub, said, self._incarnation)

    @workflow.update(dynamic=True)
    async def on_update(self, name: str, arguments: Sequence[RawValue]) -> dict[str, Any]:
        """Updates of people; the failure says why nothing was done."""
        await self._turns.take(arguments)
        try:
            body = hub_membership.read(name[:MAX_NAME], decode(name[:MAX_NAME], arguments))
            if isinstance(body, hub_membership.AwaitHeard):
                return await self._heard(body)
            self._hub, answer = hub_membership.received(self._hub, body)
        except Unusable as refusal:
            raise ApplicationError(str(refusal), type=REFUSED, non_retryable=True) from None
        return answer

    @on_update.validator
    def accept_update(self, name: str, arguments: Sequence[RawValue]) -> None:
        """Turn away what is too large for the history."""
        if (size := weigh(arguments)) > LARGEST_OPERATION:
            most = f"the most is {LARGEST_OPERATION // 1000} kB"
            raise ApplicationError(
                f"{name[:MAX_NAME]}: the body has {size // 1000} kB, and {most}", type=REFUSED, non_retryable=True
            )

    @workflow.query
    def show(self) -> HubCard:
        hub = self._hub
        members = tuple(
            HubMember(
                name=member.name,
                session_id=member.session_id,
                agent=member.spec.name,
                heard=member.heard,
                leaving=bool(member.left),
            )
            for member in hub.members
        )
        return HubCard(
            name=hub.name,
            user_id=hub.user_id,
            auto_broadcast=hub.auto_broadcast,
            members=members,
            number=hub.number,
            waiting=len(hub.words),
            newest=hub.newest,
            notes=hub.notes,
        )

    async def _heard(self, body: hub_membership.AwaitHeard) -> dict[str, Any]:
        """`known`: the hub has heard of it; `behind`: members that have not yet; `told`: it was told to them at all."""
        self._answering += 1
        try:
            await workflow.wait_condition(
                lambda: hub_membership.behind(self._hub, body) == [] or self._is_long(),
                timeout=timedelta(seconds=ANSWER_SECONDS),
            )
        except TimeoutError:
            pass  # whoever asked asks again
        finally:
            self._answering -= 1
        behind = hub_membership.behind(self._hub, body)
        told = self._hub.replies.get(body.reply_id, 0) > 0 or not body.reply_id
        return {"known": behind is not None, "behind": behind or [], "told": told}

    def _to_tell(self) -> list[tuple[Member, HubSays]]:
        """Members to which no operation is under way, and what they are to hear next."""
        own = workflow.info().workflow_id
        free = [member for member in self._hub.members if member.name not in self._telling]
        operations = [(member, hub_membership.due(self._hub, member, self._incarnation, own)) for member in free]
        return [(member, operation) for member, operation in operations if operation is not None]

    def _has_work(self) -> bool:
        over = self._hub.ended and not self._hub.members
        defect = any(task.done() for task in self._telling.values())
        return over or defect or self._is_long() or bool(self._to_tell())

    def _is_long(self) -> bool:
        info = workflow.info()
        return info.get_current_history_length() > CONTINUE_AS_NEW_EVENTS or info.is_continue_as_new_suggested()

    async def _tell(self, member: Member, operation: HubSays) -> None:
        """One operation; the next is found when this one has come."""
        try:
            await workflow.execute_activity(
                TELL_MEMBER,
                ToMember(member=member, operation=operation),
                summary=f"tell {member.name} of {len(operation.words)} words"[:100],
                start_to_close_timeout=timedelta(seconds=OPERATION_SECONDS),
                retry_policy=RetryPolicy(maximum_interval=timedelta(seconds=30)),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._hub = put_out(self._hub, member, str(error.cause or error))
        else:
            self._hub = hub_membership.delivered(self._hub, member.name, operation)
        del self._telling[member.name]

    async def _all_answered(self) -> None:
        await workflow.wait_condition(lambda: not self._turns.waiting and not self._answering)
