"""Sending decisions: signed where the session takes no others, and then until a worker has checked them."""

import time
from typing import Any

from agent.bodies import Confirm
from agent.signing import BadKey, keys_of, signed
from starter.asking import Asking
from starter.patience import Pauses
from starter.sending import Sending
from starter.settings import Settings
from starter.wire import Refused
from workflows.contract import PendingCall


class Deciding:
    """One session's decisions."""

    def __init__(self, asking: Asking, sending: Sending, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._sending = sending
        self._keys = settings.approval_key
        self._workflow_id = workflow_id

    async def send(self, call: PendingCall | str, decision: dict[str, Any], approver: str) -> dict[str, Any]:
        """The session's answer. Raises Refused, also for what a worker finds wrong with a signature."""
        body: dict[str, Any] = {"decisions": [decision], "approver": approver}
        try:
            keys = keys_of(self._keys.get_secret_value())
        except BadKey as bad:
            raise Refused(f"LONGHAUL_APPROVAL_KEY: {bad}") from bad
        seen = await self._seen(call) if keys else None
        if seen is None or not seen.signed:
            return await self._sending.update("confirm", body)
        named = {**body, "reply_id": seen.reply_id, "decisions": [{"digest": seen.digest, **decision}]}
        offered = signed(Confirm.model_validate(named), keys[0], self._workflow_id, time.time_ns() // 1_000_000)
        answer = await self._sending.update("confirm", offered.model_dump(mode="json", exclude_defaults=True))
        await self._checked(int(answer["offer"]))
        return answer

    async def _seen(self, call: PendingCall | str) -> PendingCall | None:
        if isinstance(call, PendingCall):
            return call
        pending = await self._asking.query("pending", list[PendingCall])
        return next((one for one in pending if one.call_id == call), None)

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
