"""The recorded entries: everything that ever happened in a session, in order.

The state is a fold over them (`agent.fold`), so they are the only thing that has to survive a roll-over.
Names are past tense: an entry can't be refused any more. Activities return entries as they stand, so nothing
is translated on the way from the world into the record.
"""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from agent.entries_calls import CallsExamined as CallsExamined
from agent.entries_calls import CallsJudged as CallsJudged
from agent.entries_calls import CallUnsettled as CallUnsettled
from agent.entries_calls import Decision as Decision
from agent.entries_calls import HumanDecided as HumanDecided
from agent.entries_calls import PieceReceived as PieceReceived
from agent.entries_calls import ResultReceived as ResultReceived
from agent.entries_calls import Ruling as Ruling
from agent.entries_calls import ToolReturned as ToolReturned
from agent.entries_calls import Verdict as Verdict
from agent.entries_context import CompressAsked as CompressAsked
from agent.entries_context import CompressionFailed as CompressionFailed
from agent.entries_context import ContextCompressed as ContextCompressed
from agent.entries_doubts import DoubtProbed as DoubtProbed
from agent.entries_doubts import DoubtSettled as DoubtSettled
from agent.entries_inside import CallAnswered as CallAnswered
from agent.entries_inside import Reminded as Reminded
from agent.entries_kept import Checkpointed as Checkpointed
from agent.entries_kept import CheckpointFailed as CheckpointFailed
from agent.entries_kept import Restored as Restored
from agent.entries_kept import RestoreFailed as RestoreFailed
from agent.entries_kept import Resumed as Resumed
from agent.entries_kept import Segment as Segment
from agent.entries_kept import StateReplaced as StateReplaced
from agent.entries_kept import TimeReached as TimeReached
from agent.entries_kept import WorkerLeft as WorkerLeft
from agent.entries_offered import DecisionsOffered as DecisionsOffered
from agent.entries_offered import OfferSettled as OfferSettled
from agent.entries_paused import Paused as Paused
from agent.entries_paused import StepAsked as StepAsked
from agent.entries_paused import StepBegun as StepBegun
from agent.entries_paused import Unpaused as Unpaused
from agent.entries_prepared import Prepared as Prepared
from agent.entries_requests import InterruptAsked as InterruptAsked
from agent.entries_requests import InterruptHandled as InterruptHandled
from agent.entries_requests import Joined as Joined
from agent.entries_requests import ReplyStarted as ReplyStarted
from agent.entries_requests import RequestAccepted as RequestAccepted
from agent.entries_requests import RequestDropped as RequestDropped
from agent.entries_rules import Configured as Configured
from agent.entries_rules import RulesChanged as RulesChanged
from agent.entries_waiting import DeadlineReached as DeadlineReached
from agent.entries_waiting import Due as Due
from agent.entry import Entry as Entry
from agent.messages import ErrorInfo, FinishedReason, Msg, ToolResultBlock
from agent.permission.facts import CallFacts
from agent.settings import AgentSpec
from agent.values import sparse


class SessionOpened(Entry):
    """The first entry: who talks with which agent."""

    kind: Literal["opened"] = "opened"
    session_id: str
    user_id: str | None = sparse(None)
    spec: AgentSpec
    search_attributes: bool = sparse(True)
    """Recorded, because workflow code may not read a setting that can differ at replay."""
    format: int = sparse(1)
    """2 = the session looks for an earlier life of its own, writes checkpoints, and closes when it is idle."""


class Observed(Entry):
    """Messages for the context that ask for no reply."""

    kind: Literal["observed"] = "observed"
    messages: tuple[Msg, ...]


class ModelSaid(Entry):
    kind: Literal["model_said"] = "model_said"
    message: Msg
    digest: str = sparse("")
    """Of the message; empty when the record changed the message after the activity made it."""
    context_digest: str = sparse("")
    """Of the whole context up to and with this message."""
    context_length: int = sparse(0)
    tokens: int = sparse(0)
    """Of the message, as the worker counts; the provider's own numbers are in `message.usage`."""
    input_estimate: int = sparse(0)
    """Of all that was sent, as the worker counts: against the reported number it tells how far off counting is."""
    facts: dict[str, CallFacts] = sparse({})
    """By call id."""
    model: str = sparse("")
    stop_reason: str = sparse("")
    sent_digest: str = sparse("")
    """Of the system prompt as hooks made it; empty: it was sent as it is recorded."""


class ModelFailed(Entry):
    """A model gave up for good; the fallback model, if there is one, is next."""

    kind: Literal["model_failed"] = "model_failed"
    model: str
    error: ErrorInfo


class Refused(Entry):
    """A signal or update that changed nothing, and why."""

    kind: Literal["refused"] = "refused"
    name: str
    reason: str
    count: int = 0
    """How many there have been with this one: the older ones are not carried on."""


class ReplyFinished(Entry):
    kind: Literal["finished"] = "finished"
    reply_id: str
    reason: FinishedReason
    error: ErrorInfo | None = sparse(None)
    closing: tuple[ToolResultBlock, ...] = sparse(())
    """Results for the calls that were still open."""
    said: str = sparse("")
    """The agent's last words, behind them: of a reply that was interrupted."""


AnyEntry = Annotated[
    SessionOpened
    | Restored
    | RestoreFailed
    | Resumed
    | Paused
    | Unpaused
    | StepAsked
    | StepBegun
    | Checkpointed
    | CheckpointFailed
    | StateReplaced
    | TimeReached
    | WorkerLeft
    | RequestAccepted
    | RequestDropped
    | Joined
    | Observed
    | CompressAsked
    | Configured
    | RulesChanged
    | ReplyStarted
    | Prepared
    | ModelSaid
    | ModelFailed
    | ContextCompressed
    | CompressionFailed
    | CallsExamined
    | CallsJudged
    | HumanDecided
    | DeadlineReached
    | ToolReturned
    | CallAnswered
    | Reminded
    | ResultReceived
    | PieceReceived
    | CallUnsettled
    | DoubtProbed
    | DecisionsOffered
    | OfferSettled
    | DoubtSettled
    | InterruptAsked
    | InterruptHandled
    | Refused
    | ReplyFinished,
    Field(discriminator="kind"),
]


class ToolOutcome(RootModel[Annotated[ToolReturned | CallUnsettled, Field(discriminator="kind")]]):
    """What a tool's activity answers: one of the two, as it stands."""
