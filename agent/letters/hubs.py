"""The letter of a hub to a member's session: what was said there, and whether the session is in."""

from pydantic import Field

from longhaul.agent.entries import all_entries as e
from longhaul.agent.fold.hubs import heard_before
from longhaul.agent.letters.bodies import Unusable
from longhaul.agent.letters.letter import Received
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.values import Value
from longhaul.agent.record import Record
from longhaul.agent.values.hubs import MOST_HUBS, HubWord, entered, heard

MOST_WORDS = 200


class HubSays(Value):
    """What was said in a hub since its letter before. Hubs send it."""

    hub: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    """Id of its workflow."""
    life: str = Field(min_length=1, max_length=200)
    name: str = Field(max_length=200)
    member: str = Field(min_length=1, max_length=200)
    """How the session is called there."""
    user_id: str | None = None
    """Whose the hub is."""
    joined: int = Field(ge=1)
    """The number with which the session came in."""
    through: int = Field(ge=1)
    """Everything up to this number is told with it."""
    words: tuple[HubWord, ...] = Field(default=(), max_length=MOST_WORDS)
    left: bool = False


def said(record: Record, body: HubSays) -> Received:
    """Sent again, it changes nothing. Of another user's hub nothing is heard."""
    if body.user_id != record.state.user_id:
        raise Unusable(
            f"user_id: the hub {body.name!r} is another user's; a session can only be in hubs of its own user"
        )
    before = heard_before(record, body.hub, body.life)
    if body.through <= before:
        return Received((), {"heard": before})
    others = [one for one, each in record.hubs.items() if one != body.hub and not each.left]
    if not body.left and len(others) >= MOST_HUBS:
        raise Unusable(
            f"hub: this session is in {len(others)} hubs, which is the most; take it out of one of them first"
        )
    told = [(body.joined, entered(body.name, body.member))] if not body.left or body.words else []
    told += [(word.number, heard(word, body.name)) for word in body.words]
    new = [(number, message) for number, message in told if number > before]
    entry = e.HubHeard(
        hub=body.hub,
        life=body.life,
        name=body.name,
        member=body.member,
        through=body.through,
        numbers=tuple(number for number, _ in new),
        messages=tuple(message for _, message in new),
        left=body.left,
        tainted=next((word.tainted[:1_000] for word in body.words if word.tainted and word.number > before), ""),
    )
    return Received((entry,), {"heard": body.through})
