"""Sending decisions: signed where the session takes no others, and then until a worker has checked them."""

import time
from collections.abc import Sequence
from typing import Any

from longhaul.agent.letters.approval_operations import BadKey, keys_of, signed
from longhaul.agent.letters.bodies import Confirm
from longhaul.starter.client.reading.asking import Asking
from longhaul.starter.client.sending import Sending
from longhaul.starter.client.wire import Refused
from longhaul.starter.reach.query_retries import Pauses
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import PendingCall


class Deciding:
    """One session's decisions."""

    def __init__(self, asking: Asking, sending: Sending, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._sending = sending
        self._keys = settings.approval_key
        self._workflow_id = workflow_id

    async def send(
        self, calls: Sequence[PendingCall | str], decisions: Sequence[dict[str, Any]], approver: str
    ) -> dict[str, Any]:
        """The session's answer to decisions on these calls, which count together or not at all. Raises Refused, also
        for what a worker finds wrong with a signature."""
        body: dict[str, Any] = {"decisions": list(decisions), "approver": approver}
        try:
            keys = keys_of(self._keys.get_secret_value())
        except BadKey as bad:
            raise Refused(f"LONGHAUL_APPROVAL_KEY: {bad}") from bad
        seen = await self._seen(calls) if keys else []
        if not any(call.signed for call in seen):
            return await self._sending.update("confirm", body)
        digests = {call.call_id: call.digest for call in seen}
        bound = [{"digest": digests.get(one["call_id"], ""), **one} for one in decisions]
        named = {**body, "reply_id": seen[0].reply_id, "decisions": bound}
        offered = signed(Confirm.model_validate(named), keys[0], self._workflow_id, time.time_ns() // 1_000_000)
        answer = await self._sending.update("confirm", offered.model_dump(mode="json", exclude_defaults=True))
        await self._checked(int(answer["offer"]))
        return answer

    async def _seen(self, calls: Sequence[PendingCall | str]) -> list[PendingCall]:
        seen = [call for call in calls if isinstance(call, PendingCall)]
        if len(seen) == len(calls):
            return seen
        pending = await self._asking.query("pending", list[PendingCall])
        return [*seen, *(call for call in pending if call.call_id in calls)]

    async def _checked(self, offer: int) -> None:
        """Wait for the worker's finding."""
        pauses = Pauses()
        while True:
            (why,) = (await self._asking.query("offer", dict[str, str | None], offer)).values()
            if why:
                raise Refused(f"confirm: {why}")
            if why is not None:
                return
            await pauses.rest()
