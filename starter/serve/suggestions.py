"""Suggested rules by HTTP: what else each of them would have let pass."""

from pydantic import BaseModel, Field

from longhaul.agent.views.would_pass import WouldPass
from longhaul.starter.serve.request_bodies import Whose
from longhaul.starter.serve.requests import Call, session_of


class OfCall(Whose):
    call_id: str = Field(default="", max_length=1_000, description="A call that waits for a person")


class WouldPassBody(BaseModel):
    """What the rules come to that were suggested with a call, one by one."""

    rules: tuple[WouldPass, ...]


async def would_pass(call: Call) -> WouldPassBody:
    query: OfCall = call.query
    return WouldPassBody(rules=tuple(await session_of(call).rules.would_pass(query.call_id)))
