"""The ledger of a storm of faults: each fault, what became of each session, and the page's text about both."""

import time
from collections import Counter
from dataclasses import asdict, dataclass, field

from benchmarks.pages import table
from tests.e2e.crash.crash_full import ONCE, Verdict

AT_ONCE = 5
"""Sessions under way on each task queue."""
LANES = 2
"""Task queues, with one worker each."""
PAUSE = (0.1, 1.2)
"""Seconds between two random faults, at least and at most: so that some sessions come further in between."""
WORKER, STOPPED, SERVER = "worker killed", "worker stopped, then killed", "server killed"
WEIGHTS = {WORKER: 80, STOPPED: 15, SERVER: 5}
"""Of a hundred random ones."""
HEADER = ("fault", "at each event", "at random")
JUDGED = ("sessions", "`once` calls", "lost", "done twice", "of unknown outcome", "unknown outcomes not told")


@dataclass(frozen=True)
class Fault:
    kind: str
    at: str
    """The event behind which it was made; empty: at a random moment."""
    sessions: int
    """Under way on the queues that it struck."""
    second: float
    """Since the beginning."""


@dataclass
class SessionState:
    """All that was done to the sessions, and what became of them."""

    faults: list[Fault] = field(default_factory=list[Fault])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    began: float = field(default_factory=time.monotonic)

    def broken(self) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if not verdict.holds]

    def rows(self) -> list[dict[str, object]]:
        told = [{"is": "fault", **asdict(fault)} for fault in self.faults]
        return [*told, *({"is": "session", **asdict(verdict)} for verdict in self.verdicts)]


def rows(ledger: SessionState) -> list[tuple[str, ...]]:
    at_events = Counter(fault.kind for fault in ledger.faults if fault.at)
    random_ones = Counter(fault.kind for fault in ledger.faults if not fault.at)
    return [(kind, str(at_events[kind]), str(random_ones[kind])) for kind in WEIGHTS]


def judged(ledger: SessionState) -> tuple[str, ...]:
    found = ledger.verdicts
    return (
        str(len(found)),
        str(len(found) * len(ONCE)),
        str(sum(bool(verdict.lost) for verdict in found)),
        str(sum(len(verdict.doubled) for verdict in found)),
        str(sum(len(verdict.unknown_outcomes) for verdict in found)),
        str(sum(len(verdict.unsaid) for verdict in found)),
    )


def section(ledger: SessionState, seed: int) -> str:
    """The page's text about it."""
    at_random, raw = sum(not fault.at for fault in ledger.faults), "benchmarks/faults.json"
    lines = [
        "## Faults",
        "",
        f"`python -m benchmarks.faults --random {at_random} --seed {seed}`: each job thinks aloud, calls",
        "three tools at once, runs a command, reads, asks a person, outgrows its context and is asked again, while",
        "workers and the server die under it by SIGKILL.",
        f"{LANES} workers, {AT_ONCE} sessions on each at a time.",
        "",
        *table(HEADER, rows(ledger)),
        "",
        *table(JUDGED, [judged(ledger)]),
        "",
        "*Lost*: a session without both answers, with a call that has no result or two, a message missing or told",
        "twice, or a history that does not replay. *In doubt*: the session says that it does not know whether the call",
        f"happened. Fault by fault and session by session: [{raw}]({raw}).",
    ]
    return "\n".join(lines)
