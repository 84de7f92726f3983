"""The parts that a ledger is made of. Each belongs to one subject, as the files of this folder do."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.notices import Notice, NotifyTry
from longhaul.agent.entries.sleep import WakeUpCame
from longhaul.agent.fold.ledger.ledger_values import (
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
from longhaul.agent.values.amount import NOTHING_SPENT, ModelSpent
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg, Usage
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.heartbeat_timeout import FAST_SECONDS


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
    anchor: Anchor = NOWHERE
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


@dataclass
class Provided:
    """What the worker that prepared the reply gave to it."""

    spec_digest: str = ""
    system_prompt: str | None = None
    """As it was put together for model calls; None = as it stands in the spec."""
    prompt_digest: str = ""
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
    liveness: float = FAST_SECONDS
    """Both as in `entries.Prepared`."""
    outdated: Annotated[tuple[str, ...], Field(exclude_if=lambda servers: not servers)] = ()
    """MCP servers that have said since that they offer other tools."""


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
    """The calls that there were, the oldest first, and the tools that they named. A roll-over takes the newest."""
    forgotten: tuple[Forgotten, ...] = ()
    """Of all others it is only known that their ids are used."""
    unmarked: dict[str, str] = field(default_factory=dict[str, str])
    """Arguments with the secrets that they hold, by call id, where no worker could put these in: of calls that have no
    result yet, or none for certain. Nobody is shown them, and they are no part of the state, which is."""
    expired: dict[str, int] = field(default_factory=dict[str, int])
    """Calls that were closed because nobody answered in time, and when: whoever answers late is told."""


@dataclass
class Offers:
    """Signed decisions."""

    waiting: dict[int, e.DecisionsOffered] = field(default_factory=dict[int, e.DecisionsOffered])
    """Those that nobody has checked yet, by the number of their entry."""
    settled: dict[int, str] = field(default_factory=dict[int, str])
    """Why the newest of those that were do not count; empty for one that does."""


@dataclass
class Notices:
    """What people are told of calls that wait."""

    unsent: dict[str, Notice] = field(default_factory=dict[str, Notice])
    """What somebody is still to be told, by key, the oldest first."""
    failed: NotifyTry | None = None


@dataclass
class WakeUps:
    """What somebody outside has told of."""

    kept: list[WakeUpCame] = field(default_factory=list[WakeUpCame])
    """Of those that nobody has waited for yet, the oldest first."""
    handled: dict[str, str] = field(default_factory=dict[str, str])
    """Digests of the newest ones, by request id: one that is sent again counts once."""


@dataclass
class Refusals:
    """Letters that were refused."""

    newest: list[e.LetterRefused] = field(default_factory=list[e.LetterRefused])
    """Older ones are forgotten, so that rubbish can't fill a session."""
    count: int = 0


@dataclass
class ThisLife:
    """How the session stands in its life, and what it waits for before it goes on."""

    restored: bool = True
    """Whether an earlier life of the session was looked for; nothing is done before."""
    generation: int = 1
    hold: str = ""
    """Why nothing is done until a person says so."""
    note: str = ""
    lacking: e.WorkerLacks | None = None
    """What the step that is to be taken waits for, as a worker told it that could not take it."""

    @property
    def host_away(self) -> str:
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
    saved_seam: Any = None
    """`agent.life.history.seam_of` then; None = unknown."""
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
    lost: Annotated[ModelSpent, Field(exclude_if=lambda lost: lost == NOTHING_SPENT)] = NOTHING_SPENT
    """Of attempts at calls that were lost with their worker or broke off, and that nobody has told the use of."""
