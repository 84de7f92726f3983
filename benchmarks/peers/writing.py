"""What a run leaves behind: raw samples, the plot, and a section of docs/benchmarks.md between marks of its own."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.pages import with_section
from benchmarks.peers.curves import curves
from benchmarks.peers.report import CROWD_HEADER, STEP_HEADER, as_markdown, crowd_rows, findings, step_rows
from benchmarks.peers.sides import FLAGS, PROGRAMS
from benchmarks.peers.trial import Trial
from benchmarks.peers.venvs import LOCKS, versions
from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG, SQLITE_PRAGMAS

ROOT = LOCKS.parents[1]
SECTION = "bench-peers"


@dataclass(frozen=True, slots=True)
class Setting:
    """Under what the trials ran."""

    command: str
    temporal: Path
    repeats: int

    def as_json(self) -> dict[str, Any]:
        answer = subprocess.run([self.temporal, "--version"], capture_output=True, text=True, check=True)
        return {
            "date": datetime.now(UTC).date().isoformat(),
            "command": self.command,
            "repeats": self.repeats,
            "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "server": answer.stdout.strip(),
            "temporalio": version("temporalio"),
            "peers": {program: versions(program) for program in PROGRAMS},
            "environment": FLAGS,
            "dynamic_config": dict(DYNAMIC_CONFIG),
            "sqlite": dict(SQLITE_PRAGMAS),
        }


def write(trials: Sequence[Trial], setting: Setting, docs: Path, plotting: Path) -> None:
    """Into `docs`, whose page keeps all that stands outside our marks; `plotting` is a Python with matplotlib."""
    for folder in ("benchmarks", "images"):
        (docs / folder).mkdir(parents=True, exist_ok=True)
    facts = setting.as_json()
    lines = ",\n".join(json.dumps(trial.as_json()) for trial in trials)
    (docs / "benchmarks" / "peers.json").write_text(f'{{"setting": {json.dumps(facts)},\n"trials": [\n{lines}\n]}}\n')
    drawn = docs / "benchmarks" / "peers_curves.json"
    drawn.write_text("[\n" + ",\n".join(json.dumps(curve.as_json()) for curve in curves(trials)) + "\n]\n")
    picture = docs / "images" / "peers.svg"
    subprocess.run([plotting, "-m", "benchmarks.peers.plot", drawn.resolve(), picture.resolve()], cwd=ROOT, check=True)
    page = docs / "benchmarks.md"
    page.write_text(with_section(page.read_text() if page.exists() else "", SECTION, section(trials, facts)))


def section(trials: Sequence[Trial], facts: dict[str, Any]) -> str:
    """Markdown; figures are medians with the least and the largest of the repeats."""
    named = [f"{package} {number}" for packages in facts["peers"].values() for package, number in packages.items()]
    flags = ", ".join(f"`{key}={json.dumps(value)}`" for key, value in facts["dynamic_config"].items())
    pragmas = ", ".join(f"{key}={value}" for key, value in facts["sqlite"].items())
    why = [f"- {trial.contender}, {trial.steps:,} steps: {trial.why}" for trial in _ended_otherwise(trials)]
    parts = [
        "## Beside its peers",
        (
            f"Measured on {facts['date']} with `{facts['command']}`: {facts['machine']}, Python {facts['python']}, "
            f"{facts['server']}, {', '.join(sorted(set(named)))}; {_times(facts['repeats'])}. "
            "All sides take turns on one server, each on a worker process of its own; only ratios mean something."
        ),
        FAIRNESS,
        as_markdown(STEP_HEADER, step_rows(trials)),
        as_markdown(CROWD_HEADER, crowd_rows(trials)),
        "\n".join(f"- {finding}" for finding in findings(trials)),
        *(["How runs ended before their last step:", "\n".join(why)] if why else []),
        "![History bytes and milliseconds per step, over the steps of one session](images/peers.svg)",
        "Raw: [the samples](benchmarks/peers.json), [the lines of the plot](benchmarks/peers_curves.json).",
        f"Server: SQLite with {pragmas}; {flags}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _times(repeats: int) -> str:
    return "one run of each" if repeats == 1 else f"{repeats} runs of each, median (min-max)"


FAIRNESS = """\
Everybody does the same: one scripted model call and one tool call a step; the tool returns incompressible text and is
an activity. Peers run as their documentation has it, on default workers (sandboxed, with compressed requests and on
Python's event loop, as the floor; ours are not, see the decisions on workers), tracing off, without step limits, and
without a payload codec or a store for large payloads.
Nobody summarises, and nobody cuts results: our window and our limit of a result are set out of reach.
*pydantic-ai rolling* is the same agent with the `continue_as_new` callback that its users may write, which carries the
messages; its history is the sum over all workflow runs, as ours is. Time and CPU of a session that was ended are those
up to its last whole step. Who was ended is not asked for more steps; a peer is asked for more
than 100 steps once, and not where it would take minutes."""


def _ended_otherwise(trials: Sequence[Trial]) -> list[Trial]:
    """One of each kind."""
    return list({(trial.contender, trial.steps, trial.sessions): trial for trial in trials if trial.why}.values())
