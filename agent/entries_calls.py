"""Entries about the calls of a turn: what was found, what permission says, what people decide, what came of it."""

from typing import Literal

from agent.entry import Entry
from agent.messages import ToolResultBlock, Usage
from agent.permission.facts import CallFacts
from agent.permission.rules import PermissionRule
from agent.preview import Preview
from agent.values import Guest, sparse


class CallsExamined(Entry):
    """Fresh findings: after an edit, after the working directory moved, after a long wait."""

    kind: Literal["examined"] = "examined"
    facts: dict[str, CallFacts]
    user_rules: tuple[PermissionRule, ...] | None = sparse(None)
    """As in `Prepared`: they may have changed while calls waited."""
    user_rules_digest: str = sparse("")
    usage: Usage | None = sparse(None)
    """What a model cost that was asked how risky they are."""


Ruling = Literal["allow", "deny", "ask", "external", "invalid"]
"""`external`: allowed, and it runs outside. `invalid`: not a call that could run (unknown tool, broken arguments)."""


class Verdict(Guest):
    """What permission says about one call. Of a call that does not run, the model reads the reason."""

    call_id: str
    behavior: Ruling
    reason: str = sparse("")
    suggested_rules: tuple[PermissionRule, ...] = sparse(())
    warning: str = sparse("")
    """Of a call that runs: why people should know of it."""
    seen: str = sparse("")
    """Of a call that is asked about: `agent.seen.material` of it, and below what a person is shown."""
    preview: Preview | None = sparse(None)


class CallsJudged(Entry):
    kind: Literal["judged"] = "judged"
    verdicts: tuple[Verdict, ...]


class Decision(Guest):
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
    decisions: tuple[Decision, ...]
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
    outside: bool = sparse(False)
    """Handed in from outside for an external tool."""


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
