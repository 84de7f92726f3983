"""A user's own activities as tools: on the user's stock workers, under the user's converter, by effect class."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from longhaul.activities.tools.target_tools import activity_tool
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.conversation.tools import Effect
from longhaul.starter.client.agent_files import load_agent
from longhaul.starter.client.session import Session
from longhaul.starter.dev_server.processes import bound_to_parent
from longhaul.workflows import running_activities
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_encrypted import locked
from tests.workflows.operations import calls, results, until
from tests.workflows.workers.payments import Payments, shop_worker

__all__ = ["locked"]

pytestmark = pytest.mark.server

ERROR, SUCCESS, UNKNOWN = ToolResultState.ERROR, ToolResultState.SUCCESS, ToolResultState.UNKNOWN
FREE: dict[str, Any] = {"mode": "bypass"}


@dataclass
class Shop:
    """The user's side: a queue, the activities, and the book of what they did."""

    address: str
    queue: str
    payments: Payments

    @asynccontextmanager
    async def worker(self, *names: str) -> AsyncIterator[None]:
        """A stock worker in this process, with these activities alone, if any are named."""
        chosen = [each for each in self.payments.all if each.__name__ in names] if names else None
        async with shop_worker(await Client.connect(self.address), self.queue, self.payments.folder, chosen):
            yield

    @asynccontextmanager
    async def process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """A stock worker in a process of its own, killed at the end."""
        program = ["-m", "tests.workflows.workers.payments", self.address, self.queue, str(self.payments.folder)]
        process = await asyncio.create_subprocess_exec(
            *bound_to_parent([sys.executable, *program]), stdout=asyncio.subprocess.PIPE
        )
        try:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def has_started(self, times: int = 1) -> None:
        async def there() -> bool:
            return len(self.payments.started()) >= times

        await until(there)


@pytest.fixture
def shop(unserved: Stage, tmp_path: Path) -> Shop:
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shop(unserved.address, f"{unserved.name}-payments", Payments(folder))


def selling(stage: Stage, shop: Shop, *lines: dict[str, Any], **spec: Any) -> Session:
    """A session with all of the shop's tools, free to use them. A worker that is silent for a second is lost."""
    pay = shop.payments
    live: dict[str, Any] = {"queue": shop.queue, "heartbeat": timedelta(seconds=1)}
    tools = [
        activity_tool(pay.issue_refund, **live),
        activity_tool(pay.look_up, name="look_up", effect="read", read_only=True, **live),
        activity_tool(pay.charge, queue=shop.queue),
        activity_tool(pay.ship, effect=Effect.IDEMPOTENT, **live),
        activity_tool(pay.pack, queue=shop.queue),
    ]
    return stage.session(*lines, {"text": "Done."}, **{"tools": tools, "permission": FREE, **spec})


REFUND = calls("issue_refund", order="A-7", cents=1200)
REFUNDED = '{"order": "A-7", "reason": "none given", "refunded": 1200}'


@pytest.mark.proves("X23")
async def test_an_activity_runs_on_the_users_worker_under_the_calls_id(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    line = {"tool_calls": [{"id": "call_refund-1", "name": "issue_refund", "input": {"order": "A-7", "cents": 1200}}]}
    session = selling(stage, shop, line)
    async with shop.worker():
        done = await session.reply("Refund A-7")
    assert results(done) == [(SUCCESS, REFUNDED)]
    assert shop.payments.started() == ["issue_refund call_refund-1 1"]


async def test_a_call_whose_id_is_a_number_meets_no_activity_of_the_session(stage: Stage, shop: Shop) -> None:
    """The SDK numbers those: an id that is in use would stop the session."""
    shop.payments.let_end()
    twice = [{"id": number, "name": "issue_refund", "input": {"order": "A-7", "cents": 1}} for number in ("1", "2")]
    session = selling(stage, shop, {"tool_calls": twice})
    async with shop.worker():
        done = await session.reply("Refund A-7, twice")
    assert [state for state, _ in results(done)] == [SUCCESS, SUCCESS]


async def test_arguments_are_given_in_their_places_and_what_is_left_out_has_its_default(
    stage: Stage, shop: Shop
) -> None:
    shop.payments.let_end()
    session = selling(stage, shop, calls("look_up", order="A-7", deep=True), calls("look_up", order="B-2"))
    async with shop.worker():
        done = await session.reply("Look A-7 up, and B-2")
    assert [text for _, text in results(done)] == ["A-7: 1200 EUR, and all that belongs to it", "B-2: 1200 EUR"]


async def test_arguments_that_do_not_fit_never_reach_the_activity(stage: Stage, shop: Shop) -> None:
    session = selling(stage, shop, calls("issue_refund", order="A-7", cents="many"))
    async with shop.worker():
        done = await session.reply("Refund A-7")
    ((state, text),) = results(done)
    assert (state, "cents" in text, shop.payments.started()) == (ERROR, True, [])


async def test_an_exception_of_the_activity_is_a_result_that_the_model_reads(stage: Stage, shop: Shop) -> None:
    session = selling(stage, shop, calls("charge", order="A-7"))
    async with shop.worker():
        done = await session.reply("Charge A-7")
    assert results(done) == [(ERROR, "charge failed: the card of A-7 is closed")]


@pytest.mark.parametrize(("tool", "again"), [("look_up", SUCCESS), ("ship", SUCCESS), ("issue_refund", UNKNOWN)])
async def test_a_worker_is_killed_in_the_midst_of_a_call(
    tool: str, again: ToolResultState, stage: Stage, shop: Shop
) -> None:
    """What may run twice runs on another worker. Of a `once` call nobody knows whether it ran; it never runs again."""
    line = REFUND if tool == "issue_refund" else calls(tool, order="A-7")
    session = selling(stage, shop, line)
    async with shop.process() as first:
        reply = await session.submit("Go on")
        await shop.has_started()
        first.kill()
    shop.payments.let_end()
    async with shop.process():
        done = await session.wait(reply)
        started = len(shop.payments.started())
    ((state, text),) = results(done)
    unknown_outcomes = (await session.status()).unknown_outcomes
    assert (state, started, unknown_outcomes) == ((again, 1, 1) if again is UNKNOWN else (again, 2, 0)), text


async def test_a_worker_that_stops_in_order_leaves_a_once_call_unknown_and_no_other(stage: Stage, shop: Shop) -> None:
    session = selling(stage, shop, REFUND)
    async with shop.worker():
        reply = await session.submit("Refund A-7")
        await shop.has_started()
    shop.payments.let_end()
    async with shop.worker():
        done = await session.wait(reply)
    assert [state for state, _ in results(done)] == [UNKNOWN], results(done)
    assert len(shop.payments.started()) == 1


@pytest.mark.proves("X23")
async def test_a_once_call_that_meets_a_worker_without_the_activity_is_not_spent(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    session = selling(stage, shop, REFUND)
    async with shop.worker("ship"):
        reply = await session.submit("Refund A-7")

        async def asked_again() -> bool:
            return (await stage.scheduled(session)).count("issue_refund") > 1

        await until(asked_again)
    async with shop.worker():
        done = await session.wait(reply)
    assert results(done) == [(SUCCESS, REFUNDED)]
    assert len(shop.payments.started()) == 1


async def test_a_worker_of_longhaul_on_the_users_queue_spends_no_call(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    shared = replace(shop, queue=stage.name)
    session = selling(stage, shared, REFUND)
    reply = await session.submit("Refund A-7")

    async def asked_again() -> bool:
        return (await stage.scheduled(session)).count("issue_refund") > 1

    await until(asked_again)
    assert shop.payments.started() == []
    await session.interrupt()
    done = await session.wait(reply)
    assert "did not run" in results(done)[0][1]


async def test_an_interrupted_call_that_no_worker_had_taken_did_not_run(stage: Stage, shop: Shop) -> None:
    session = selling(stage, shop, REFUND)
    reply = await session.submit("Refund A-7")

    async def asked() -> bool:
        return "issue_refund" in await stage.scheduled(session)

    await until(asked)
    await session.interrupt()
    done = await session.wait(reply)
    assert results(done) == [(ToolResultState.INTERRUPTED, "Cancelled before start: this call did not run.")]


async def test_an_interrupted_activity_that_reports_heartbeats_is_cancelled(stage: Stage, shop: Shop) -> None:
    session = selling(stage, shop, REFUND)
    async with shop.worker():
        reply = await session.submit("Refund A-7")
        await shop.has_started()
        await session.interrupt()
        done = await session.wait(reply)
    ((state, text),) = results(done)
    assert state is ToolResultState.INTERRUPTED
    assert "under way when the reply was interrupted" in text


async def test_an_interrupted_activity_that_does_not_hear_of_it_is_not_awaited(
    stage: Stage, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_activities, "STOPPING_SECONDS", 0.5)
    session = selling(stage, shop, calls("pack", order="A-7"))
    async with shop.worker():
        reply = await session.submit("Pack A-7")
        await shop.has_started()
        await session.interrupt()
        done = await session.wait(reply)
        shop.payments.let_end()
    ((state, text),) = results(done)
    assert state is UNKNOWN
    assert "did not end" in text


@pytest.mark.proves("X23")
async def test_two_people_approve_an_activity_and_it_runs_once(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    session = selling(stage, shop, REFUND, permission={"tools": {"issue_refund": {"approvers": 2}}})
    async with shop.worker():
        asked = await session.reply("Refund A-7")
        (call,) = await session.pending()
        await session.confirm(call, allow=True, approver="ana")
        waiting = await session.pending()
        started_after_one = shop.payments.started()
        await session.confirm(waiting[0], allow=True, approver="bo")
        done = await session.wait(asked.id)
    assert (len(waiting), started_after_one) == (1, [])
    assert results(done) == [(SUCCESS, REFUNDED)]
    assert len(shop.payments.started()) == 1


async def test_a_long_result_is_shortened_and_kept_whole(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    session = selling(stage, shop, calls("look_up", order="A" * 5_000), context_config={"tool_result_limit": 50})
    async with shop.worker():
        done = await session.reply("Look it up")
    ((_, text),) = results(done)
    kept = list(stage.workspace.rglob("*tool*")) + [path for path in stage.folder.rglob("*") if path.is_file()]
    assert len(text) < 1_000
    assert "<<<TRUNCATED>>>" in text
    assert any("A" * 5_000 in path.read_text(errors="replace") for path in kept if path.is_file())


async def test_a_session_with_keys_sends_plain_json_to_the_users_workers(locked: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    session = selling(locked, shop, REFUND)
    async with locked.another_worker(), shop.worker():
        done = await session.reply("Refund A-7")
    assert results(done) == [(SUCCESS, REFUNDED)]


@pytest.mark.proves("X23")
async def test_an_agent_file_declares_an_activity_in_any_language(stage: Stage, shop: Shop) -> None:
    shop.payments.let_end()
    path = stage.folder / "clerk.toml"
    path.write_text(
        f"""
        tools = ["activity:issue_refund@{shop.queue}"]
        [temporal_tools.issue_refund]
        description = "Pay money back."
        timeout_seconds = 30
        [temporal_tools.issue_refund.input_schema]
        type = "object"
        required = ["order", "cents"]
        properties = {{ order = {{ type = "string" }}, cents = {{ type = "integer" }} }}
        [permission]
        mode = "bypass"
        """
    )
    declared = load_agent(path)
    session = stage.session(REFUND, {"text": "Done."}, **declared.model_dump(exclude={"name", "model"}))
    async with shop.worker():
        done = await session.reply("Refund A-7")
    assert results(done) == [(SUCCESS, REFUNDED)]


async def test_an_activity_whose_arguments_nobody_knows_is_refused_with_the_remedy(stage: Stage, shop: Shop) -> None:
    session = stage.session(REFUND, tools=[f"activity:issue_refund@{shop.queue}"])
    await session.submit("Refund A-7")

    async def lacks() -> bool:
        return (await session.status()).lacking != ""

    await until(lacks)
    lacking = (await session.status()).lacking
    assert "nobody says what arguments" in lacking
    assert "[temporal_tools.issue_refund]" in lacking
