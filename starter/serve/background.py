"""Stops what works in the background of a session, by HTTP, and tells how that has ended."""

from pydantic import BaseModel

from longhaul.agent.letters.bodies import StopBackground
from longhaul.starter.serve.requests import Call, session_of


class BackgroundEnds(BaseModel):
    """What was to stop."""

    ends: dict[str, str]
    """How each has ended, by the id of the call that began it; empty where nobody has heard of that in fifteen
    seconds."""


async def stop_background(call: Call) -> BackgroundEnds:
    body: StopBackground = call.body
    return BackgroundEnds(ends=await session_of(call).stop_background(body.call_id, by=call.by))
