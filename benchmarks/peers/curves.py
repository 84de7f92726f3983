"""What the plot shows: cost of each step over the steps, one line a side, ending in a cross where a run was ended."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from benchmarks.peers.course import Step
from benchmarks.peers.trial import COMPLETED, Trial

WINDOW = 9
"""Steps over which the median smooths a line: single pauses of a shared machine would hide where it goes."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Index 0 is step 1."""

    contender: str
    ms: tuple[float, ...]
    size: tuple[float, ...]
    """Bytes."""
    ended: str
    """Empty, or how the last step came to be the last."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def curves(trials: Sequence[Trial]) -> list[Curve]:
    """Of each contender the trials with the most steps, as a median over their runs."""
    alone = [trial for trial in trials if trial.course]
    chars = max(alone, key=lambda trial: trial.steps).chars
    lines = []
    for contender in dict.fromkeys(trial.contender for trial in alone):
        mine = [trial for trial in alone if (trial.contender, trial.chars) == (contender, chars)]
        most = max(trial.steps for trial in mine)
        lines.append(_curve([trial for trial in mine if trial.steps == most]))
    return lines


def _curve(runs: Sequence[Trial]) -> Curve:
    shortest = min(runs, key=lambda run: len(run.course))
    columns: list[list[Step]] = [
        [step for step in column if step] for column in zip_longest(*(run.course for run in runs))
    ][: len(shortest.course)]
    return Curve(
        contender=shortest.contender,
        ms=tuple(_smooth([statistics.median(step.ms for step in column) for column in columns])),
        size=tuple(float(statistics.median(step.size for step in column)) for column in columns),
        ended="" if shortest.ended == COMPLETED else shortest.ended,
    )


def _smooth(values: Sequence[float]) -> list[float]:
    reach = WINDOW // 2
    return [statistics.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))]
