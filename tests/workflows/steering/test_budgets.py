"""A session with a budget on the server: it stands still and is seen, goes on with more, and counts each attempt once,
whatever becomes of workers, runs and lives."""

import re
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from longhaul.activities.contract import CALL_MODEL
from longhaul.agent.values.budget import Raise
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.agent.views.session_views import BudgetStanding
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import worker
from tests.workflows.conftest import Line, Stage
from tests.workflows.incarnation.test_incarnations import closes
from tests.workflows.operations import calls, push_over, recorded, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

USAGE = {"input_tokens": 700, "output_tokens": 300}
ROOM = {"max_output_tokens": 1_000}


def frugal(stage: Stage, *lines: Line, budget: dict[str, Any], **more: Any) -> Session:
    """Each line is billed with a thousand tokens, and may take a little more."""
    paid = [{"usage": USAGE, **line} for line in lines]
    return stage.session(*paid, budget=budget, model_config={**ROOM, **more.pop("model", {})}, **more)


async def standing(session: Session) -> BudgetStanding:
    found = (await session.status()).budget
    assert found is not None
    return found


async def waits(session: Session) -> None:
    async def parked() -> bool:
        return bool((await standing(session)).asks)

    await until(parked)


async def asks_its_model(stage: Stage, session: Session) -> None:
    async def started() -> bool:
        underway = (await stage.handle(session).describe()).raw_description.pending_activities
        return any(one.activity_type.name == CALL_MODEL and one.last_worker_identity for one in underway)

    await until(started)


@pytest.mark.proves("F4", "X8")
async def test_an_exhausted_budget_waits_in_the_inbox_through_a_continue_as_new_and_a_signal_lets_it_go_on(
    stage: Stage,
) -> None:
    session = frugal(stage, calls("fetch", page=1), {"text": "Read."}, {"text": "Again."}, budget={"max_calls": 1})
    reply = await session.submit("Read it")
    await waits(session)
    message = await session.wait(reply)

    assert message.finished_reason is None
    (call,) = await session.pending()
    assert (call.waits_for, call.reason) == ("budget", "1 call of 1 call, and the next call may take 1 call")
    page = str(await stage.handle(session).query("__temporal_workflow_metadata"))
    assert f"longhaul budget {session.id} --raise-calls N" in page

    async def listed() -> bool:
        found = await stage.app.inbox()
        return [each.waits_for for card, each in found.calls if card.session_id == session.id] == ["budget"]

    await until(listed)
    await push_over(stage, session)
    assert (await standing(session)).asks == call.reason
    body = {"more": {"calls": 1}, "by": "ana", "request_id": "once"}
    await stage.handle(session).signal("budget", body)
    await stage.handle(session).signal("budget", body)

    async def ended() -> bool:
        return (await session.status()).status == "idle"

    await until(ended)
    assert (await session.wait(reply)).get_text_content() == "Read."
    told = await standing(session)
    assert (told.limits, told.left, told.spent["tokens"]) == ({"calls": 2}, {"calls": 0}, 2_000)
    with pytest.raises(Refused, match="no reply waits for more budget"):
        await session.change_budget(end="stop")
    assert await session.change_budget(Raise(calls=1), request_id="more") == {"calls": 3}
    assert await session.change_budget(Raise(calls=1), request_id="more") == {"calls": 3}
    assert (await session.reply("Once more")).get_text_content() == "Again."
    assert await failure_of_replay(stage, session) is None


async def test_attempts_that_were_turned_away_are_free_and_those_that_broke_off_are_of_unknown_outcome(
    unserved: Stage,
) -> None:
    prices = unserved.folder / "prices.toml"
    prices.write_text(f'["{unserved.folder}"]\ninput = 2\noutput = 10\nas_of = 2026-11-01\nsource = "an operation"\n')
    stage = replace(unserved, settings=unserved.settings.model_copy(update={"prices": prices}))
    faults = [{"kind": "overloaded"}, {"kind": "connection_reset"}, {"kind": "rate_limited", "retry_after": 0}]
    session = frugal(stage, {"text": "Said.", "faults": faults}, budget={"max_cost": 1.0})
    async with stage.another_worker():
        done = await session.reply("Say it")
        told = await standing(session)

        assert done.get_text_content() == "Said."
        # On a busy machine an attempt may be lost besides.
        assert 1 <= told.doubtful["calls"] < len(faults)
        cost = (700 * 2 + 300 * 10) / 1e6
        assert told.spent["cost"] - told.doubtful["cost"] == pytest.approx(cost, abs=1e-9)
        assert 0.01 < told.doubtful["cost"] / told.doubtful["calls"] < 0.03
        assert told.reserved == {"tokens": 0, "cost": 0, "calls": 0}


async def test_a_model_without_a_price_is_refused_by_name_where_the_budget_is_of_money(stage: Stage) -> None:
    session = frugal(stage, {"text": "Never."}, budget={"max_cost": 1.0})

    done = await session.reply("Say it")

    assert done.error is not None
    assert re.match(
        r"budget\.max_cost: the workers have no price for 'scripted:.*', and what it costs is not guessed",
        (done.error.message),
    )
    assert (await standing(session)).spent["calls"] == 0


async def test_a_call_whose_attempts_are_lost_is_made_again_only_as_the_budget_does_for_it(stage: Stage) -> None:
    faults = [{"kind": "connection_reset"}] * 9
    budget = {"max_calls": 2, "on_exhaustion": "stop"}
    session = frugal(stage, {"text": "Never.", "faults": faults}, budget=budget)

    done = await session.reply("Say it")
    told = await standing(session)

    assert done.finished_reason == "out_of_budget"
    assert told.spent["calls"] == told.doubtful["calls"] >= 2
    assert told.left == {"calls": 0}


async def test_a_reply_that_is_interrupted_in_its_call_leaves_an_unknown_outcome_and_nothing_put_aside(
    stage: Stage,
) -> None:
    slow = {"text": "A long story. " * 40, "delay_ms": 400}
    session = frugal(stage, slow, budget={"max_tokens": 50_000})
    reply = await session.submit("Tell it")
    await asks_its_model(stage, session)
    assert (await standing(session)).reserved["calls"] == 1

    await session.interrupt()
    await session.wait(reply)
    told = await standing(session)

    assert told.spent["calls"] == told.doubtful["calls"] >= 1
    assert told.reserved["calls"] == 0


@pytest.mark.proves("X8")
async def test_a_worker_that_is_killed_in_a_model_call_leaves_one_unknown_outcome_beside_the_answer(
    unserved: Stage,
) -> None:
    stage = unserved
    slow = {"text": "A long story. ", "chunk_chars": 1, "delay_ms": 150}
    session = frugal(stage, slow, {"text": "The end."}, budget={"max_tokens": 50_000})
    first = stage.worker_settings
    async with worker(first) as killed:
        reply = await session.submit("Tell it")
        await asks_its_model(stage, session)
        await killed.kill()
    async with stage.another_worker():
        done = await session.wait(reply)
        told = await standing(session)

        assert done.get_text_content() == "A long story. "
        assert told.spent["calls"] == 1 + told.doubtful["calls"] >= 2
        assert told.reserved["calls"] == 0
        assert told.spent["tokens"] - told.doubtful["tokens"] == 1_000
        await session.reply("And then?")
        then = await standing(session)
        assert then.spent["tokens"] - then.doubtful["tokens"] == 2_000


@pytest.mark.proves("X8")
async def test_what_was_spent_in_one_life_is_spent_in_the_next(stage: Stage) -> None:
    session = frugal(stage, {"text": "One."}, {"text": "Two."}, budget={"max_calls": 2}, idle_close_seconds=1)
    await session.reply("Count")
    await closes(stage, session)
    assert (await session.reply("Count")).get_text_content() == "Two."
    await closes(stage, session)

    reply = await session.submit("Count")
    await waits(session)

    told = await standing(session)
    assert (told.spent["calls"], told.spent["steps"], told.left) == (2, 2, {"calls": 0})
    await session.change_budget(end="stop", by="ana")
    assert (await session.wait(reply)).finished_reason == "out_of_budget"


async def test_a_compression_draws_on_the_same_budget(stage: Stage) -> None:
    long = {"text": "stone " * 900}
    session = frugal(stage, long, long, {"text": "Done."}, budget={"max_calls": 50}, model={"context_length": 20_000})
    for _ in range(3):
        await session.reply("Go on")

    assert await session.compress_context(ContextConfig(trigger_ratio=0.02, reserve_ratio=0.01))
    status = await session.status()
    assert (status.compressions, status.compression_tries) == (1, 1)
    assert (await standing(session)).spent["calls"] == status.model_calls + status.compression_tries
    assert (await standing(session)).spent["tokens"] == status.input_tokens + status.output_tokens


async def test_the_program_of_the_page_lets_a_session_go_on(stage: Stage) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents" / "budgets.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    session = frugal(stage, calls("fetch", page=1), {"text": "Read."}, budget={"max_calls": 1})
    reply = await session.submit("Read it")
    await waits(session)

    names: dict[str, Any] = {}
    exec(f"async def run(session):\n{indent(program, '    ')}", names)  # noqa: S102  our own page
    await names["run"](session)

    async def ended() -> bool:
        return (await session.status()).status == "idle"

    await until(ended)
    assert (await session.wait(reply)).get_text_content() == "Read."
    assert (await standing(session)).limits == {"calls": 6}


async def test_a_budget_that_nobody_set_is_said_to_whoever_raises_it(stage: Stage) -> None:
    session = stage.session({"text": "Hello."})
    await session.reply("Hello")

    with pytest.raises(Refused, match="the session has no budget"):
        await session.change_budget(Raise(tokens=5))
    assert (await session.status()).budget is None
    log = [entry for entry in await recorded(stage, session) if entry.kind != "refused"]
    assert [entry.kind for entry in log if '"budget' in entry.model_dump_json()] == []
