"""Background sub-agents on the server: over continue-as-new and a kill each is heard of once, and wakes its lead."""

import pytest

from longhaul.starter.client.session import Session
from tests.e2e.processes import worker
from tests.workflows.children.trees import agent, asked, child_of, lead, listed, outcomes, runs
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, push_over, recorded, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

SENDS = (calls("send", to="Ana"), {"text": "Sent, I hope."})


def given(*call_ids: str) -> Line:
    return {
        "tool_calls": [
            {"id": one, "name": "Agent", "input": {"agent": "scout", "task": "go", "run_in_background": True}}
            for one in call_ids
        ]
    }


async def said(session: Session) -> list[str]:
    return [m.get_text_content() async for m in session.transcript() if m.role == "assistant" and m.get_text_content()]


async def heard_of(session: Session) -> int:
    hints = [str(m.content) async for m in session.transcript() if m.role == "user"]
    return sum("has ended its task in the background: success." in hint for hint in hints)


@pytest.mark.proves("X14")
async def test_an_idle_lead_is_woken_once_over_continue_as_new_of_both(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)}, given("t1"), {"text": "I wait."}, {"text": "Heard."})
    assert (await session.reply("Go")).get_text_content() == "I wait."
    child = child_of(stage, session)
    call = await asked(child)
    assert (await session.status()).status == "idle"
    assert [each.call.path for each in await session.tree.pending()] == ["lamp › scout › send"]

    await push_over(stage, session)
    await push_over(stage, child)
    await child.confirm(call, allow=True)

    async def woken() -> bool:
        return await said(session) == ["I wait.", "Heard."] and (await session.status()).status == "idle"

    await until(woken)
    assert await heard_of(session) == 1
    assert await outcomes(session) == [("t1", "scout", "success")]
    assert await failure_of_replay(stage, session) is None


@pytest.mark.proves("X14")
async def test_a_killed_worker_loses_no_end_and_starts_nothing_twice(unserved: Stage) -> None:
    stage = unserved
    settings = stage.worker_settings
    session = lead(
        stage,
        {"scout": agent(stage, *SENDS)},
        given("t1", "t2"),
        {"text": "I wait."},
        *[{"text": "Heard."}] * 2,
    )
    children = [child_of(stage, session, one) for one in ("t1", "t2")]
    async with worker(settings) as first:
        await session.submit("Go")

        async def has_started() -> bool:
            return len((await session.status()).children) == 2

        await until(has_started)
        await first.kill()
    async with stage.another_worker():
        waiting = [await listed(stage, child) for child in children]
        for child, call in zip(children, waiting, strict=True):
            await child.confirm(call, allow=True)

        async def both() -> bool:
            return await heard_of(session) == 2 and (await session.status()).status == "idle"

        await until(both)
        assert await outcomes(session) == [("t1", "scout", "success"), ("t2", "scout", "success")]
        assert [await runs(stage, child) for child in children] == [1, 1]
        ended = [entry for entry in await recorded(stage, session) if entry.kind == "child_ended"]
        assert len(ended) == 2


@pytest.mark.parametrize("stays_seconds", [600, 1], ids=["that is open", "that has closed"])
async def test_a_lead_that_was_ended_from_outside_hears_in_its_next_life_of_one(
    stage: Stage, stays_seconds: int
) -> None:
    """Of one that reports by operation, and whose operation found nobody."""
    scout = agent(stage, *SENDS, idle_close_seconds=stays_seconds)
    session = lead(stage, {"scout": scout}, given("t1"), {"text": "I wait."}, {"text": "Hm."}, {"text": "Heard."})
    await session.reply("Go")
    child = child_of(stage, session)
    call = await asked(child)
    await stage.handle(session).terminate("by hand")
    await child.confirm(call, allow=True)

    async def is_over() -> bool:
        if stays_seconds == 1:
            return bool(await child.end())
        return (await child.status()).status == "idle"

    await until(is_over)
    await session.reply("What came of it?")

    async def has_heard() -> bool:
        return await said(session) == ["I wait.", "Hm.", "Heard."]

    await until(has_heard)
    assert await heard_of(session) == 1
    assert await outcomes(session) == [("t1", "scout", "success")]
    assert [await failure_of_replay(stage, one) for one in (session, child)] == [None, None]


async def test_a_lead_lists_tells_and_stops_them(stage: Stage) -> None:
    session = lead(
        stage,
        {"scout": agent(stage, *SENDS)},
        given("t1"),
        calls("AgentSend", id="t1", message="Mind the gate."),
        calls("AgentList"),
        calls("AgentStop", id="t1"),
        {"text": "Stopped."},
    )
    done = await session.reply("Go")
    child = child_of(stage, session)

    told = {result.name: result.get_text() for result in done.get_tool_results()}
    assert "- t1: scout in the background, at work" in told["AgentList"]

    async def stopped() -> bool:
        return await outcomes(session) == [("t1", "scout", "interrupted")]

    await until(stopped)
    heard = [m.get_text_content() async for m in child.transcript() if m.role == "user"]
    assert "Mind the gate." in heard
    assert await said(session) == ["Stopped."]


async def test_a_copy_of_its_lead_is_told_that_nothing_of_it_comes_there(stage: Stage) -> None:
    waits = {"tool_calls": [{"id": "t2", "name": "Agent", "input": {"agent": "scout", "task": "go"}}]}
    session = lead(stage, {"scout": agent(stage, *SENDS)}, given("t1"), waits, {"text": "Both."}, {"text": "Heard."})
    reply = await session.submit("Go")
    children = [child_of(stage, session, one) for one in ("t1", "t2")]
    asks = [await asked(child) for child in children]

    copy = await session.stored.fork(f"{session.id}-copy")
    for child, call in zip(children, asks, strict=True):
        await child.confirm(call, allow=True)

    hints = [str(m.content) async for m in copy.context() if m.name == "longhaul"]
    given_up = [block.get_text() async for m in copy.context() for block in m.get_tool_results() if block.id == "t2"]
    assert "nothing of it comes here: the sub-agent 'scout' (id 't1')" in hints[-1]
    assert "reports there alone" in given_up[0]
    assert "stays with that session: the sub-agent 'scout' (id 't1')" in (await copy.status()).note
    assert (await session.wait(reply)).get_tool_results()[-1].get_text() == "Sent, I hope."
    assert await outcomes(copy) == []


async def test_an_edit_of_its_lead_s_state_stops_it_and_says_so(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)}, given("t1"), {"text": "I wait."})
    await session.reply("Go")
    await asked(child := child_of(stage, session))

    await session.stored.edit("summary", "All is new.", by="ana")

    async def stopped() -> bool:
        return await outcomes(session) == [("t1", "scout", "interrupted")]

    await until(stopped)
    hints = [str(m.content) async for m in session.context() if m.name == "longhaul"]
    named = f"'scout' (session '{child.id}')"
    assert f"{named}. No message of theirs comes." in hints[-1]
    assert (await session.status()).note == f"sub-agents were stopped when its state was changed: {named}"
    assert await failure_of_replay(stage, session) is None


async def test_an_interrupt_of_the_lead_s_reply_ends_those_in_the_background(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)}, given("t1"), {"text": "Never.", "delay_ms": 20_000})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    await asked(child)

    await session.interrupt()
    await session.wait(reply)

    async def stopped() -> bool:
        return await outcomes(session) == [("t1", "scout", "interrupted")]

    await until(stopped)
    assert await child.pending() == []
