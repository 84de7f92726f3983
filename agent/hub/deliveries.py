"""Tells members what they are to hear next, and who has not heard yet."""

from longhaul.agent.hub.bodies import AwaitHeard
from longhaul.agent.hub.hub import HubState, Member, swept, waiting, with_member, without_member
from longhaul.agent.letters.hubs import MOST_WORDS, HubSays
from longhaul.agent.values.hubs import HubWord

LETTER_CHARS = 200_000
"""Of the words in one letter, beyond its first."""


def due(hub: HubState, member: Member, life: str, workflow_id: str) -> HubSays | None:
    """The next letter to a member; None while it knows all that concerns it."""
    coming = waiting(hub, member)
    words = _as_fit(coming)
    if not words and member.heard >= member.joined and not member.left:
        return None
    rest = len(words) < len(coming)
    through = words[-1].number if rest or (words and not member.left) else member.left or member.joined
    return HubSays(
        hub=workflow_id,
        life=life,
        name=hub.name,
        member=member.name,
        user_id=hub.user_id,
        joined=member.joined,
        through=through,
        words=words,
        left=bool(member.left) and not rest,
    )


def _as_fit(words: list[HubWord]) -> tuple[HubWord, ...]:
    fit, size = list[HubWord](), 0
    for word in words[:MOST_WORDS]:
        size += len(word.message.model_dump_json())
        if fit and size > LETTER_CHARS:
            break
        fit.append(word)
    return tuple(fit)


def delivered(hub: HubState, name: str, letter: HubSays) -> HubState:
    """A member has had this letter."""
    if letter.left:
        return swept(hub.model_copy(update={"members": without_member(hub, name, letter.joined)}))
    known = next((member for member in hub.members if member.name == name), None)
    if known is None or known.joined != letter.joined:
        return hub  # it was put out meanwhile, and may have come in anew
    return swept(with_member(hub, name, heard=letter.through))


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
