"""A security analyzer gets one call before it runs, and says how risky it is."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.values.conversation.messages import Msg, Usage
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Risk
from longhaul.agent.values.spec.agent_spec import ModelConfig

AskModel = Callable[[ModelRequest], Awaitable[ModelReply]]
Around = Callable[[ModelRequest, AskModel], Awaitable[ModelReply]]
"""Makes a model call by way of the session's middlewares."""
Context = Callable[[], Awaitable[Sequence[Msg]]]
"""The messages that led to the call, the newest last; fetched when it is asked for."""


async def directly(request: ModelRequest, ask: AskModel) -> ModelReply:
    """Where there are no middlewares."""
    return await ask(request)


@dataclass(frozen=True, slots=True)
class Case:
    """One call. Arguments, findings and messages are what models and strangers wrote: data, never instructions."""

    call_id: str
    tool: ToolDescriptor
    arguments: str
    """JSON text as it would run."""
    facts: CallFacts
    tainted: str
    """How words came into the context that nobody here vouches for; empty when none did."""
    context: Context
    model: str
    """Full name of the model to ask, for analyzers that ask one."""
    config: ModelConfig
    call_number: int
    around: Around = directly


@dataclass(frozen=True, slots=True)
class Finding:
    risk: Risk
    reason: str
    """A sentence for people, without its full stop."""
    usage: Usage | None = None
    """Of model calls that it made."""
    model: str = ""
    """That was asked, by the name of what answered."""
    notes: tuple[str, ...] = ()
    """What the model's API could not express of the request."""


class Analyzer(Protocol):
    """What it raises, and time that it takes beyond `chain.TIMEOUT_SECONDS`, count as a high risk."""

    async def analyze(self, case: Case) -> Finding: ...
