"""Arguments and answers of the tools of Longhaul as an MCP server, where they are not as by HTTP."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from longhaul.agent.entries import When
from longhaul.agent.letters.bodies import Binding
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.starter.serve.request_bodies import LONGEST_WAIT_SECONDS, Name, Whose
from longhaul.starter.serve.requests import DEFAULT_AGENT
from longhaul.workflows.contract import PendingCall, Status

Wait = Field(default=0, ge=0, le=LONGEST_WAIT_SECONDS, description="Seconds to wait for what comes of it")
RequestId = Field(
    default="", max_length=MAX_ID_CHARS, description="Names the request: sent again, it gives the same reply"
)


class OfSession(Whose):
    session: Name = Field(min_length=1, description="Its name")
    agent: Name = Field(default=DEFAULT_AGENT, description="Whose session it is")


class BeginSession(Whose):
    text: str = Field(min_length=1, description="What to ask")
    agent: Name = Field(default=DEFAULT_AGENT, description="Which agent is asked, by its name")
    wait: float = Wait
    request_id: str = Field(
        default="",
        max_length=MAX_ID_CHARS,
        description="A random text, for asking once more where no answer came: sent again, it gives the same session",
    )


class Ask(OfSession):
    text: str = Field(min_length=1, description="What to say")
    when: When = Field(
        default="queue",
        description="While another reply is made: wait for its end (queue), tell it to the model at its next step "
        "(now), or end that reply (interrupt)",
    )
    wait: float = Wait
    request_id: str = RequestId


class ReadOn(OfSession):
    since: int = Field(default=0, ge=0, le=2**31, description="Number of the last event that was read; 0: none was")
    wait: float = Field(
        default=0,
        ge=0,
        le=LONGEST_WAIT_SECONDS,
        description="Seconds to wait until the reply has ended, or waits for somebody",
    )


class OnCall(OfSession):
    call_id: Binding = Field(description="As the inbox names it")
    decision: Literal["allow", "deny"]
    digest: Binding | None = Field(
        default=None, description="As it stands beside the call that was looked at; needed to allow it"
    )
    reason: str = Field(default="", max_length=20_000, description="Of a denial; the agent's model reads it")
    input: dict[str, Any] | None = Field(default=None, description="Other arguments than the model's")
    rules: bool = Field(default=False, description="Take the suggested rules along for later calls")


class Sent(BaseModel):
    """A message that was taken, and what came of it so far."""

    session: str
    agent: str
    reply_id: str
    status: str
    """queued, working, waiting or finished."""
    text: str = ""
    """What the agent has said, when the reply has ended or waits for somebody."""
    finished_reason: str = ""
    error: ErrorInfo | None = None
    calls: tuple[PendingCall, ...] = ()
    """What it waits for."""


class SessionText(BaseModel):
    """What happened in a session, as text."""

    text: str
    next: int
    """`since` of the next question: the number of the last event that is told here."""
    more: bool
    """There is more already."""


class SessionStanding(BaseModel):
    """One session at a glance, and its calls that wait."""

    status: Status
    calls: tuple[PendingCall, ...]
