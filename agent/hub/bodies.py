"""The bodies of a hub's updates: all that people and programs may ask of it."""

from typing import Any

from pydantic import Field, ValidationError, field_validator

from longhaul.agent.letters.bodies import Messages, Unusable, from_outside
from longhaul.agent.letters.hubs import MOST_WORDS
from longhaul.agent.plain.ids import MAX_ID_CHARS
from longhaul.agent.plain.mistakes import what_is_wrong
from longhaul.agent.plain.values import Value
from longhaul.agent.values.hubs import MOST_MEMBERS, NAME
from longhaul.agent.values.spec.agent_spec import AgentSpec


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
