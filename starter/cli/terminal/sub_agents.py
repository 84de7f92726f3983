"""Finds the sub-agents that wait for somebody, while their lead only waits for them: in the server's index, without
asking a session."""

import time
from collections.abc import Sequence

from longhaul.starter.client.session import Session
from longhaul.starter.client.tree import OpenBelow

SHORTEST_PAUSE_SECONDS = 3.0
LONGEST_PAUSE_SECONDS = 30.0
"""Between looks; a fifth of the time that nothing has changed."""
IDLE, WORKING = "idle", "working"


class SubAgents:
    """Of one reply of a lead."""

    def __init__(self, lead: Session) -> None:
        self._lead = lead
        self._asking: list[str] = []
        self._changed_at = self._looked_at = time.monotonic()

    async def asking(self) -> tuple[Sequence[OpenBelow], bool]:
        """Those that wait for somebody, and whether nothing below the lead moves until they are answered; nobody
        where it is too early to look again."""
        now = time.monotonic()
        pause = min(max((now - self._changed_at) / 5, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        if now - self._looked_at < pause:
            return (), False
        self._looked_at = now
        # One that is idle has ended its task, and one that works on goes on without what is asked of it.
        below = [each for each in await self._lead.tree.open_below() if each.card.status != IDLE]
        found = [each for each in below if each.asks and each.card.status != WORKING]
        calls = sorted(f"{each.card.workflow_id} {call.call_id}" for each in found for call in each.asks)
        if calls != self._asking:
            self._asking, self._changed_at = calls, now
            return found, False  # another one may have begun that the index does not know yet
        return found, bool(found) and all(each in found or each.is_lead for each in below)
