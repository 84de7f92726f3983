"""Knowledge in an agent's own settings: what its requests are answered with when they name something."""

from typing import Annotated

from pydantic import Field, field_validator

from longhaul.agent.plain.values import Many, Value, sparse

TRIGGERS_CAP = 50
TRIGGER_CAP_CHARS = 100
TEXT_CAP_CHARS = 20_000


class Knowledge(Value):
    """A text that follows each request which has one of the triggers; or triggers for a skill that lies in a folder."""

    name: str = Field(min_length=1, max_length=64)
    triggers: Many[Annotated[str, Field(max_length=TRIGGER_CAP_CHARS)]] = Field(min_length=1, max_length=TRIGGERS_CAP)
    """As in a SKILL.md: a keyword, `kube*`, several words, or a task like `/deploy`."""
    text: str = sparse("", max_length=TEXT_CAP_CHARS)
    """Empty: that of the SKILL.md with this name, which goes first in any case."""

    @field_validator("triggers")
    @classmethod
    def _say_something(cls, triggers: tuple[str, ...]) -> tuple[str, ...]:
        empty = [trigger for trigger in triggers if not trigger.strip("* ") or trigger != " ".join(trigger.split())]
        if empty:
            raise ValueError(f"{empty[0]!r} is no trigger; write words with single spaces between them")
        return triggers
