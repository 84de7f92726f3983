"""What a security analyzer gets and gives: one call before it runs, and how risky it is."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from agent.messages import Msg, Usage
from agent.permission.facts import CallFacts
from agent.permission.rules import Risk
from agent.settings import ModelConfig
from agent.tools import ToolDescriptor

Context = Callable[[], Awaitable[Sequence[Msg]]]
"""The messages that led to the call, the newest last; fetched when it is asked for."""


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


@dataclass(frozen=True, slots=True)
class Finding:
    risk: Risk
    reason: str
    """A sentence for people, without its full stop."""
    usage: Usage | None = None
    """Of model calls that it made."""


class Analyzer(Protocol):
    """What it raises, and time that it takes beyond `chain.TIMEOUT_SECONDS`, count as a high risk."""

    async def analyze(self, case: Case) -> Finding: ...
