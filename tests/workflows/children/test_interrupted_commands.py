"""An interrupt at the root while ten sub-agents run commands that ignore SIGTERM: all end, and can be read."""

import asyncio
import time
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState, problem
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.starter.client.session import Session
from tests.limits import usual
from tests.workflows.children.trees import agent, child_of, lead, tasks
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

CREW = [f"t{number}" for number in range(10)]
STUBBORN = "trap '' TERM; sleep 7131 & sleep 7131 & echo $$ > group-$$.new; mv group-$$.new group-$$; wait; wait"
TARGET_SECONDS = 1.0


def tree(stage: Stage, round_: int) -> Session:
    worker = agent(stage, calls("Bash", command=STUBBORN), {"text": "Never."}) | {"tools": ["Bash"]}
    return lead(
        stage,
        {"scout": worker},
        tasks(*(f"{call_id}-{round_} scout" for call_id in CREW)),
        {"text": "Never."},
        permission=PermissionContext(mode=PermissionMode.BYPASS),
    )


def groups_in(folder: Path) -> set[int]:
    return {int(file.name.removeprefix("group-")) for file in folder.glob("group-*[0-9]")}


def alive_of(groups: set[int]) -> set[int]:
    """Those process groups of which a process is there that is no zombie."""
    found = set[int]()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            state, _, group = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:
            continue
        if state not in "ZX":
            found.add(int(group))
    return found & groups


async def seconds_to_end(stage: Stage, round_: int) -> list[float]:
    """Of each process group, from the interrupt on; the replies and transcripts are looked at."""
    session = tree(stage, round_)
    for file in stage.workspace.glob("group-*"):
        file.unlink()
    reply = await session.submit("Go")

    async def all_run() -> bool:
        return len(groups_in(stage.workspace)) == len(CREW)

    await until(all_run)
    groups = groups_in(stage.workspace)
    assert alive_of(groups) == groups
    started, ends = time.monotonic(), dict[int, float]()
    await session.interrupt()
    while len(ends) < len(groups):
        now, left = time.monotonic() - started, alive_of(groups)
        ends |= dict.fromkeys(groups - left - ends.keys(), now)
        await asyncio.sleep(0.02)

    done = await session.wait(reply)
    assert [state for state, _ in results(done)] == [ToolResultState.INTERRUPTED] * len(CREW)
    for one in (session, *(child_of(stage, session, f"{call_id}-{round_}") for call_id in CREW)):
        assert (await one.status()).status == "idle"
        assert problem([message async for message in one.transcript()]) == ""
    return list(ends.values())


@pytest.mark.proves("X14")
async def test_all_commands_end_with_all_that_they_started_and_each_transcript_is_valid(stage: Stage) -> None:
    assert len(await seconds_to_end(stage, 0)) == len(CREW)


@pytest.mark.chaos
@pytest.mark.alone
async def test_of_a_hundred_nineteen_in_twenty_end_within_a_second(stage: Stage) -> None:
    seconds = sorted([one for round_ in range(10) for one in await seconds_to_end(stage, round_)])

    assert seconds[int(len(seconds) * 0.95) - 1] <= usual(TARGET_SECONDS), seconds
    print(f"median {seconds[len(seconds) // 2]:.2f}, p95 {seconds[94]:.2f}, max {seconds[-1]:.2f} s")
