"""Takes the letters of a hub: each function gives the hub that follows, and asks nobody."""

from typing import Any, TypeVar

from longhaul.agent.hub.bodies import End, JoinHub, LeaveHub, Say, Switch
from longhaul.agent.hub.hub import KEPT_NEWEST, HubShown, HubState, Member, put_out, swept, waiting, with_member
from longhaul.agent.letters.bodies import Unusable
from longhaul.agent.plain.canonical import digest_of
from longhaul.agent.plain.values import Value
from longhaul.agent.values.conversation.messages import AssistantMsg
from longhaul.agent.values.hubs import LARGEST_SAYING_BYTES, MOST_MEMBERS, HubWord, is_said
from longhaul.agent.views.hubs import MemberSaid

MOST_WAITING = 1_000
"""Words that some member has not heard. Whoever is behind by more is put out: all others would wait for it."""
KEPT_TOLD = 500
"""Replies that are known by their ids: told again, they are told to nobody twice."""
SHOWN_CHARS = 300

Told = TypeVar("Told", int, str)


def received(hub: HubState, body: Value) -> tuple[HubState, dict[str, Any]]:
    """The hub after an update, and the answer. Raises Unusable."""
    if hub.ended and not isinstance(body, End):
        raise Unusable(f"the hub {hub.name!r} has ended; start it anew")
    match body:
        case JoinHub():
            return _joined(hub, body)
        case LeaveHub():
            return _left(hub, body.members)
        case Say():
            return _said(hub, body)
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


def _said(hub: HubState, body: Say) -> tuple[HubState, dict[str, Any]]:
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


def member_said(hub: HubState, said: MemberSaid, life: str) -> HubState:
    """What a member has answered is told to the others, once. Of strangers, and of another hub's life, nothing is."""
    member = next((one for one in hub.present if one.workflow_id == said.workflow_id), None)
    if member is None or said.life != life or said.reply_id in hub.replies:
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


def _newest(told: dict[str, Told]) -> dict[str, Told]:
    return dict(list(told.items())[-KEPT_TOLD:])
