"""Sections of an agent file beside the agent itself: what is asked of it at set times, and hubs of its sessions.

None of it counts by itself: a command brings it into being.
"""

from typing import Annotated

from pydantic import Field, field_validator

from longhaul.agent.plain.values import Value, sparse
from longhaul.agent.values.deadlines import Seconds
from longhaul.agent.values.hubs import MOST_MEMBERS, NAME
from longhaul.agent.values.scheduled_request import Overlap

MOST = 50
"""Schedules, and hubs, of one file."""


class ScheduleTable(Value):
    """`[schedules.NAME]`: as the flags of `longhaul schedule add`."""

    prompt: str
    cron: str = ""
    zone: str = ""
    every: Seconds | None = None
    session: str = ""
    overlap: Overlap = "skip"
    catch_up: Seconds = 86_400.0
    paused: bool = False
    """How it begins; who pauses or resumes it later is not overruled by the file."""


class HubTable(Value):
    """`[hubs.NAME]`: a room of agents, each in a session of its own, `NAME-MEMBER`."""

    members: dict[str, Annotated[str, Field(min_length=1)]] = Field(min_length=1, max_length=MOST_MEMBERS)
    """By the name in the hub: the agent, by the name of its file."""
    announcement: str = ""
    quiet: bool = False

    @field_validator("members")
    @classmethod
    def _can_be_called_so(cls, members: dict[str, str]) -> dict[str, str]:
        for name in members:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name[:80]!r} has to be 1 to 64 letters, digits, `.`, `_` and `-`")
        return members


class Sections(Value):
    """What of a file is no part of the agent."""

    schedules: dict[str, ScheduleTable] = sparse({}, max_length=MOST)
    hubs: dict[str, HubTable] = sparse({}, max_length=MOST)
