"""A hub as a value: who is in it, what was said, who has not heard it yet, and what may be asked of it.

Each event of a hub takes the next number, so all members hear the same order. Each function returns the hub that
follows; none of them asks anybody.
"""

from typing import Any, TypeVar

from pydantic import Field, ValidationError, field_validator

from longhaul.agent.operations.bodies import Messages, Unusable, from_outside
from longhaul.agent.operations.peer_operations import MOST_WORDS, HubSays
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.values import OpenValue, Value, digest_of, sparse
from longhaul.agent.values.conversation.messages import AssistantMsg
from longhaul.agent.values.hubs import LARGEST_SAYING_BYTES, MOST_MEMBERS, NAME, HubWord, is_said
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.session_views import MemberSaid


class NewMember(Value):
    name: str
    session_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    workflow_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    spec: AgentSpec

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not NAME.fullmatch(name):
            raise ValueError("it takes 1 to 64 letters, digits, `.`, `_` and `-`, a letter or digit first")
        return name


class JoinHub(Value):
    members: tuple[NewMember, ...] = Field(min_length=1, max_length=MOST_MEMBERS)


class LeaveHub(Value):
    members: tuple[str, ...] = Field(min_length=1, max_length=MOST_MEMBERS)
    """By their names in the hub."""


class Say(Value):
    messages: Messages = Field(min_length=1, max_length=MOST_WORDS)
    request_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)

    _checked = field_validator("messages")(from_outside)


class Switch(Value):
    on: bool


class AwaitHeard(Value):
    """Wait until all members have heard of a reply, or of what was said up to a number."""

    reply_id: str = Field(default="", max_length=MAX_ID_CHARS)
    number: int = Field(default=0, ge=0)


class End(Value):
    """All members leave; then the hub is over."""


BODIES: dict[str, type[Value]] = {
    "join": JoinHub,
    "leave": LeaveHub,
    "say": Say,
    "auto_broadcast": Switch,
    "heard": AwaitHeard,
    "end": End,
}


def read(name: str, arguments: list[Any]) -> Value:
    """The body of an update. Raises Unusable with a sentence."""
    if name not in BODIES:
        raise Unusable(f"a hub has no update {name!r}; there are: {', '.join(BODIES)}")
    if len(arguments) != 1 or not isinstance(arguments[0], dict):
        raise Unusable(f"{name} takes one JSON object")
    try:
        return BODIES[name].model_validate(arguments[0])
    except ValidationError as error:
        raise Unusable(f"{name}: {what_is_wrong(error)}") from error


KEPT_NEWEST = 20
"""Words, and notes, for whoever looks."""
PUT_OUT = " was put out: "
"""In a note, between a member's name and why."""


class Member(OpenValue):
    """An agent in a hub: one session of it."""

    name: str
    session_id: str
    workflow_id: str
    spec: AgentSpec
    """With which the session is started, when there is none."""
    joined: int = 0
    heard: int = 0
    left: int = sparse(0)
    """The number with which it left, until its session knows; 0 = it is in."""


class HubShown(OpenValue):
    """A word as `show` has it."""

    number: int
    by: str
    text: str


class HubState(OpenValue):
    """All that a hub is; carried from run to run."""

    name: str
    user_id: str | None = None
    auto_broadcast: bool = True
    members: tuple[Member, ...] = ()
    """In the order in which they came; those too that have left and do not know it yet."""
    number: int = 0
    words: tuple[HubWord, ...] = ()
    """Those that somebody has not heard yet."""
    replies: dict[str, int] = sparse({})
    """Of members, by id: the number under which each was told; 0 = it was not."""
    requests: dict[str, int] = sparse({})
    """Of what people said, by request id."""
    digests: dict[str, str] = sparse({})
    """Of the same, by request id."""
    newest: tuple[HubShown, ...] = sparse(())
    notes: tuple[str, ...] = sparse(())
    """Who was put out, and why."""
    ended: bool = sparse(False)

    @property
    def present(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if not member.left)


def put_out(hub: HubState, gone: Member, why: str) -> HubState:
    """Take out a member that can't be told any more, not even that it is out."""
    members = without_member(hub, gone.name, gone.joined)
    notes = (*hub.notes, f"{gone.name}{PUT_OUT}{why}"[:500])[-KEPT_NEWEST:]
    return swept(hub.model_copy(update={"members": members, "notes": notes}))


def with_member(hub: HubState, name: str, **fields: Any) -> HubState:
    changed = tuple(member.model_copy(update=fields) if member.name == name else member for member in hub.members)
    return hub.model_copy(update={"members": changed})


def without_member(hub: HubState, name: str, joined: int) -> tuple[Member, ...]:
    return tuple(member for member in hub.members if (member.name, member.joined) != (name, joined))


def waiting(hub: HubState, member: Member) -> list[HubWord]:
    """What is still to be told to it, in the order of the hub; never its own words."""
    end = member.left or hub.number
    return [word for word in hub.words if member.heard < word.number <= end and word.by_other_than(member.name)]


def swept(hub: HubState) -> HubState:
    """Without the words that nobody waits for."""
    wanted = {word.number for member in hub.members for word in waiting(hub, member)}
    words = tuple(word for word in hub.words if word.number in wanted)
    return hub.model_copy(update={"words": words}) if len(words) < len(hub.words) else hub


OPERATION_CHARS = 200_000
"""Of the words in one operation, beyond its first."""


def due(hub: HubState, member: Member, incarnation: str, workflow_id: str) -> HubSays | None:
    """The next operation to a member; None while it knows all that concerns it."""
    coming = waiting(hub, member)
    fit, size = list[HubWord](), 0
    for word in coming[:MOST_WORDS]:
        size += len(word.message.model_dump_json())
        if fit and size > OPERATION_CHARS:
            break
        fit.append(word)
    words = tuple(fit)
    if not words and member.heard >= member.joined and not member.left:
        return None
    rest = len(words) < len(coming)
    through = words[-1].number if rest or (words and not member.left) else member.left or member.joined
    return HubSays(
        hub=workflow_id,
        incarnation=incarnation,
        name=hub.name,
        member=member.name,
        user_id=hub.user_id,
        joined=member.joined,
        through=through,
        words=words,
        left=bool(member.left) and not rest,
    )


def delivered(hub: HubState, name: str, operation: HubSays) -> HubState:
    """A member has had this operation."""
    if operation.left:
        return swept(hub.model_copy(update={"members": without_member(hub, name, operation.joined)}))
    known = next((member for member in hub.members if member.name == name), None)
    if known is None or known.joined != operation.joined:
        return hub  # it was put out meanwhile, and may have come in again
    return swept(with_member(hub, name, heard=operation.through))


def behind(hub: HubState, body: AwaitHeard) -> list[str] | None:
    """Members that have not heard of it; None while the hub itself has not."""
    number = hub.replies.get(body.reply_id) if body.reply_id else body.number
    if number is None:
        return None
    words = [word for word in hub.words if word.number <= number]
    return [
        member.name
        for member in hub.members
        if member.heard < min(number, member.joined)
        or any(member.heard < word.number and word.by_other_than(member.name) for word in words)
    ]


MOST_WAITING = 1_000
"""Words that some member has not heard. Whoever is behind by more is put out: all others would wait for it."""
KEPT_TOLD = 500
"""Replies that are known by their ids: told again, they are told to nobody twice."""
SHOWN_CHARS = 300

Delivered = TypeVar("Delivered", int, str)


def received(hub: HubState, body: Value) -> tuple[HubState, dict[str, Any]]:
    """The hub after an update, and the answer. Raises Unusable."""
    if hub.ended and not isinstance(body, End):
        raise Unusable(f"the hub {hub.name!r} has ended; start it again")
    match body:
        case JoinHub():
            return _joined(hub, body)
        case LeaveHub():
            return _left(hub, body.members)
        case Say():
            return _take_message(hub, body)
        case Switch():
            return hub.model_copy(update={"auto_broadcast": body.on}), {"auto_broadcast": body.on}
        case End():
            over, _ = _left(hub, tuple(member.name for member in hub.present))
            return over.model_copy(update={"ended": True}), {"ended": True}
        case _:
            return hub, {}


def _joined(hub: HubState, body: JoinHub) -> tuple[HubState, dict[str, Any]]:
    """Whoever is in already, as the same session, stays as it is."""
    for new in body.members:
        known = next((one for one in hub.members if new.name == one.name), None)
        same = next((one for one in hub.members if new.workflow_id == one.workflow_id), None)
        if known is not None and known.workflow_id != new.workflow_id:
            raise Unusable(
                f"members: {new.name!r} is in the hub already, as session {known.session_id!r}; take another name"
            )
        if same is not None and same.name != new.name:
            raise Unusable(f"members: session {new.session_id!r} is in the hub already, as {same.name!r}")
        if same is not None and same.left:
            raise Unusable(
                f"members: {new.name!r} has left, and its session does not know it yet; try again in a moment"
            )
        if same is None:
            number = hub.number + 1
            member = Member(**new.model_dump(), joined=number, heard=number - 1)
            hub = hub.model_copy(update={"number": number, "members": (*hub.members, member)})
    if len(hub.present) > MOST_MEMBERS:
        raise Unusable(f"members: that makes {len(hub.present)}, and a hub holds {MOST_MEMBERS}")
    return hub, {"members": [member.name for member in hub.present], "number": hub.number}


def _left(hub: HubState, names: tuple[str, ...]) -> tuple[HubState, dict[str, Any]]:
    present = [member.name for member in hub.present]
    if missing := [name for name in names if name not in present]:
        raise Unusable(
            f"members: {missing[0]!r} is not in the hub {hub.name!r}; there are: {', '.join(present) or 'none'}"
        )
    for name in dict.fromkeys(names):
        number = hub.number + 1
        hub = with_member(hub.model_copy(update={"number": number}), name, left=number)
    return hub, {"members": [member.name for member in hub.present], "number": hub.number}


def _take_message(hub: HubState, body: Say) -> tuple[HubState, dict[str, Any]]:
    digest = digest_of([message.model_dump(mode="json") for message in body.messages])
    if (number := hub.requests.get(body.request_id)) is not None:
        if hub.digests.get(body.request_id, digest) != digest:
            raise Unusable(f"request_id {body.request_id!r} was used before for another message; take a new id")
        return hub, {"number": number}
    size = sum(len(message.model_dump_json().encode()) for message in body.messages)
    if size > LARGEST_SAYING_BYTES:
        most = f"{LARGEST_SAYING_BYTES // 1000} kB"
        raise Unusable(
            f"messages: they have {size // 1000} kB, and the most is {most}; put the content into a file and name it"
        )
    for message in body.messages:
        hub = _word(hub, HubWord(number=hub.number + 1, by=message.name[:200], message=message))
    known = {
        "requests": _newest({**hub.requests, body.request_id: hub.number}),
        "digests": _newest({**hub.digests, body.request_id: digest}),
    }
    return hub.model_copy(update=known), {"number": hub.number}


def member_said(hub: HubState, said: MemberSaid, incarnation: str) -> HubState:
    """What a member has answered is told to the others, once. Of strangers, and of another hub's life, nothing is."""
    member = next((one for one in hub.present if one.workflow_id == said.workflow_id), None)
    if member is None or said.incarnation != incarnation or said.reply_id in hub.replies:
        return hub
    message = AssistantMsg(member.name, said.text)
    number = 0
    if hub.auto_broadcast and is_said(message):
        number = hub.number + 1
        word = HubWord(number=number, by=member.name, message=message, of_agent=True, tainted=said.tainted)
        hub = _word(hub, word)
    return hub.model_copy(update={"replies": _newest({**hub.replies, said.reply_id: number})})


def _word(hub: HubState, word: HubWord) -> HubState:
    shown = HubShown(number=word.number, by=word.by, text=word.message.get_text_content()[:SHOWN_CHARS])
    hub = hub.model_copy(
        update={
            "number": word.number,
            "words": (*hub.words, word),
            "newest": (*hub.newest, shown)[-KEPT_NEWEST:],
        }
    )
    return swept(hub) if len(hub.words) <= MOST_WAITING else _without_the_slowest(hub)


def _without_the_slowest(hub: HubState) -> HubState:
    slowest = max(hub.members, key=lambda member: len(waiting(hub, member)))
    return put_out(hub, slowest, f"more than {MOST_WAITING} words wait for it, and its session takes none")


def _newest(told: dict[str, Delivered]) -> dict[str, Delivered]:
    return dict(list(told.items())[-KEPT_TOLD:])
