"""The ledger of a session: all that follows from its entries, as plain data with a few words of its own."""

from dataclasses import dataclass, field
from typing import Any

from agent import entries as e
from agent.doubts import Doubt
from agent.forgotten import was_there
from agent.ledger_values import (
    NOWHERE,
    UNHEARD,
    Anchor,
    CheckpointTry,
    Finished,
    Forgotten,
    Handled,
    Heard,
    Mark,
)
from agent.messages import ErrorInfo, Msg, Usage
from agent.notices import Notice, NotifyTry
from agent.pause import Pause
from agent.permission.grants import may_come_from_a_store
from agent.permission.rules import PermissionContext, PermissionRule
from agent.settings import AgentSpec
from agent.sizes import outside_tokens
from agent.state import AgentState, OpenCall, ReplyContext
from agent.tools import ToolDescriptor

KEPT_REQUESTS = 1_000
"""Handled request ids that are remembered; an older id sent again would be a new request."""
KEPT_REFUSALS = 100
RESTORING = 2
"""The first format of sessions that look for an earlier life of their own and write checkpoints."""
COMPRESSING = 2
"""The first behaviour under which a context is made shorter."""
SUPERVISED = 3
"""The first behaviour under which people are reminded, plans are approved and agents that are stuck are stopped."""


@dataclass
class Ledger:
    """All that follows from the entries; `agent.fold` is what changes it."""

    state: AgentState
    spec: AgentSpec
    search_attributes: bool = True
    indexed: int = 1
    """As `entries.Prepared.indexed`."""
    log: list[e.AnyEntry] = field(default_factory=list[e.AnyEntry])
    seq: int = 0
    marks: list[Mark] = field(default_factory=list[Mark])
    """One to each message of the context."""
    transcript: list[Msg] = field(default_factory=list[Msg])
    """Every message from number `transcript_base` on, whatever became of the context."""
    transcript_base: int = 0
    epoch: int = 1
    """Counts the rewritings of the context; an address of an older one means messages that are gone."""
    anchor: Anchor = NOWHERE
    """Counted with the summary, which is the first message of a model's context when there is one."""
    context_tokens: int = 0
    """Of the context's messages and the summary, as workers count."""
    summary_tokens: int = 0
    fixed_tokens: int = 0
    window: int = 0
    heard: Heard = UNHEARD
    goal: tuple[int, int] = (0, 0)
    """Numbers of the first request's messages: from, up to."""
    newest: tuple[int, int] = (0, 0)
    """The same for the newest request that had any."""
    compress_asked: e.CompressAsked | None = None
    compressions: int = 0
    compressed_at: int = 0
    """Messages that there were at the last compression that changed something."""
    compression_failed_at: int = 0
    """Tokens of the context when a compression failed; 0 after one that worked."""
    last_compression_error: ErrorInfo | None = None
    spec_digest: str = ""
    system_prompt: str | None = None
    """As it was put together for model calls; None = as it stands in the spec."""
    prompt_digest: str = ""
    tools: dict[str, ToolDescriptor] = field(default_factory=dict[str, ToolDescriptor])
    user_rules: tuple[PermissionRule, ...] = ()
    """Those of the session's user; not in its state, which may be given to somebody else."""
    user_rules_digest: str = ""
    analyses: int = 0
    """Calls that a model was asked about."""
    ruled: int = 0
    """The newest entry that changed the mode or a rule."""
    workspace_root: str = ""
    workspace_nonce: str = ""
    format: int = 1
    restored: bool = True
    """Whether an earlier life of the session was looked for; nothing is done before."""
    generation: int = 1
    hold: str = ""
    """Why nothing is done until a person says so."""
    pause: Pause | None = None
    note: str = ""
    segments: list[e.Segment] = field(default_factory=list[e.Segment])
    saved: int = 0
    """Every entry up to this one stands in a segment."""
    mirrored: int = 0
    """The state as it was after this entry stands in the state store."""
    saved_messages: int = 0
    """Messages that there were then."""
    saved_seam: Any = None
    """`agent.history.seam_of` then; None = unknown."""
    ended: int = 0
    """The newest entry that ended a reply."""
    closing: bool = False
    """The store says that the session ends there."""
    changed: int = 0
    """The newest entry that is worth writing down."""
    checkpoint_failed: CheckpointTry | None = None
    latest_at: int = 0
    """When the newest entry was recorded."""
    active_at: int = 0
    """When something last happened, the passing of time not counted."""
    queue: list[e.RequestAccepted] = field(default_factory=list[e.RequestAccepted])
    steering: list[e.RequestAccepted] = field(default_factory=list[e.RequestAccepted])
    """Of those that are to join the reply that is being made, at its next step boundary."""
    joined: dict[str, str] = field(default_factory=dict[str, str])
    """By the reply id that such a request would have had: the reply that it has joined."""
    handled: dict[str, Handled] = field(default_factory=dict[str, Handled])
    finished: dict[str, Finished] = field(default_factory=dict[str, Finished])
    reminders: tuple[Msg, ...] = ()
    """What the model is told before it is asked again."""
    deferred: list[Msg] = field(default_factory=list[Msg])
    """Observed while calls were open: nothing may stand between a call and its result."""
    call_names: dict[str, str] = field(default_factory=dict[str, str])
    """The calls that there were, the oldest first, and the tools that they named. A roll-over takes the newest."""
    forgotten_calls: tuple[Forgotten, ...] = ()
    """Of all others it is only known that their ids are used."""
    offers: dict[int, e.DecisionsOffered] = field(default_factory=dict[int, e.DecisionsOffered])
    """Signed decisions that nobody has checked yet, by the number of their entry."""
    settled_offers: dict[int, str] = field(default_factory=dict[int, str])
    """Why the newest of those that were do not count; empty for one that does."""
    doubts: dict[str, Doubt] = field(default_factory=dict[str, Doubt])
    """By call id, the oldest first; settled ones are kept for a while, so that nobody settles them anew."""
    notices: dict[str, Notice] = field(default_factory=dict[str, Notice])
    """What somebody is still to be told of calls that wait, by key, the oldest first."""
    notify_failed: NotifyTry | None = None
    expired: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that were closed because nobody answered in time, and when: whoever answers late is told."""
    refusals: list[e.Refused] = field(default_factory=list[e.Refused])
    """The newest ones; older ones are forgotten, so that rubbish can't fill a session."""
    refused_count: int = 0
    model_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    weight: int = 0
    """Bytes that a roll-over would carry, at most, refusals not counted."""
    wrapped: bool = False
    """Whether its workers put middlewares around every agent."""
    hooked_interrupts: bool = False
    """Whether workers are asked what to say when the reply is interrupted."""
    parting: str | None = None
    """What they said, until the reply has ended; None: they were not asked."""
    request_context: dict[str, Any] = field(default_factory=dict[str, Any])
    """What came with the reply's request, for hooks and tools. Not in the state, which outlives the reply."""
    reply_start: int = 0
    """Number of the first message of the reply's request."""

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

    @property
    def calls(self) -> dict[str, OpenCall]:
        """Those of the reply that is being made, by id; none between replies."""
        return self.reply.calls if self.reply else {}

    @property
    def permission(self) -> PermissionContext:
        """Mode, and the rules of every scope; some may have expired."""
        context = self.state.permission_context
        of_user = self.user_rules
        if self.state.behaviour >= SUPERVISED:
            of_user = tuple(rule for rule in of_user if may_come_from_a_store(rule, context))
        return context.model_copy(update={"rules": (*context.rules, *of_user)}) if of_user else context

    def set_rules(self, rules: tuple[PermissionRule, ...]) -> None:
        """The session's own rules and its agent's; those of its user are not part of its state."""
        self.state.permission_context = self.state.permission_context.model_copy(update={"rules": rules})
        self.ruled = self.seq

    def set_user_rules(self, rules: tuple[PermissionRule, ...], digest: str) -> None:
        self.user_rules, self.user_rules_digest = rules, digest
        self.ruled = self.seq

    def had_call(self, call_id: str) -> bool:
        """Whether a call had this id; of one of long ago, perhaps so."""
        return call_id in self.call_names or was_there(self.forgotten_calls, call_id)

    @property
    def context_length(self) -> int:
        """Messages of a model's context: the summary, when there is one, is the first."""
        return len(self.state.context) + bool(self.state.summary)

    @property
    def messages_total(self) -> int:
        return self.transcript_base + len(self.transcript)

    def append(self, messages: tuple[Msg, ...], digest: str = "", tokens: int = 0) -> None:
        """Add to the context; `digest` and `tokens` when an activity made the one message."""
        for message in messages:
            counted = tokens or outside_tokens(message)
            self.marks.append(Mark(self.messages_total, digest, counted))
            self.transcript.append(message)
            self.state.context.append(message)
            self.context_tokens += counted

    def hear(self, messages: tuple[Msg, ...]) -> None:
        """Add to the context as soon as it may be: nothing may stand between a call and its result."""
        if self.reply and self.reply.calls:
            self.deferred.extend(messages)
        else:
            self.append(messages)
