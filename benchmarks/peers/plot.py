"""`python -m benchmarks.peers.plot CURVES.json OUT.svg`, in an environment of its own that has matplotlib."""

import json
import sys
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

from benchmarks.peers.drawing import draw

# In the order of drawing: the continue-as-new of a line must not hide the line beneath them, and ours is on top.
COLOURS = {
    "pydantic-ai rolling": "#e8a33d",
    "pydantic-ai": "#c8102e",
    "openai-agents": "#3358a8",
    "floor": "#8c8c8c",
    "longhaul, an activity a call": "#7bc8a4",
    "longhaul": "#0b6e4f",
}


def figure(curves: list[dict[str, Any]]) -> Figure:
    """Bytes of history and milliseconds, each per step and on a logarithmic scale."""
    drawn = Figure(figsize=(11, 4.6), layout="constrained")
    size, ms = drawn.subplots(1, 2)
    for axes, measure in ((size, "size"), (ms, "ms")):
        for curve in sorted(curves, key=lambda curve: list(COLOURS).index(curve["contender"])):
            style = {"color": COLOURS[curve["contender"]], "linewidth": 1.5}
            draw(axes, curve["contender"], curve[measure], curve["ended"], style)
        axes.set(yscale="log", xlabel="step of one session")
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    size.set_title("history that a step adds")
    size.yaxis.set_major_formatter(EngFormatter("B"))
    ms.set_title("time that a step takes")
    ms.yaxis.set_major_formatter("{x:g} ms")
    drawn.legend(*size.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return drawn


def main(source: str, target: str) -> None:
    # The same curves give the same file: no date, no random ids; text stays text.
    mpl.rcParams.update({"svg.hashsalt": "longhaul", "svg.fonttype": "none"})
    with open(source, encoding="utf-8") as curves:  # noqa: PTH123  a file named on the command line
        figure(json.load(curves)).savefig(target, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
