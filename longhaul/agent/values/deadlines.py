"""A deadline says how long a call may wait for a person or an outside system, as a user sets it.

A sleep is what a call waits for that nobody answers: a moment, or an event that somebody outside tells of.
"""

import re
from typing import Annotated, Any, Literal, Self, cast

from pydantic import BeforeValidator, Field, model_validator

from longhaul.agent.plain.values import Given, OpenValue, Value, sparse

LONGEST_SECONDS = 315_360_000.0
"""Ten years."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SPELT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd])\s*")


def seconds_in(text: str) -> float | None:
    """How long `90s`, `30m`, `2.5h` or `2d` is; None for other words."""
    spelt = _SPELT.fullmatch(text)
    return None if spelt is None else float(spelt[1]) * _UNITS[spelt[2]]


def _seconds(given: object) -> object:
    if not isinstance(given, str):
        return given
    seconds = seconds_in(given)
    if seconds is None:
        raise ValueError("write a number of seconds, or a number with its unit: '90s', '30m', '4h', '2d'")
    return seconds


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=LONGEST_SECONDS)]
"""Written as a number, or as text with a unit: `30m`."""


class Deadline(Value):
    """Times in seconds from the moment at which the call started to wait. None = never."""

    remind_after: Given[Seconds | None, float | str | None] = sparse(None)
    """Time after which people are notified again."""
    escalate_after: Given[Seconds | None, float | str | None] = sparse(None)
    """Time after which `escalate_to` is notified."""
    escalate_to: str = sparse("", max_length=200)
    """Who is notified then: a name or an address that your people and programs understand."""
    expire_after: Given[Seconds | None, float | str | None] = sparse(None)
    """Time after which the call expires; `on_expiry` says what happens."""
    on_expiry: Literal["deny", "park"] = sparse("deny")
    """`deny`: the call ends without running, and the model reads that. `park`: the call keeps waiting, shown as
    overdue."""

    @model_validator(mode="after")
    def _comes_in_order(self) -> Self:
        if (self.escalate_after is None) != (not self.escalate_to):
            raise ValueError("escalate_after and escalate_to belong together: give both, or neither")
        if self.on_expiry == "park" and self.expire_after is None:
            raise ValueError("on_expiry: 'park' says what happens after expire_after; give that too")
        times = [time for time in (self.remind_after, self.escalate_after, self.expire_after) if time is not None]
        if times != sorted(times):
            raise ValueError("remind_after, escalate_after and expire_after have to come in this order")
        return self


RiskFound = Literal["low", "medium", "high", "unknown"]


class Deadlines(Deadline):
    """The agent's own deadline, and deadlines that replace it as a whole: in `tools` for calls of a tool, in `by_risk`
    for calls of that risk that wait for a person. An agent file may put a tool's table under its name:
    `[permission.deadline.courier]`."""

    tools: dict[str, Deadline] = sparse({})
    by_risk: dict[RiskFound, Deadline] = sparse({})
    """Deadlines by risk. Without its own table, `unknown` counts as `high`."""

    @model_validator(mode="before")
    @classmethod
    def _tools_by_name(cls, given: Any) -> object:
        if not isinstance(given, dict):
            return cast(object, given)
        table = cast(dict[str, Any], given)
        named: dict[str, Any] = {
            key: value for key, value in table.items() if key not in cls.model_fields and isinstance(value, dict)
        }
        if not named:
            return table
        rest = {key: value for key, value in table.items() if key not in named}
        # Whatever else stands there is looked at by the model itself.
        tools: Any = rest.get("tools") or {}
        return {**rest, "tools": {**cast(dict[str, Any], tools), **named} if isinstance(tools, dict) else tools}


def deadline_of(
    tool: str, own: Deadline | None, set_by_agent: Deadlines | None, risk: RiskFound | None = None
) -> Deadline | None:
    """The agent's deadline for this risk; else its own for this tool; else the one that the tool brings itself; else
    the agent's for all tools.

    None when nothing would ever be due.
    """
    named = (_of_risk(set_by_agent, risk) or set_by_agent.tools.get(tool)) if set_by_agent else None
    found = named or own or set_by_agent
    if found is None or (found.remind_after, found.escalate_after, found.expire_after) == (None, None, None):
        return None
    return Deadline.model_validate(found.model_dump(exclude={"tools", "by_risk"}))


def _of_risk(deadlines: Deadlines, risk: RiskFound | None) -> Deadline | None:
    if risk is None:
        return None
    return deadlines.by_risk.get(risk) or (deadlines.by_risk.get("high") if risk == "unknown" else None)


WAKE = "wake"
"""The event that ends a `sleep` before its time."""
LONGEST_SLEEP_SECONDS = 366 * 86_400.0
MOST_EVENT_CHARS = 200
MOST_PAYLOAD_CHARS = 10_000
KEPT_EXTERNAL_EVENTS = 50
"""Notifications that came before anybody waited for them: each is carried along until somebody does."""

Over = Literal["", "time", "event", "message"]


class Sleep(OpenValue):
    """Part of the call that sleeps."""

    until: int
    """Milliseconds since 1970."""
    event: str
    """What ends it sooner."""
    over: Over = sparse("")
    """Why it has ended; the model is told when the session goes on."""
    payload: str = sparse("")
    """What came with the event, from outside."""
    came_at: int = sparse(0)
    """When the event was told of, in milliseconds since 1970."""
    by: str = sparse("")
