"""The ledger of a session: all that follows from its entries, as plain data with a few words of its own."""

from dataclasses import dataclass, field, is_dataclass
from typing import Annotated, Self, TypeVar

from pydantic import Field

from longhaul.agent.entries import all_entries as e
from longhaul.agent.entries.doubts import Doubt
from longhaul.agent.entries.pausing import Pause
from longhaul.agent.fold.ledger.agent_state import AgentState, OpenCall, ReplyContext
from longhaul.agent.fold.ledger.call_id_filter import was_there
from longhaul.agent.fold.ledger.ledger_parts import (
    Compaction,
    Context,
    Keeping,
    KnownCalls,
    Notices,
    Offers,
    Provided,
    Refusals,
    Requests,
    Rules,
    Spent,
    ThisLife,
    WakeUps,
)
from longhaul.agent.fold.ledger.ledger_values import Mark
from longhaul.agent.permission.grantable_rules import may_come_from_a_store
from longhaul.agent.values.background import BackgroundCommand
from longhaul.agent.values.budget import Account
from longhaul.agent.values.conversation.message_tokens import outside_tokens
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.hubs import Membership
from longhaul.agent.values.permission import PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.subagents import Child, Parent

KEPT_REQUESTS = 1_000
"""Handled request ids that are remembered; an older id sent again would be a new request."""
KEPT_REFUSALS = 100
KEPT_ADJUSTMENTS = 200

Part = TypeVar("Part")


@dataclass
class Ledger:
    """All that follows from the entries, in parts by subject; `agent.fold` is what changes it."""

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
    offers: Offers = field(default_factory=Offers)
    doubts: dict[str, Doubt] = field(default_factory=dict[str, Doubt])
    """By call id, the oldest first; settled ones are kept for a while, so that nobody settles them anew."""
    notices: Notices = field(default_factory=Notices)
    pause: Pause | None = None
    wake_ups: Annotated[WakeUps | None, Field(exclude_if=lambda wake_ups: wake_ups is None)] = None
    """None in a session that nobody has told of an event: it costs nothing in what is carried."""
    parent: Parent | None = None
    """Of a sub-agent: who started it."""
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
    life: ThisLife = field(default_factory=ThisLife)
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
        """Whether workers put secrets into what runs, and the record holds marks alone."""
        return self.spec.secrets is not None and self.spec.secrets.mark

    def keep_unmarked(self, call_id: str, arguments: str) -> None:
        """What runs of a call that is shown with marks; empty: what is shown."""
        if arguments or call_id in self.calls.unmarked:
            # A new table: a copy of the ledger has the same one.
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
