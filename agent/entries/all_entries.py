"""The recorded entries: everything that ever happened in a session, in order.

The state is a fold over them (`agent.fold`), so they are the only thing that has to survive a roll-over.
Names are past tense: an entry can't be refused any more. Activities return entries as they stand, so nothing
is translated on the way from the world into the record.
"""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from longhaul.agent.entries.background import *
from longhaul.agent.entries.budget import *
from longhaul.agent.entries.calls import *
from longhaul.agent.entries.context import *
from longhaul.agent.entries.deadlines import *
from longhaul.agent.entries.doubts import *
from longhaul.agent.entries.entry import *
from longhaul.agent.entries.hubs import *
from longhaul.agent.entries.life import *
from longhaul.agent.entries.pausing import *
from longhaul.agent.entries.prepared import *
from longhaul.agent.entries.repairs import Repair
from longhaul.agent.entries.requests import *
from longhaul.agent.entries.rules import *
from longhaul.agent.entries.server_questions import *
from longhaul.agent.entries.session_tools import *
from longhaul.agent.entries.signed_approvals import *
from longhaul.agent.entries.sleep import *
from longhaul.agent.entries.subagents import *
from longhaul.agent.permission.facts import CallFacts
from longhaul.agent.plain.values import sparse
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg, Usage
from longhaul.agent.values.conversation.stop_reasons import StopReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import Parent


class SessionOpened(Entry):
    """The first entry: who talks with which agent."""

    kind: Literal["opened"] = "opened"
    session_id: str
    user_id: str | None = sparse(None)
    spec: AgentSpec
    search_attributes: bool = sparse(True)
    """Recorded, because workflow code may not read a setting that can differ at replay."""
    parent: Parent | None = sparse(None)
    """Of a sub-agent."""


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
    unmarked: dict[str, str] = sparse({})
    """Arguments as the model wrote them, by call id, of calls that hold a secret: they run, and nobody is shown them.
    The message has marks."""
    marked: dict[int, Msg] = sparse({})
    """Messages of the context without the secrets that somebody wrote into them, by place in a model's context."""
    words: dict[str, str] = sparse({})
    """What people wrote beside messages, without such secrets, by its place in the log (`agent.fold.ledger.words`)."""
    model: str = sparse("")
    stop_reason: str = sparse("")
    """The provider's own word, and what it comes to."""
    stop: StopReason = sparse(StopReason.END)
    asked: str = sparse("")
    """Of a refusal: the model as the agent names it, so that another one is asked next."""
    refusal: str = sparse("")
    """What the provider said of it, beside the message."""
    sent_digest: str = sparse("")
    """Of the system prompt as hooks made it; empty: it was sent as it is recorded."""
    dropped_calls: int = sparse(0)
    """How many it made beyond `batches.CALLS_OF_A_TURN`: they stand nowhere."""
    cut_short: bool = sparse(False)
    """It was interrupted while it spoke: the message is what clients had read by then, without calls."""
    begun_calls: tuple[str, ...] = sparse(())
    """Tools of the calls that it was writing then: they are dropped."""
    repair: Repair | None = sparse(None)
    """What the context was sent without, so that it could answer."""
    adjusted: tuple[str, ...] = sparse(())
    """What the provider's API could not express of the request or of the answer, where the session was not told so of
    this model before."""
    lost_attempts: int = sparse(0)
    """Earlier attempts at this call that may have been billed."""
    lost: Usage | None = sparse(None)
    """An estimate of what they were asked and had answered, of which no provider has told anybody."""
    reads: dict[str, ToolReturned | None] = sparse({})
    """What its calls have read at once, by call id; None: it has to go its own way. No part of the record: the session
    judges these calls like any others, and writes down what it allows."""
    goes_on: bool = sparse(False)
    """It is a step of an agent kind, which is asked for the next one: no answer yet, although it calls nothing."""


class ModelFailed(Entry):
    """A model gave up for good; the fallback model, if there is one, is next."""

    kind: Literal["model_failed"] = "model_failed"
    model: str
    error: ErrorInfo


class LetterRefused(Entry):
    """A signal or update that changed nothing, and why."""

    kind: Literal["refused"] = "refused"
    name: str
    reason: Written
    count: int = 0
    """How many there have been with this one: the older ones are not carried on."""


SingleEntry = (
    SessionOpened
    | Observed
    | Prepared
    | ModelSaid
    | ModelFailed
    | LetterRefused
    | Configured
    | RulesChanged
    | DeadlineReached
)
"""Those whose subject has not several that go together."""
AnyEntry = Annotated[
    SingleEntry
    | RequestEntry
    | CallEntry
    | OfferEntry
    | ContextEntry
    | DoubtEntry
    | InsideEntry
    | PauseEntry
    | SleepEntry
    | InputEntry
    | ChildEntry
    | BackgroundEntry
    | HubEntry
    | BudgetEntry
    | LifeEntry,
    Field(discriminator="kind"),
]
"""Each file beside this one says which entries are of its subject."""


CallOutcome = ToolReturned | CallUnsettled | InputAsked


class ToolOutcome(RootModel[Annotated[CallOutcome, Field(discriminator="kind")]]):
    """What a tool's activity answers: one of these, as it stands."""
