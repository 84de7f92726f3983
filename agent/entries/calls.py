"""Entries about the calls of a turn: what was found, what permission says, what people decide, what came of it."""

from typing import Literal

from longhaul.agent.entries.entry import Entry
from longhaul.agent.permission.facts import CallFacts, Confined
from longhaul.agent.permission.preview import Preview
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import ToolResultBlock, Usage
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.mcp_sampling import Sampled


class CallsExamined(Entry):
    """Fresh findings: after an edit, after the working directory moved, after a long wait."""

    kind: Literal["examined"] = "examined"
    facts: dict[str, CallFacts]
    user_rules: tuple[PermissionRule, ...] | None = sparse(None)
    """As in `Prepared`: they may have changed while calls waited."""
    user_rules_digest: str = sparse("")
    marked: dict[str, str] = sparse({})
    """Arguments with marks, by call id, of calls into which somebody else than the model wrote a secret."""
    usage: Usage | None = sparse(None)
    """What a model cost that was asked how risky they are."""
    model: str = sparse("")
    """That model, where something was left out when it was asked."""
    adjusted: tuple[str, ...] = sparse(())
    """What its API could not express of that, where the session was not told so of this model before."""


Ruling = Literal["allow", "deny", "ask", "external", "invalid", "stands", "later"]
"""`external`: allowed, and it runs outside. `invalid`: not a call that could run (unknown tool, broken arguments).
`stands`: a person is asked already, and nothing of the question has changed. `later`: nobody has to be asked as things
stand, and what becomes of it is said when the calls before it have their results."""


class Verdict(OpenValue):
    """What permission says about one call. Of a call that does not run, the model reads the reason."""

    call_id: str
    behavior: Ruling
    reason: str = sparse("")
    suggested_rules: tuple[PermissionRule, ...] = sparse(())
    warning: str = sparse("")
    """Of a call that runs: why people should know of it."""
    confined: Confined = sparse("")
    """Of a call that runs unasked: the sandbox that its proof is held to."""
    seen: str = sparse("")
    """Of a call that is asked about: its material (`agent.fold.ledger.approval_digest`), and below what a person is
    shown."""
    preview: Preview | None = sparse(None)


class CallsJudged(Entry):
    kind: Literal["judged"] = "judged"
    verdicts: tuple[Verdict, ...]


class DecisionGiven(OpenValue):
    """A person's word on one call."""

    call_id: str
    allow: bool
    reason: str = sparse("")
    input: str | None = sparse(None)
    """Other arguments to run with, as JSON; None = as the model wrote them."""
    rules: tuple[PermissionRule, ...] = sparse(())
    digest: str = sparse("")
    """Of what the person had before them; empty when they did not say."""


class HumanDecided(Entry):
    kind: Literal["decided"] = "decided"
    decisions: tuple[DecisionGiven, ...]
    approver: str = sparse("")
    key: str = sparse("")
    """Id of the key that it was signed with."""


class ToolReturned(Entry):
    """The one result of a call, whoever made it."""

    kind: Literal["returned"] = "returned"
    result: ToolResultBlock
    digest: str = sparse("")
    """Of the message; empty for results that no activity made."""
    tokens: int = sparse(0)
    """Of the message, as the worker counts; 0 for results that no activity made."""
    cwd: str | None = sparse(None)
    """The session's new working directory, when the call moved it."""
    runs_on: bool = sparse(False)
    """The call is over for its session, and its worker could not end what it does."""
    outside: bool = sparse(False)
    """Handed in from outside for an external tool."""
    sampled: Sampled | None = sparse(None)
    """What a model was asked in the name of its server."""
    snapshot: str = sparse("")
    """The commit, or the clone, that keeps the files as they were before the call; empty: none was kept."""


class ResultReceived(Entry):
    """A result from outside that may be too long for the context: a worker looks at it first."""

    kind: Literal["received"] = "received"
    result: ToolResultBlock


class PieceReceived(Entry):
    """A piece of a result that is still being made outside; the last one closes the call."""

    kind: Literal["piece"] = "piece"
    call_id: str
    text: str


class CallUnsettled(Entry):
    """The world had changed between the decision and the run; nothing was done, and it is decided again."""

    kind: Literal["unsettled"] = "unsettled"
    call_id: str
    facts: CallFacts
    reason: str
    input: str | None = sparse(None)
    """Other arguments, as JSON, that a middleware wants it to run with; None = as they were."""


CallEntry = CallsExamined | CallsJudged | HumanDecided | ToolReturned | ResultReceived | PieceReceived | CallUnsettled
