"""A hub as a value: who is in it, what has been said and not been heard by all. Its rules stand beside this file.

Everything that happens in a hub takes the next number, so the order is one for all.
"""

from typing import Any

from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.hubs import HubWord
from longhaul.agent.values.spec.agent_spec import AgentSpec

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
    """With which the session is begun, when there is none."""
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
