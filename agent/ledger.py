"""The ledger of a session: all that follows from its entries, as plain data with a few words of its own."""

from dataclasses import dataclass, field
from typing import NamedTuple

from agent import entries as e
from agent.messages import ErrorInfo, FinishedReason, Msg, Usage
from agent.permission.rules import PermissionRule
from agent.settings import AgentSpec
from agent.state import AgentState, ReplyContext
from agent.tools import ToolDescriptor

KEPT_REQUESTS = 1_000
"""Handled request ids that are remembered; an older id sent again would be a new request."""
KEPT_REFUSALS = 100


class Anchor(NamedTuple):
    """The longest context that some model call has seen whole."""

    digest: str
    length: int


@dataclass(frozen=True, slots=True)
class Handled:
    """A request id that was accepted."""

    reply_id: str
    body_digest: str


@dataclass(frozen=True, slots=True)
class Finished:
    """How a reply ended. Its text is in the context, under its id."""

    reply_id: str
    request_id: str
    reason: FinishedReason
    at: int
    error: ErrorInfo | None
    usage: Usage
    start: int
    end: int
    """Its messages lie in `context[start:end]`."""


NOWHERE = Anchor("", 0)


@dataclass
class Ledger:
    """All that follows from the entries; `agent.fold` is what changes it."""

    state: AgentState
    spec: AgentSpec
    search_attributes: bool = True
    log: list[e.AnyEntry] = field(default_factory=list[e.AnyEntry])
    seq: int = 0
    digests: list[str] = field(default_factory=list[str])
    """To each message of the context, the digest that the activity gave which made it. Empty when none did: the
    message then travels inline."""
    anchor: Anchor = NOWHERE
    spec_digest: str = ""
    tools: dict[str, ToolDescriptor] = field(default_factory=dict[str, ToolDescriptor])
    workspace_root: str = ""
    workspace_nonce: str = ""
    queue: list[e.RequestAccepted] = field(default_factory=list[e.RequestAccepted])
    handled: dict[str, Handled] = field(default_factory=dict[str, Handled])
    finished: dict[str, Finished] = field(default_factory=dict[str, Finished])
    deferred: list[Msg] = field(default_factory=list[Msg])
    """Observed while calls were open: nothing may stand between a call and its result."""
    call_names: dict[str, str] = field(default_factory=dict[str, str])
    """Every call id ever used, and the tool that it named."""
    refusals: list[e.Refused] = field(default_factory=list[e.Refused])
    """The newest ones; older ones are forgotten, so that rubbish can't fill a session."""
    refused_count: int = 0
    model_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    weight: int = 0
    """Bytes that a roll-over would carry, at most, refusals not counted."""
    reply_start: int = 0

    @property
    def reply(self) -> ReplyContext | None:
        """The reply that is being made."""
        return self.state.reply_context

    @property
    def current(self) -> ReplyContext:
        """The same, for entries that only stand in a reply. ValueError is a defect of whoever recorded one."""
        if self.reply is None:
            raise ValueError("this entry needs a reply that is being made, and there is none")
        return self.reply

    def add_rules(self, rules: tuple[PermissionRule, ...]) -> None:
        """Add the rules that are not there yet, whatever their source."""
        context = self.state.permission_context
        known = {(rule.tool_name, rule.rule_content, rule.behavior) for rule in context.rules}
        new = tuple(rule for rule in rules if (rule.tool_name, rule.rule_content, rule.behavior) not in known)
        self.state.permission_context = context.model_copy(update={"rules": (*context.rules, *new)})

    def append(self, messages: tuple[Msg, ...], digest: str = "") -> None:
        """Add to the context; `digest` when an activity made the one message."""
        self.state.context.extend(messages)
        self.digests.extend(digest for _ in messages)
