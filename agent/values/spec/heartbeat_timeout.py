"""Liveness says how soon the death of a worker is noticed, in seconds, and with it what running calls cost.

Each call sends heartbeats, which are written down and billed. The number is the workers': it comes into a session with
what is prepared for each reply, for the session schedules the calls.
"""

from typing import assert_never

from longhaul.agent.values.conversation.tools import Effect

FAST_SECONDS = 2.0
CHEAP_SECONDS = 30.0
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 600.0

_IDEMPOTENT_SECONDS = 5.0
"""At least: it is done once more."""
_ONCE_SECONDS = 30.0
"""At least, and twice what holds for others: a worker that only stalls must not turn a call that ran into an unknown
outcome."""


def heartbeat_seconds(liveness: float, effect: Effect = Effect.READ) -> float:
    """Until the worker of a running call counts as dead that was not heard of. A model call is as one that reads."""
    match effect:
        case Effect.READ:
            return liveness
        case Effect.IDEMPOTENT:
            return max(liveness, _IDEMPOTENT_SECONDS)
        case Effect.ONCE:
            return max(2 * liveness, _ONCE_SECONDS)
        case _ as never:
            assert_never(never)
