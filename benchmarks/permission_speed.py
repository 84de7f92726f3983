"""How long a decision on a command takes: 1,000 mixed command lines of the corpora, looked at and judged.

`python -m benchmarks.permission_speed` prints a table. Nothing is run, and no server is needed.
"""

import asyncio
import json
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from activities.rehearsal import Rehearsal
from activities.tools.registry import Toolbox, default_tools
from agent.permission.rules import Behavior, PermissionContext, PermissionRule
from tests.activities.corpora.stage import Stage, build, corpus

DECISIONS = 1_000
TARGET_MS = 2.0
RULES = tuple(
    PermissionRule(tool_name=tool, rule_content=content, behavior=behavior)
    for number in range(10)
    for tool, content, behavior in (
        ("Bash", f"make target-{number}:*", Behavior.ALLOW),
        ("Bash", f"git push remote-{number}:*", Behavior.DENY),
        ("Read", f"/srv/private-{number}/**", Behavior.DENY),
    )
)


def lines(stage: Stage) -> dict[str, list[str]]:
    """By kind; each cut or repeated to as many as are decided on."""
    plain = [stage.text(line.text) for line in corpus("benign.txt")]
    kinds = {
        "plain": plain,
        "in a chain": [f"{line} && npm run build" for line in plain],
        "hostile": [stage.text(line.text) for line in corpus("hostile.txt")],
    }
    columns = (islice(cycle(each), DECISIONS) for each in kinds.values())
    mixed = [line for row in zip(*columns, strict=True) for line in row]
    return {name: list(islice(cycle(each), DECISIONS)) for name, each in {**kinds, "mixed": mixed}.items()}


async def timed(rehearsal: Rehearsal, texts: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds a decision, of the clock and of the processor, each sorted."""
    clock: list[float] = []
    processor: list[float] = []
    for text in texts:
        raw = json.dumps({"command": text})
        began, worked = time.perf_counter(), time.process_time()
        await rehearsal.decide("Bash", raw)
        clock.append((time.perf_counter() - began) * 1e3)
        processor.append((time.process_time() - worked) * 1e3)
    return sorted(clock), sorted(processor)


def percentiles(took: list[float]) -> str:
    return " | ".join(f"{took[len(took) * percent // 100]:.2f}" for percent in (50, 95))


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stage = build(Path(folder))
        print(f"| {DECISIONS:,} decisions | rules | p50 ms | p95 ms | processor p50 ms | processor p95 ms |")
        print("|---|---|---|---|---|---|")
        for rules in ((), RULES):
            rehearsal = Rehearsal(Toolbox(default_tools()), PermissionContext(rules=rules), stage.root)
            for name, texts in lines(stage).items():
                clock, processor = await timed(rehearsal, texts)
                print(f"| {name} | {len(rules)} | {percentiles(clock)} | {percentiles(processor)} |")
    print(f"\nMeant: p95 of at most {TARGET_MS:g} ms over the mixed lines.")


if __name__ == "__main__":
    asyncio.run(main())
