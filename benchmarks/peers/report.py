"""The trials as a table for people: medians with their spread, and how far apart the sides are."""

import statistics
from collections.abc import Callable, Iterable, Sequence

from rich.table import Table

from benchmarks.contenders import UNHURRIED
from benchmarks.peers.trial import COMPLETED, Trial

Row = tuple[str, ...]
Load = tuple[int, int, int]
"""Steps, characters and sessions."""

OURS = {"longhaul": ("P23", 1.25, 2.2), UNHURRIED: ("P6", 0.8, 1.6)}
"""Each form with its target: how many times the steps per second of the floor, and of a peer."""

STEP_HEADER: Row = (
    "contender", "steps asked", "steps done", "wall ms/step", "worker CPU ms/step", "server CPU ms/step", "events/step",
    "billed actions/step", "history bytes", "workflow runs",
)  # fmt: skip
CROWD_HEADER: Row = ("contender", "sessions x steps", "chars", "steps/s", "worker CPU ms/step", "server CPU ms/step")


def step_rows(trials: Iterable[Trial]) -> list[Row]:
    """Of sessions that ran alone: one row per load and contender."""
    return [
        (
            contender,
            f"{steps:,}",
            _came_to(same),
            _spread(same, lambda trial: trial.wall),
            _spread(same, lambda trial: trial.worker_cpu),
            _spread(same, lambda trial: trial.server_cpu),
            f"{_median(same, lambda trial: trial.events):.1f}",
            f"{_median(same, lambda trial: trial.actions):.2f}",
            f"{_median(same, lambda trial: trial.history_bytes):,.0f}",
            f"{_median(same, lambda trial: trial.runs):.0f}",
        )
        for (steps, _, sessions), contender, same in _groups(trials)
        if sessions == 1
    ]


def crowd_rows(trials: Iterable[Trial]) -> list[Row]:
    """Of sessions that ran at once."""
    return [
        (
            contender,
            f"{sessions} x {steps}" if _all_came_through(same) else f"{sessions} x {steps}, {same[0].ended}",
            f"{chars:,}",
            _spread(same, lambda trial: trial.steps_per_second),
            _spread(same, lambda trial: trial.worker_cpu),
            _spread(same, lambda trial: trial.server_cpu),
        )
        for (steps, chars, sessions), contender, same in _groups(trials)
        if sessions > 1
    ]


def findings(trials: Sequence[Trial]) -> list[str]:
    """Targets P4, P6 and P23 in sentences: ours against each side at the largest load that both came through."""
    others = [name for name in dict.fromkeys(trial.contender for trial in trials) if name not in OURS]
    alone = [_history_and_pace(trials, other) for other in others if other != "floor"]
    crowds = [_throughput(trials, ours, other) for ours in OURS for other in others]
    return [finding for finding in (*alone, *crowds) if finding]


def _history_and_pace(trials: Sequence[Trial], peer: str) -> str:
    both = _common([trial for trial in trials if trial.sessions == 1], peer)
    if not both:
        return ""
    ours, theirs = both
    slower = _median(theirs, lambda trial: trial.wall) / _median(ours, lambda trial: trial.wall)
    more = _median(theirs, lambda trial: trial.history_bytes) / _median(ours, lambda trial: trial.history_bytes)
    return (
        f"{ours[0].steps:,} steps of {ours[0].chars:,} chars: a step of {peer} takes {slower:.1f} times as long as "
        f"ours, and its history is {more:.1f} times as large (P4 asks for 4 and 30 at 100 steps of 5,000 chars)."
    )


def _throughput(trials: Sequence[Trial], name: str, other: str) -> str:
    both = _common([trial for trial in trials if trial.sessions > 1], other, name)
    if not both:
        return ""
    ours, theirs = both
    ratio = _median(ours, lambda trial: trial.steps_per_second) / _median(theirs, lambda trial: trial.steps_per_second)
    target, against_floor, against_peers = OURS[name]
    return (
        f"{ours[0].sessions} sessions of {ours[0].steps} steps at once: {name} does {ratio:.2f} times the steps per "
        f"second of {other} ({target} asks for {against_floor if other == 'floor' else against_peers})."
    )


def as_rich(title: str, header: Row, rows: Sequence[Row]) -> Table:
    shown = Table(*header, title=title)
    for row in rows:
        shown.add_row(*row)
    return shown


def as_markdown(header: Row, rows: Sequence[Row]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _groups(trials: Iterable[Trial]) -> list[tuple[Load, str, list[Trial]]]:
    """Smaller loads first; within one, the contenders in the order in which they took turns."""
    groups: dict[tuple[Load, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault(((trial.steps, trial.chars, trial.sessions), trial.contender), []).append(trial)
    found = [(load, contender, same) for (load, contender), same in groups.items()]
    return sorted(found, key=lambda group: group[0])


def _common(trials: Sequence[Trial], other: str, name: str = "longhaul") -> tuple[list[Trial], list[Trial]] | None:
    """Ours and theirs of the largest load that both came through."""
    through = [group for group in _groups(trials) if _all_came_through(group[2])]
    ours = {load: same for load, contender, same in through if contender == name}
    theirs = [(load, same) for load, contender, same in through if contender == other and load in ours]
    return (ours[theirs[-1][0]], theirs[-1][1]) if theirs else None


def _all_came_through(trials: Sequence[Trial]) -> bool:
    return all(trial.ended == COMPLETED for trial in trials)


def _came_to(trials: Sequence[Trial]) -> str:
    done = f"{_median(trials, lambda trial: trial.done):,.0f}"
    endings = sorted({trial.ended for trial in trials} - {COMPLETED})
    return f"{done}, {' or '.join(endings)}" if endings else done


def _median(trials: Sequence[Trial], pick: Callable[[Trial], float]) -> float:
    return statistics.median(pick(trial) for trial in trials)


def _spread(trials: Sequence[Trial], pick: Callable[[Trial], float]) -> str:
    values = [pick(trial) for trial in trials]
    median = f"{statistics.median(values):.1f}"
    return f"{median} ({min(values):.1f}-{max(values):.1f})" if len(values) > 1 else median
