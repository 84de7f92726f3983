"""A scheduled request is what each scheduled run of a schedule asks of a session, as the schedule keeps it."""

from typing import Literal

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.spec.agent_spec import AgentSpec

Overlap = Literal["skip", "queue", "now", "interrupt", "beside"]
"""What becomes of a scheduled run while the one before is at work: it is left out, waits for its turn, is told to the
model at the next step, or ends what is being made; `beside` begins another session all the same."""


class ScheduledRequest(OpenValue):
    """Input of each scheduled run."""

    schedule: str
    prompt: str
    spec: AgentSpec
    """As it was when the schedule was added."""
    user_id: str | None = sparse(None)
    session: str = sparse("")
    """All scheduled runs go to this one; empty: each begins one of its own."""
    overlap: Overlap = sparse("skip")


class Requested(OpenValue):
    """What a scheduled run came to: which session it asked, or why it was left out. Then session and reply are those of
    the scheduled run before."""

    session: str = sparse("")
    reply_id: str = sparse("")
    left_out: str = sparse("")


class ScheduledRun(OpenValue):
    """One scheduled run, and what the one before has come to."""

    request: ScheduledRequest
    request_id: str
    """The same however often the scheduled run is tried."""
    at: int
    """When it was due, in milliseconds since 1970."""
    before: Requested | None = sparse(None)
