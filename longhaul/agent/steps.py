"""The steps that a session can take next: what `agent.decision` answers and the workflow does."""

from dataclasses import dataclass
from typing import Literal

from longhaul.agent.entries import (
    BudgetEntry,
    CallAnswered,
    CallRuling,
    Joined,
    NotCompressed,
    Reminded,
    SleepStarted,
    StepStarted,
    ToolReturned,
)
from longhaul.agent.reducer.context_state import Cut
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, ToolResultBlock


@dataclass(frozen=True, slots=True)
class Restore:
    """Look for an earlier incarnation of this session."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Begin to write down outside what is not there yet; do not wait for it."""

    closing: bool = False
    """The session is about to close: the store is to say so, for a closed session's history goes after a while."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the session: all of it is written down, and nobody wants anything from it."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Start the first request of the queue: find tools and workspace. Or, in the midst of its reply, find the tools
    again."""

    reply_id: str


@dataclass(frozen=True, slots=True)
class Think:
    """Ask the model."""

    model: str
    closing: bool = False
    """The limit of iterations is reached: it may only say where things stand."""
    must_finish: bool = False
    """It has to call the finish function, where its provider can be told so."""


@dataclass(frozen=True, slots=True)
class Compress:
    """Make the context shorter."""

    cut: Cut


@dataclass(frozen=True, slots=True)
class Examine:
    """Look at these calls again before anybody decides on them."""

    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judge:
    """Write these verdicts down."""

    rulings: tuple[CallRuling, ...]


@dataclass(frozen=True, slots=True)
class Act:
    """Start these calls; do not wait for them."""

    call_ids: tuple[str, ...]
    fused: bool = False
    """They are reads within the session's own task (`agent.decisions.call_rulings`): wait for them. What has no result
    then goes its own way."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Write down what the session itself answers to a call, or that the call sleeps."""

    entry: CallAnswered | SleepStarted


@dataclass(frozen=True, slots=True)
class Remind:
    """Write down what the model is told again."""

    entry: Reminded


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Have a worker look at the result that was handed in for this call."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Have a worker check the signatures of these decisions."""

    decisions_at: int


@dataclass(frozen=True, slots=True)
class Probe:
    """Have the tool look whether this call happened, whose outcome is unknown."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Join:
    """Write down that the model is told what came in the midst of its reply."""

    entry: Joined


@dataclass(frozen=True, slots=True)
class BeginStep:
    """Write down that a paused session takes the step now that it was asked for."""

    entry: StepStarted


@dataclass(frozen=True, slots=True)
class Book:
    """Write down what is put aside for the next call, or that there is not enough left for it."""

    entry: BudgetEntry | NotCompressed | ToolReturned


@dataclass(frozen=True, slots=True)
class Park:
    """Wait until something is recorded."""

    waits_for: Literal["running calls", "person", "outside", "checkpoint", "resume"]


@dataclass(frozen=True, slots=True)
class HandleInterrupt:
    """Have the workers' hooks say what an agent says whose reply was interrupted."""


@dataclass(frozen=True, slots=True)
class Memorise:
    """Have the reply written down in the long-term memory of its user."""


@dataclass(frozen=True, slots=True)
class Finish:
    """End the reply."""

    reply_id: str
    reason: FinishedReason
    error: ErrorInfo | None = None
    closing: tuple[ToolResultBlock, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True)
class Tell:
    """Pass this on to the sub-agents of these calls; after an interrupt they have a moment to say how far they came."""

    operation: Literal["interrupt", "pause", "resume", "budget", "observe"]
    call_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Say to the session that started this one how the task ended."""


@dataclass(frozen=True, slots=True)
class TellAsker:
    """Say to the workflow that has asked for it how a request ended."""

    request_id: str


@dataclass(frozen=True, slots=True)
class TellHub:
    """Say to this hub what a reply came to."""

    hub: str
    reply_id: str


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Await the end of a command in the background that an earlier run of the session has started; one that no worker
    holds any more is lost."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do: wait for a request."""


@dataclass(frozen=True, slots=True)
class ContinueAsNew:
    """Go on in a new run with an empty history."""


Step = (
    Restore
    | Checkpoint
    | Close
    | Prepare
    | Think
    | Compress
    | Examine
    | Judge
    | Act
    | Answer
    | Remind
    | TakeIn
    | Probe
    | Verify
    | Join
    | BeginStep
    | Book
    | Park
    | HandleInterrupt
    | Memorise
    | Finish
    | Tell
    | Report
    | TellAsker
    | TellHub
    | TakeOver
    | Idle
    | ContinueAsNew
)
