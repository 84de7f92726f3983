"""How a line is drawn, whatever draws it: the plot's environment knows matplotlib, the tests do not."""

from collections.abc import Sequence
from typing import Any, Protocol


class Axes(Protocol):
    """The part of matplotlib's axes that is used here."""

    def plot(self, *points: Any, **style: Any) -> Any: ...


def draw(axes: Axes, contender: str, values: Sequence[float], ended: str, style: dict[str, Any]) -> None:
    """One line; with a cross on its last step, and the step in its label, if the session was ended there."""
    last = len(values)
    label = f"{contender}, {ended} at step {last}" if ended else contender
    axes.plot(range(1, last + 1), values, label=label, **style)
    if ended:
        axes.plot([last], [values[-1]], marker="x", markersize=11, markeredgewidth=3, color=style["color"], zorder=5)
