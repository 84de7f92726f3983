"""Takes the letters of hubs to their members' sessions: on the worker, as any client does."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from temporalio import activity
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.exceptions import ApplicationError

from longhaul.agent.letters.bodies import LEAVING
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.hubs import HUB_SAYS
from longhaul.starter.client.reading.asking import Asking
from longhaul.starter.client.sending import Sending
from longhaul.starter.client.wire import Refused, start_operation
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import REFUSED, TELL_MEMBER, ToMember


class HubLetters:
    """By an update that begins the session: one that has closed is opened again, and one that never was begins."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    @activity.defn(name=TELL_MEMBER)
    async def tell_member(self, told: ToMember) -> None:
        """Tried again it says the same, which counts once. What the session refuses is not tried again."""
        member, user = told.member, told.letter.user_id
        asking = Asking(
            self._client, member.workflow_id, f"session {member.session_id!r} of agent {member.spec.name!r}"
        )

        def start(title: str) -> WithStartWorkflowOperation[Any, Any]:
            return start_operation(self._settings, member.session_id, user, member.spec, member.workflow_id, title)

        try:
            letter = told.letter.model_dump(mode="json")
            await _unless_leaving(Sending(asking, start).update_with_start(HUB_SAYS, letter))
        except (Refused, BadSetup) as error:
            raise ApplicationError(str(error), type=REFUSED, non_retryable=True) from error


async def _unless_leaving(send: Coroutine[Any, Any, dict[str, Any]]) -> None:
    """A worker that is shut down may be the only one that could answer: it would wait for itself."""
    sending = asyncio.create_task(send)
    leaving = asyncio.create_task(activity.wait_for_worker_shutdown())
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not sending.done():
            raise ApplicationError("its worker is being shut down", type=LEAVING)
        await sending
    finally:
        sending.cancel()
        leaving.cancel()
