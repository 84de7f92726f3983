"""Tells those who look at a session of a model's provider that is away, and of what its workers lack."""

from longhaul.agent.plain.values import Value
from longhaul.agent.record import Record
from longhaul.agent.views.events import away_words


class Outage(Value):
    """A provider that is waited for; times are ISO 8601 in UTC."""

    why: str
    attempt: int
    """The newest one that has failed, as far as it is known."""
    next_try: str
    until: str
    """When the waiting is given up, and the reply ends as failed."""

    def told(self) -> str:
        """A sentence for people."""
        times = "1 time" if self.attempt == 1 else f"{self.attempt} times"
        tries = f"tried {times}, next at {_second(self.next_try)}, until {_second(self.until)}"
        return f"waits for the model's provider ({tries}): {self.why}"


def _second(moment: str) -> str:
    return f"{moment[:19].replace('T', ' ')} UTC"


def outage(record: Record) -> Outage | None:
    lacking = record.life.lacking
    if lacking is None or lacking.away is None:
        return None
    return Outage(why=lacking.why, **away_words(lacking.away))


def lacking(record: Record) -> str:
    """What the workers that were asked lack for the next step. A provider that is away is another matter."""
    found = record.life.lacking
    return found.why if found is not None and found.away is None else ""
