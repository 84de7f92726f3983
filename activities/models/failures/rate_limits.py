"""Holds back the calls of one worker with a key that its provider has just limited, and lets them in one after another.

Nothing is held back before a provider says 429. Then no call with that key begins until the time that it asks for is
over, and behind it they begin a gap apart. Each refusal of a call that was let in makes the gap longer, and it shrinks
by itself: so the worker feels its way to what the account allows, which no provider tells in full.
"""

import asyncio
import hashlib
import logging
import random

from longhaul.activities.models.failures.errors import HeldBack

log = logging.getLogger(__name__)

FIRST_GAP_SECONDS = 0.1
LONGEST_GAP_SECONDS = 5.0
SMALLEST_GAP_SECONDS = 0.01
"""A shorter one is none."""
HALF_LIFE_SECONDS = 10.0
"""Of a gap. A gap that shrank faster would find the limit again each few seconds, at the price of a refusal."""
CLOSED_SECONDS = 60.0
"""At most, for calls that were not refused themselves: often the limit is that of one model, and a mistaken hour must
not stop every session of the worker. Then one of them finds out."""
HELD_SECONDS = 10.0
"""A call that would wait longer is given back to the server: it holds no place on the worker then, and the session
is told what it waits for."""


class KeyLimit:
    """Of one key in one worker process. For its event loop alone: nothing here awaits but `enter`."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        """For logs: a digest, never the key."""
        self._opens_at = 0.0
        self._next_turn = 0.0
        self._gap = 0.0
        self._round = 0
        """How often a call was refused that was let in behind the refusal before."""

    async def enter(self) -> int:
        """Wait for a turn; the round in which the call is let in, for `refused`. Raises HeldBack."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + HELD_SECONDS
        while True:
            turn, drawn_in = self._draw(loop.time(), latest), self._round
            if (wait := turn - loop.time()) <= 0:
                return drawn_in
            await asyncio.sleep(wait)
            if drawn_in == self._round and turn >= self._opens_at:
                return drawn_in

    def refused(self, let_in: int, told_seconds: float | None) -> None:
        """The provider has limited a call that was let in then, and asks for so long a pause, if it says one."""
        now = asyncio.get_running_loop().time()
        if let_in == self._round:  # else it was under way when another one was refused, and says nothing new
            self._gap = min(max(2 * self._gap_at(now), FIRST_GAP_SECONDS), LONGEST_GAP_SECONDS)
            self._round += 1
        opens_at = now + min(max(told_seconds or 0.0, self._gap), CLOSED_SECONDS)
        if opens_at > self._opens_at:
            self._opens_at = opens_at
            self._next_turn = opens_at + random.uniform(0.0, self._gap)  # noqa: S311  no secret hangs on it
            log.info("calls with the key %s wait for %.1f s: its provider limits them", self._name, opens_at - now)

    def _draw(self, now: float, latest: float) -> float:
        """The moment of the next turn, which is taken with it."""
        turn = max(now, self._next_turn)
        if turn > latest:
            raise HeldBack(turn - now)
        if gap := self._gap_at(turn):
            self._next_turn = turn + gap * random.uniform(0.5, 1.5)  # noqa: S311
        return turn

    def _gap_at(self, moment: float) -> float:
        gap = self._gap * 0.5 ** (max(0.0, moment - self._opens_at) / HALF_LIFE_SECONDS)
        return gap if gap >= SMALLEST_GAP_SECONDS else 0.0


def key_digest(key: str, base_url: str) -> str:
    """Names a key in logs. `base_url` stands for a server that wants none."""
    return hashlib.sha256(f"{base_url}\n{key}".encode()).hexdigest()[:12]
