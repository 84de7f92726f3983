"""A sub-agent whose time is over ends its task, whatever it is doing, and its lead reads that as what it is."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState, problem
from longhaul.starter.client.session import Session
from tests.e2e.processes import a_while, running_with, worker
from tests.workflows.children.trees import SUMMED_UP, agent, asked, child_of, ended, lead, outcomes, tasks
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, push_over, recorded, results, until
from tests.workflows.roomy import failure_of_replay
from tests.workflows.steering.test_background_commands import STUBBORN

pytestmark = pytest.mark.server

SECONDS = 2.5
OVER = f"did not complete its task (interrupted: its time was over: `task_seconds` of its agent is {SECONDS:g})"
MARK = a_while()
BYPASS: dict[str, Any] = {"permission": {"mode": "bypass"}}
NEVER: Line = {"text": "Never."}


@dataclass(frozen=True)
class Kind:
    """What a sub-agent is doing when its time is over, and how its session says so."""

    lines: tuple[Line, ...]
    status: str
    """While it does that."""
    agent: dict[str, Any] = field(default_factory=dict[str, Any])
    lead: dict[str, Any] = field(default_factory=dict[str, Any])


KINDS = {
    "its model says nothing": Kind(({"text": "Hm.", "delay_ms": 300_000},), "working"),
    "a command ignores its end": Kind(
        (calls("Bash", command=STUBBORN.format(MARK)), NEVER), "working", {"tools": ["Bash"]}, BYPASS
    ),
    "a tool swallows its cancellation": Kind(
        (calls("look_deafly"), NEVER), "working", {"tools": ["look_deafly"]}, BYPASS
    ),
    "it waits for a person": Kind((calls("send", to="Ana"), NEVER), "waiting"),
    "it waits for a system outside": Kind(
        (calls("courier", parcel="oil"), NEVER), "waiting", {"tools": ["courier"]}, BYPASS
    ),
    "it sleeps": Kind(
        ({"tool_calls": [{"name": "sleep", "input": {"for": "1h"}}]}, NEVER), "waiting", {"tools": ["sleep"]}
    ),
    "it waits for budget": Kind((calls("fetch", page=1), NEVER), "waiting", {"budget": {"max_calls": 1}}, BYPASS),
    "its host is away": Kind((NEVER,), "working", {"workspace": {"place": "local", "host": "den", "root": "/tmp"}}),
}


def given(call_id: str = "t1", **more: Any) -> Line:
    task = {"agent": "scout", "task": "go", **more}
    return {"tool_calls": [{"id": call_id, "name": "Agent", "input": task}]}


async def has_ended_well(stage: Stage, session: Session, child: Session) -> None:
    """Both can be read, and go on; nothing that it started is there."""
    assert running_with(f"sleep\0{MARK}") == []
    for one in (session, child):
        assert (await one.status()).status == "idle"
        assert problem([message async for message in one.transcript()]) == ""
        assert await failure_of_replay(stage, one) is None


@pytest.mark.proves("X14")
@pytest.mark.parametrize("what", KINDS)
async def test_its_task_ends_when_its_time_is_over_whatever_it_does(stage: Stage, what: str) -> None:
    kind = KINDS[what]
    scout = agent(stage, *kind.lines, task_seconds=SECONDS, **kind.agent)
    session = lead(stage, {"scout": scout}, **kind.lead)
    reply = await session.submit("Go")
    child = child_of(stage, session)

    async def stands_there() -> bool:
        return await child.has_started() and (await child.status()).status == kind.status

    await until(stands_there)
    done = await ended(session, reply)

    ((state, told),) = results(done)
    assert state is ToolResultState.ERROR
    assert OVER in told
    assert child.id in told
    assert done.get_text_content() == "Summed up."
    assert await outcomes(session) == [("t1", "scout", "error")]
    entries = await recorded(stage, child)
    (asks,), (end,) = ([each for each in entries if each.kind == kind] for kind in ("interrupted", "finished"))
    started = next(entry for entry in entries if entry.kind == "opened")
    assert asks.at - started.at >= SECONDS * 1000 - 500, "not before its time"
    assert end.at - asks.at < 40_000, "and not when it wants to end"
    await has_ended_well(stage, session, child)


async def test_what_it_has_started_itself_ends_with_it(stage: Stage) -> None:
    below = {"tools": ["Bash"], "model": stage.script(calls("Bash", command=STUBBORN.format(MARK)), NEVER)}
    scout = agent(stage, given(call_id="t2"), NEVER, task_seconds=SECONDS) | {"agents": {"scout": below}}
    session = lead(stage, {"scout": scout}, **BYPASS)

    ((state, told),) = results(await session.reply("Go"))

    assert (state, OVER in told) == (ToolResultState.ERROR, True)
    child = child_of(stage, session)
    assert await outcomes(child) == [("t2", "scout", "interrupted")]
    await has_ended_well(stage, session, child)


async def test_one_in_the_background_is_heard_of_and_a_pause_stops_no_clock(stage: Stage) -> None:
    scout = agent(stage, calls("send", to="Ana"), NEVER, task_seconds=SECONDS)
    session = lead(
        stage, {"scout": scout}, given(run_in_background=True), {"text": "I wait."}, {"text": "So it is late."}
    )
    await session.reply("Go")
    child = child_of(stage, session)
    await child.pause(by="ana")

    async def woken() -> bool:
        return [m.get_text_content() async for m in session.transcript()][-1] == "So it is late."

    await until(woken)
    (hint,) = [str(block.hint) async for m in session.transcript() for block in m.content if block.type == "hint"]
    assert "in the background: error.\n" in hint
    assert OVER in hint
    assert await outcomes(session) == [("t1", "scout", "error")]


async def test_its_time_goes_on_over_a_continue_as_new_and_without_any_worker(unserved: Stage) -> None:
    stage = unserved
    settings = stage.worker_settings
    scout = agent(stage, calls("Bash", command=STUBBORN.format(MARK)), NEVER, task_seconds=9, tools=["Bash", "send"])
    waits = agent(stage, calls("send", to="Ana"), NEVER, task_seconds=9)
    session = stage.session(
        tasks("t1 scout", "t2 waits"),
        SUMMED_UP,
        agents={"scout": scout, "waits": waits | {"permission": {"rules": [{"tool_name": "send", "behavior": "ask"}]}}},
        tools=(),
        **BYPASS,
    )
    async with worker(settings) as first:
        reply = await session.submit("Go")
        other = child_of(stage, session, "t2", "waits")
        await asked(other)

        async def runs() -> bool:
            return len(running_with(f"sleep\0{MARK}")) >= 2

        await until(runs)
        await push_over(stage, other)
        await first.kill()

    async def is_over() -> bool:
        """The server has said so, and no worker has heard it: one that is there sooner goes on with what is left."""
        handles = [stage.handle(child) for child in (other, child_of(stage, session, "t1", "scout"))]
        events = [(await handle.fetch_history()).events for handle in handles]
        return all(any(one.HasField("timer_fired_event_attributes") for one in each) for each in events)

    await until(is_over)
    async with stage.another_worker():
        done = await session.wait(reply)

    over = OVER.replace(f"{SECONDS:g}", "9")
    assert [(state, over in told) for state, told in results(done)] == [(ToolResultState.ERROR, True)] * 2


async def test_a_task_that_ends_in_its_time_is_as_any_other(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, {"text": "Found it."}, task_seconds=600)})

    assert results(await session.reply("Go")) == [(ToolResultState.SUCCESS, "Found it.")]

    child = child_of(stage, session)
    assert await child.end() == "completed"
    await has_ended_well(stage, session, child)
