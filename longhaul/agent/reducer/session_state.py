"""The session state of a session: all that follows from its entries, as plain data, and the parts that it is made of.

Ids of old calls are kept in a Bloom filter, three bytes each. It never misses one; when it is full it takes one
new id in eight hundred for an old one, and that call gets an id of our own.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from hashlib import blake2b
from typing import Annotated, Any, NamedTuple, Self, TypeVar

from pydantic import Field

from longhaul.agent import entries as e
from longhaul.agent.entries import ExternalEventReceived, Notification, NotifyTry, Pause, UnknownOutcome
from longhaul.agent.permission.rulebook import may_come_from_a_store
from longhaul.agent.reducer.agent_state import AgentState, OpenCall, ReplyContext
from longhaul.agent.values.budget import NO_CALLS_BEFORE, NOTHING_SPENT, Account, CallsBefore, ModelSpent
from longhaul.agent.values.conversation.messages import ErrorInfo, FinishedReason, Msg, Usage, outside_tokens
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.hubs import Membership
from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.prompt_cache import Missed, MissReason, PromptSent
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import Asker, BackgroundCommand, Child, Parent


class CachedPrefix(NamedTuple):
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
    """Numbers of its messages and of its request's: from, up to."""
    started_at: int = 0
    """As its REPLY_START says it; its first messages may be gone from the journal when it ends."""


NOWHERE = CachedPrefix("", 0)


class Mark(NamedTuple):
    """What is known of one message of the context beside its text."""

    number: int
    """Counts all messages that the session ever had, from 0."""
    digest: str
    """As the activity gave it that made the message. Empty when none did: the message then travels inline."""
    tokens: int


class Forgotten(NamedTuple):
    """What is kept of call ids of long ago (`agent.reducer.session_state`)."""

    calls: int
    """How many are in it."""
    bits: str
    """In base 64."""


class CheckpointTry(NamedTuple):
    """A checkpoint that failed."""

    changed: int
    """What `Keeping.changed` was then: the same state is not tried again at once."""
    events: int
    """Length of the history then."""
    error: ErrorInfo


class Heard(NamedTuple):
    """The size of what the last model call was sent: as the worker counted it, and as the provider did."""

    estimated: int
    reported: int
    counted: int
    """What the session state's own sum was then; -1 when the context has been rewritten since."""


UNHEARD = Heard(0, 0, -1)


@dataclass
class Requests:
    """Requests that wait or have ended, and what came with the one that is being answered."""

    queue: list[e.RequestAccepted] = field(default_factory=list[e.RequestAccepted])
    steering: list[e.RequestAccepted] = field(default_factory=list[e.RequestAccepted])
    """Of those that are to join the reply that is being made, at its next step boundary."""
    joined: dict[str, str] = field(default_factory=dict[str, str])
    """By the reply id that such a request would have had: the reply that it has joined."""
    handled: dict[str, Handled] = field(default_factory=dict[str, Handled])
    finished: dict[str, Finished] = field(default_factory=dict[str, Finished])
    ended: int = 0
    """The newest entry that ended a reply."""
    request_context: dict[str, Any] = field(default_factory=dict[str, Any])
    """What came with the reply's request, for hooks and tools. Not in the state, which outlives the reply."""
    reply_start: int = 0
    """Number of the first message of the reply's request."""
    interrupted: bool = False
    """Somebody has interrupted the reply. Not in the state: whoever goes on from one is not to stop at once."""
    parting: str | None = None
    """What workers said to an interrupt, until the reply has ended; None: they were not asked."""


@dataclass
class Context:
    """What is known of the messages beside their text: those of the context, and those that have left it."""

    marks: list[Mark] = field(default_factory=list[Mark])
    """One to each message of the context."""
    transcript: list[Msg] = field(default_factory=list[Msg])
    """Every message from number `transcript_base` on, whatever became of the context."""
    transcript_base: int = 0
    epoch: int = 1
    """Counts the rewritings of the context; an address of an older one means messages that are gone."""
    cached_prefix: CachedPrefix = NOWHERE
    """Counted with the summary, which is the first message of a model's context when there is one."""
    tokens: int = 0
    """Of the context's messages and the summary, as workers count."""
    summary_tokens: int = 0
    heard: Heard = UNHEARD
    goal: tuple[int, int] = (0, 0)
    """Numbers of the first request's messages: from, up to."""
    newest: tuple[int, int] = (0, 0)
    """The same for the newest request that had any."""
    reminders: tuple[Msg, ...] = ()
    """What the model is told before it is asked again."""
    deferred: list[Msg] = field(default_factory=list[Msg])
    """Observed while calls were open: nothing may stand between a call and its result."""
    takes_no_images: list[str] = field(default_factory=list[str])
    """Models, by their full names, whose providers have said so."""
    shown_groups: Annotated[tuple[str, ...], Field(exclude_if=lambda groups: not groups)] = ()
    """Tool groups that were active and are no more, since the context was rewritten last: their tools are still sent,
    for without them the provider would read all of it again. A call of one is refused."""
    sent: Annotated[PromptSent | None, Field(exclude_if=lambda sent: sent is None)] = None
    """Of the newest model call: what a provider may have cached."""
    adjusted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What was told of models' requests, each once: the model as the agent names it, and the sentence."""


@dataclass
class Compaction:
    """When the context was made shorter, or was not."""

    asked: e.CompressAsked | None = None
    tries: int = 0
    changed_at: int = 0
    """Messages that there were at the last compression that changed something."""
    failed_at: int = 0
    """Tokens of the context when a compression failed; 0 after one that worked."""
    error: ErrorInfo | None = None
    """Of the newest one, if it failed."""


class ToldPrompt(NamedTuple):
    """A newer system prompt, which the model was told at the end of its context: what stands before the messages stays
    as it was until the context is rewritten anyway, or the provider would read all of it again."""

    text: str
    digest: str
    spec_digest: str
    fixed_tokens: int


@dataclass
class Provided:
    """What the worker that prepared the reply gave to it."""

    spec_digest: str = ""
    system_prompt: str | None = None
    """As it was put together for model calls; None = as it stands in the spec."""
    prompt_digest: str = ""
    told: Annotated[ToldPrompt | None, Field(exclude_if=lambda told: told is None)] = None
    tools: dict[str, ToolDescriptor] = field(default_factory=dict[str, ToolDescriptor])
    fixed_tokens: int = 0
    window: int = 0
    workspace_root: str = ""
    workspace_nonce: str = ""
    wrapped: bool = False
    """Whether its workers put middlewares around every agent."""
    hooked_interrupts: bool = False
    """Whether workers are asked what to say when the reply is interrupted."""
    indexed: int = 1
    """As in `entries.Prepared`."""
    left_out: Annotated[tuple[str, ...], Field(exclude_if=lambda sentences: not sentences)] = ()
    """As in `entries.Prepared`."""
    outdated: Annotated[tuple[str, ...], Field(exclude_if=lambda servers: not servers)] = ()
    """MCP servers that have said since that they offer other tools."""

    def take_told_prompt(self) -> None:
        """The context is new, or another provider's: a system prompt that was told becomes the one that is sent."""
        if self.told is not None:
            self.system_prompt, self.prompt_digest, self.spec_digest, self.fixed_tokens = self.told
            self.told = None


@dataclass
class Rules:
    """Rules that are not in the session's state."""

    of_user: tuple[PermissionRule, ...] = ()
    """Those of the session's user; not in its state, which may be given to somebody else."""
    user_digest: str = ""
    changed: int = 0
    """The newest entry that changed the mode or a rule, whosever it was."""


@dataclass
class KnownCalls:
    """Calls that there were. Those that are open are in the reply that is being made."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    """The calls that there were, the oldest first, and the tools that they named. A continue-as-new takes the
    newest."""
    forgotten: tuple[Forgotten, ...] = ()
    """Of all others it is only known that their ids are used."""
    unmarked: dict[str, str] = field(default_factory=dict[str, str])
    """Arguments with the secrets that they hold, by call id, where no worker could put these in: of calls that have no
    result yet, or none for certain. Nobody is shown them, and they are no part of the state, which is."""
    expired: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that were closed because nobody answered in time, and when: whoever answers late is told."""


@dataclass
class UnverifiedDecisions:
    """Signed decisions."""

    waiting: dict[int, e.DecisionsReceived] = field(default_factory=dict[int, e.DecisionsReceived])
    """Those that nobody has checked yet, by the number of their entry."""
    resolved: dict[int, str] = field(default_factory=dict[int, str])
    """Why the newest of those that were do not count; empty for one that does."""


@dataclass
class Notifications:
    """What people are told of calls that wait."""

    unsent: dict[str, Notification] = field(default_factory=dict[str, Notification])
    """What somebody is still to be told, by key, the oldest first."""
    failed: NotifyTry | None = None


@dataclass
class ExternalEvents:
    """What somebody outside has told of."""

    kept: list[ExternalEventReceived] = field(default_factory=list[ExternalEventReceived])
    """Of those that nobody has waited for yet, the oldest first."""
    handled: dict[str, str] = field(default_factory=dict[str, str])
    """Digests of the newest ones, by request id: one that is sent again counts once."""


@dataclass
class Refusals:
    """Operations that were refused."""

    newest: list[e.OperationRefused] = field(default_factory=list[e.OperationRefused])
    """Older ones are forgotten, so that malformed input can't fill a session."""
    count: int = 0


@dataclass
class Incarnation:
    """How the session stands in its incarnation, and what it waits for before it goes on."""

    restored: bool = True
    """Whether an earlier incarnation of the session was looked for; nothing is done before."""
    number: int = 1
    quarantine: str = ""
    """Why nothing is done until a person says so."""
    note: str = ""
    lacking: e.WorkerLacks | None = None
    """What the step that is to be taken waits for, as a worker told it that could not take it."""

    @property
    def host_unavailable(self) -> str:
        """Why the session is parked: the host of its workspace is away. Empty: it is not."""
        return self.lacking.why if self.lacking is not None and self.lacking.host else ""


@dataclass
class Keeping:
    """What of the session is kept outside."""

    segments: list[e.Segment] = field(default_factory=list[e.Segment])
    saved: int = 0
    """Every entry up to this one stands in a segment."""
    saved_messages: int = 0
    """Messages that there were then."""
    saved_boundary: Any = None
    """`agent.incarnation.history.boundary_of` then; None = unknown."""
    mirrored: int = 0
    """The state as it was after this entry stands in the state store."""
    closing: bool = False
    """The store says that the session ends there."""
    changed: int = 0
    """The newest entry that is worth writing down."""
    active_at: int = 0
    """When something last happened, the passing of time not counted."""
    failed: CheckpointTry | None = None


@dataclass
class Spent:
    """What the session has used up since it began."""

    before: Annotated[CallsBefore, Field(exclude_if=lambda before: before == NO_CALLS_BEFORE)] = NO_CALLS_BEFORE
    """None of it was used up here."""
    model_calls: int = 0
    analyses: int = 0
    """Calls that a model was asked about."""
    samples: Annotated[int, Field(exclude_if=lambda number: not number)] = 0
    """Calls of models that MCP servers have had asked."""
    usage: Usage = field(default_factory=Usage)
    by_model: Annotated[dict[str, ModelSpent], Field(exclude_if=lambda models: not models)] = field(
        default_factory=dict[str, ModelSpent]
    )
    """By the names that the models answer under."""
    cache_missed: Annotated[dict[MissReason, Missed], Field(exclude_if=lambda missed: not missed)] = field(
        default_factory=dict[MissReason, Missed]
    )
    """What providers' caches should have served and did not, by why."""
    lost: Annotated[ModelSpent, Field(exclude_if=lambda lost: lost == NOTHING_SPENT)] = NOTHING_SPENT
    """Of attempts at calls that were lost with their worker or broke off, and that nobody has told the use of."""


KEPT_NAMES = 200
"""The newest calls, which are known by name."""
FILTER_CALLS = 8_000
_FILTER_BYTES = 2**14
_PROBES = 5


def was_there(forgotten: tuple[Forgotten, ...], call_id: str) -> bool:
    """Whether the id was used, or perhaps so."""
    places = _places(call_id)
    return any(_holds(base64.b64decode(filled.bits), places) for filled in forgotten)


def forget(
    names: Mapping[str, str], forgotten: tuple[Forgotten, ...], needed: Mapping[str, object]
) -> tuple[dict[str, str], tuple[Forgotten, ...]]:
    """The names of the newest calls, and of those that are needed; and what is kept of all others."""
    old = [call_id for call_id in list(names)[: -KEPT_NAMES or None] if call_id not in needed]
    gone = set(old)
    for start in range(0, len(old), FILTER_CALLS):
        forgotten = _with(forgotten, old[start : start + FILTER_CALLS])
    return {call_id: name for call_id, name in names.items() if call_id not in gone}, forgotten


def _with(forgotten: tuple[Forgotten, ...], call_ids: list[str]) -> tuple[Forgotten, ...]:
    """No more ids than one filter holds."""
    if not forgotten or forgotten[-1].calls + len(call_ids) > FILTER_CALLS:
        forgotten = (*forgotten, Forgotten(0, _text(bytearray(_FILTER_BYTES))))
    newest = forgotten[-1]
    bits = bytearray(base64.b64decode(newest.bits))
    for call_id in call_ids:
        for place in _places(call_id):
            bits[place >> 3] |= 1 << (place & 7)
    return (*forgotten[:-1], Forgotten(newest.calls + len(call_ids), _text(bits)))


def _text(bits: bytearray) -> str:
    return base64.b64encode(bits).decode("ascii")


def _holds(bits: bytes, places: list[int]) -> bool:
    return all(bits[place >> 3] & (1 << (place & 7)) for place in places)


def _places(call_id: str) -> list[int]:
    digest = blake2b(call_id.encode("utf-8", "surrogatepass"), digest_size=4 * _PROBES).digest()
    return [int.from_bytes(digest[at : at + 4], "big") % (8 * _FILTER_BYTES) for at in range(0, len(digest), 4)]


KEPT_REQUESTS = 1_000
"""Handled request ids that are remembered; an older id sent again would be a new request."""
KEPT_REFUSALS = 100
KEPT_ADJUSTMENTS = 200

Part = TypeVar("Part")


@dataclass
class SessionState:
    """All that follows from the entries, in parts by subject; `agent.reducer` is what changes it."""

    state: AgentState
    spec: AgentSpec
    search_attributes: bool = True
    log: list[e.AnyEntry] = field(default_factory=list[e.AnyEntry])
    seq: int = 0
    latest_at: int = 0
    """When the newest entry was recorded."""
    requests: Requests = field(default_factory=Requests)
    context: Context = field(default_factory=Context)
    compaction: Compaction = field(default_factory=Compaction)
    provided: Provided = field(default_factory=Provided)
    rules: Rules = field(default_factory=Rules)
    calls: KnownCalls = field(default_factory=KnownCalls)
    unverified: UnverifiedDecisions = field(default_factory=UnverifiedDecisions)
    unknown_outcomes: dict[str, UnknownOutcome] = field(default_factory=dict[str, UnknownOutcome])
    """By call id, the oldest first; settled ones are kept for a while, so that nobody settles them again."""
    notifications: Notifications = field(default_factory=Notifications)
    pause: Pause | None = None
    external_events: Annotated[
        ExternalEvents | None, Field(exclude_if=lambda external_events: external_events is None)
    ] = None
    """None in a session that nobody has told of an event: it costs nothing in what is carried."""
    parent: Parent | None = None
    """Of a sub-agent: who started it."""
    askers: Annotated[dict[str, Asker], Field(exclude_if=lambda askers: not askers)] = field(
        default_factory=dict[str, Asker]
    )
    """By request id, the oldest first: workflows that wait for its end, and the newest that could not be told."""
    children: dict[str, Child] = field(default_factory=dict[str, Child])
    """Sub-agents by the call that started them, the oldest first: those at work, and the newest that have ended."""
    commands: Annotated[dict[str, BackgroundCommand], Field(exclude_if=lambda commands: not commands)] = field(
        default_factory=dict[str, BackgroundCommand]
    )
    """In the background, by the call that began them, the oldest first: those that run, and the newest that ended."""
    hubs: Annotated[dict[str, Membership], Field(exclude_if=lambda hubs: not hubs)] = field(
        default_factory=dict[str, Membership]
    )
    """By the id of the hub's workflow: those that the session is in, and the newest that it has left."""
    refused: Refusals = field(default_factory=Refusals)
    incarnation: Incarnation = field(default_factory=Incarnation)
    keeping: Keeping = field(default_factory=Keeping)
    spent: Spent = field(default_factory=Spent)
    account: Account | None = None
    """Of a session with a budget."""

    def twin(self) -> Self:
        """The same in parts of its own: what is set in one is not set in the other."""
        twin = _copied(self)
        for name, part in vars(self).items():
            if is_dataclass(part):
                setattr(twin, name, _copied(part))
        return twin

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
    def interrupted(self) -> bool:
        """Whether somebody has interrupted the reply that is being made."""
        return self.reply is not None and self.requests.interrupted

    @property
    def open_calls(self) -> dict[str, OpenCall]:
        """Those of the reply that is being made, by id; none between replies."""
        return self.reply.calls if self.reply else {}

    @property
    def permission(self) -> PermissionContext:
        """Mode, and the rules of every scope; some may have expired."""
        context = self.state.permission_context
        of_user = tuple(rule for rule in self.rules.of_user if may_come_from_a_store(rule, context))
        return context.model_copy(update={"rules": (*context.rules, *of_user)}) if of_user else context

    @property
    def marks_secrets(self) -> bool:
        """Whether workers put secrets into what runs, and the journal holds marks alone."""
        return self.spec.secrets is not None and self.spec.secrets.mark

    def keep_unmarked(self, call_id: str, arguments: str) -> None:
        """What runs of a call that is shown with marks; empty: what is shown."""
        if arguments or call_id in self.calls.unmarked:
            # A new table: a copy of the session state has the same one.
            others = {key: kept for key, kept in self.calls.unmarked.items() if key != call_id}
            self.calls.unmarked = {**others, call_id: arguments} if arguments else others

    def set_rules(self, rules: tuple[PermissionRule, ...]) -> None:
        """The session's own rules and its agent's; those of its user are not part of its state."""
        self.state.permission_context = self.state.permission_context.model_copy(update={"rules": rules})
        self.rules.changed = self.seq

    def set_user_rules(self, rules: tuple[PermissionRule, ...], digest: str) -> None:
        self.rules.of_user, self.rules.user_digest = rules, digest
        self.rules.changed = self.seq

    def had_call(self, call_id: str) -> bool:
        """Whether a call had this id; of one of long ago, perhaps so."""
        return call_id in self.calls.names or was_there(self.calls.forgotten, call_id)

    @property
    def calls_so_far(self) -> CallsBefore:
        """Calls of models by number: of this session, on top of those of the one that it is a copy of."""
        before = self.spent.before
        return CallsBefore(
            replies=before.replies + self.spent.model_calls,
            summaries=before.summaries + self.compaction.tries,
            analyses=before.analyses + self.spent.analyses,
            samples=before.samples + self.spent.samples,
        )

    @property
    def context_length(self) -> int:
        """Messages of a model's context: the summary, when there is one, is the first."""
        return len(self.state.context) + bool(self.state.summary)

    @property
    def messages_total(self) -> int:
        return self.context.transcript_base + len(self.context.transcript)

    def append(self, messages: tuple[Msg, ...], digest: str = "", tokens: int = 0) -> None:
        """Add to the context; `digest` and `tokens` when an activity made the one message."""
        for message in messages:
            counted = tokens or outside_tokens(message)
            self.context.marks.append(Mark(self.messages_total, digest, counted))
            self.context.transcript.append(message)
            self.state.context.append(message)
            self.context.tokens += counted

    def show(self, message: Msg) -> None:
        """Add to the transcript alone: people read it, and no model does."""
        self.context.transcript.append(message)

    def hear(self, messages: tuple[Msg, ...]) -> None:
        """Add to the context as soon as it may be: nothing may stand between a call and its result."""
        if self.reply and self.reply.calls:
            self.context.deferred.extend(messages)
        else:
            self.append(messages)


def _copied(part: Part) -> Part:
    """As `copy` does it, without its dozen calls for each part."""
    made = object.__new__(type(part))
    vars(made).update(vars(part))
    return made
