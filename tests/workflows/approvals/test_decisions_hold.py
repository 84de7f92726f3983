"""What people decide is what happens: once, as decided, also when others decide at the same moment, and much later."""

import asyncio
import hashlib
import json
import random
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.client import Longhaul
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.connection.connect import connect, let_go
from longhaul.workflows.contract import PendingCall
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, push_over, results, until
from tests.workflows.paying import paid
from tests.workflows.roomy import Roomy, failure_of_replay

pytestmark = pytest.mark.server

TOOLS = "tests.workflows.paying"
AT_ONCE = 10


def paying(stage: Stage, to: str, *more: dict[str, Any], **spec: Any) -> tuple[Session, Path]:
    """A session whose model pays once, and the ledger."""
    ledger = stage.folder / f"ledger-{to}"
    return stage.session(
        calls("pay", to=to, ledger=str(ledger)), *more, {"text": "Done."}, tools=["pay"], **spec
    ), ledger


@dataclass
class Race:
    """Two clients decide on one call at once: each way of doing it, in an order of its own. Every third call expires at
    that very moment, every second one is interrupted."""

    stage: Stage
    twin: Longhaul
    number: int
    answers: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def expires(self) -> bool:
        return self.number % 3 == 0

    @property
    def is_interrupted(self) -> bool:
        return self.number % 2 == 1

    async def run(self) -> None:
        deadline = {"permission": {"deadline": {"expire_after": 6}}} if self.expires else {}
        session, ledger = paying(self.stage, f"ana-{self.number}", **deadline)
        waiting = await session.reply("Pay Ana")
        (call,) = await session.pending()
        await self.decide(session, call)

        async def finished() -> bool:
            return (await session.result(waiting.id)).status == "finished"

        await until(finished)
        assert len(results(await session.wait(waiting.id))) == 1
        made = [(one.approver, one.decision, one.digest) for one in (await session.status()).decisions]
        self.check(made, call, paid(ledger))

    async def decide(self, session: Session, call: PendingCall) -> None:
        chance = random.Random(self.number)  # noqa: S311  an order, not a secret
        other = self.twin.session(session.id, agent=session.spec)
        elsewhere = {**json.loads(call.input), "to": f"eve-{self.number}"}
        operations: list[tuple[str, Coroutine[Any, Any, Any]]] = [
            ("ana", session.confirm(call, allow=True, approver="ana")),
            ("again", other.confirm(call, allow=True, approver="again")),
            ("ben", other.confirm(call, allow=False, approver="ben")),
            ("eve", session.confirm(call, allow=True, approver="eve", input=elsewhere)),
            *([("stop", other.interrupt())] if self.is_interrupted else []),
        ]
        chance.shuffle(operations)
        if self.expires:
            left = datetime.fromisoformat(call.expires_at) - datetime.now(UTC)
            await asyncio.sleep(max(left.total_seconds() - chance.uniform(0.0, 0.05), 0))
        answers = await asyncio.gather(*(operation for _, operation in operations), return_exceptions=True)
        self.answers = {who: answer for (who, _), answer in zip(operations, answers, strict=True) if who != "stop"}

    def check(self, made: list[tuple[str, str, str]], call: PendingCall, ran: list[str]) -> None:
        winners = [who for who, answer in self.answers.items() if not isinstance(answer, BaseException)]
        losers = [answer for answer in self.answers.values() if isinstance(answer, BaseException)]
        whom = {"ana": f"ana-{self.number}", "again": f"ana-{self.number}", "eve": f"eve-{self.number}"}
        allowed = [whom[who] for who in winners if who in whom]
        assert all(isinstance(loser, Refused) and str(loser) for loser in losers), self.answers
        assert len(winners) <= 1, self.answers
        assert made == [(who, "deny" if who == "ben" else "allow", call.digest) for who in winners]
        assert ran in ([], allowed), "nothing without an approval, and nothing twice"
        if not self.is_interrupted:
            assert ran == allowed, "nobody interrupted what was approved"
            assert winners or self.expires


@pytest.mark.parametrize("races", [AT_ONCE, pytest.param(100, marks=pytest.mark.chaos)])
async def test_of_decisions_at_the_same_moment_one_wins_and_the_ledger_agrees(unserved: Stage, races: int) -> None:
    stage = unserved
    stage.settings = stage.settings.model_copy(update={"tools": TOOLS})
    second = await connect(stage.address, settings=stage.settings)
    async with stage.another_worker():
        for first in range(0, races, AT_ONCE):
            numbers = range(first, first + AT_ONCE)
            await asyncio.gather(*(Race(stage, Longhaul(second, stage.settings), number).run() for number in numbers))
    await let_go(second)


def settings_of(stage: Stage) -> WorkerSettings:
    return WorkerSettings(address=stage.address, task_queue=stage.name, directory=stage.settings.data_dir, tools=TOOLS)


@pytest.mark.proves("X3")
async def test_a_decision_long_after_runs_exactly_what_was_approved_once(unserved: Stage) -> None:
    """The worker is another process by then, the history another one, and the arguments lie in the blobs."""
    unserved.settings = unserved.settings.model_copy(update={"tools": TOOLS})
    stage = await Roomy.over(unserved)
    note, ledger = "for the lamp " * 30_000, stage.folder / "ledger"
    line = calls("pay", to="ana", ledger=str(ledger), note=note)
    session = await stage.opened(line, {"text": "Paid."}, tools=["pay"])
    other, of_other = paying(stage, "cy")
    async with worker(settings_of(stage)) as first:
        waiting = await session.reply("Pay Ana")
        await other.reply("Pay Cy")
        (call,), (of_cy,) = await session.pending(), await other.pending()
        assert await stage.stored(session) != []
        await push_over(stage, session)
        await first.kill()
    async with worker(settings_of(stage)):
        (after,) = await session.pending()
        assert after == call
        with pytest.raises(Refused):
            await session.confirm(call.model_copy(update={"digest": of_cy.digest}), allow=True, approver="eve")
        assert paid(ledger) == []

        await session.confirm(call, allow=True, approver="ana", reason="three days later")
        done = await session.wait(waiting.id)

        for asked, replayed in ((session, call), (other, of_cy.model_copy(update={"digest": call.digest}))):
            with pytest.raises(Refused, match="call_0_0"):
                await asked.confirm(replayed, allow=True, approver="ana")
        (made,) = (await session.status()).decisions
    digest = hashlib.sha256(note.encode()).hexdigest()[:12]
    assert (ledger.read_text(), results(done)) == (f"ana {digest}\n", [(ToolResultState.SUCCESS, "paid ana")])
    assert (made.approver, made.reason, made.digest) == ("ana", "three days later", call.digest)
    assert paid(of_other) == []
    assert await failure_of_replay(stage, session) is None


@pytest.mark.chaos
async def test_a_tool_that_was_replaced_since_the_question_does_not_run_and_that_is_said(unserved: Stage) -> None:
    """Workers are asked for a minute: one that has the tool as it was may come."""
    stage = unserved
    unserved.settings = unserved.settings.model_copy(update={"tools": TOOLS})
    session, ledger = paying(stage, "ana")
    async with worker(settings_of(stage)) as first:
        waiting = await session.reply("Pay Ana")
        (call,) = await session.pending()
        await first.kill()
    async with worker(replace(settings_of(stage), tools="tests.workflows.paying_again")):
        await session.confirm(call, allow=True, approver="ana")
        done = await session.wait(waiting.id)

    ((state, text),) = results(done)
    assert state is ToolResultState.ERROR
    assert "the tool 'pay' is another one on the workers now" in text
    assert paid(ledger) == []


async def test_two_different_people_have_to_say_yes_where_the_agent_wants_two(unserved: Stage) -> None:
    stage = unserved
    stage.settings = stage.settings.model_copy(update={"tools": TOOLS})
    async with stage.another_worker():
        session, ledger = paying(stage, "dot", permission={"tools": {"pay": {"approvers": 2}}})
        waiting = await session.reply("Pay Dot")
        (call,) = await session.pending()
        assert await session.confirm(call, allow=True, approver="ana") == "1 of 2"
        with pytest.raises(Refused):
            await session.confirm(call, allow=True, approver="ana")
        assert paid(ledger) == []
        await session.confirm(call, allow=True, approver="ben")
        await session.wait(waiting.id)

        assert paid(ledger) == ["dot"]
        assert [one.approver for one in (await session.status()).decisions] == ["ana", "ben"]


async def test_a_batch_takes_answers_in_parts_and_a_rejection_ends_it_where_the_agent_says_so(unserved: Stage) -> None:
    stage = unserved
    stage.settings = stage.settings.model_copy(update={"tools": TOOLS})
    ledger = stage.folder / "accounts"
    batch = [{"name": "pay", "input": {"to": name, "ledger": str(ledger)}} for name in ("x", "y", "z")]
    async with stage.another_worker():
        session = stage.session(
            {"tool_calls": batch}, {"text": "No."}, tools=["pay"], react_config={"stop_on_reject": True}
        )
        waiting = await session.reply("Pay all")
        await session.confirm("call_0_1", allow=True, approver="ana")

        async def one_is_paid() -> bool:
            return paid(ledger) == ["y"]

        await until(one_is_paid)
        assert {one.call_id for one in await session.pending()} == {"call_0_0", "call_0_2"}
        await session.confirm("call_0_0", allow=False, approver="ana", reason="too much")
        done = await session.wait(waiting.id)

    states = {result.id: result.state for result in done.get_tool_results()}
    assert done.finished_reason == "rejected"
    assert states == {
        "call_0_0": ToolResultState.DENIED,
        "call_0_1": ToolResultState.SUCCESS,
        "call_0_2": ToolResultState.INTERRUPTED,
    }
    assert paid(ledger) == ["y"]


async def test_a_file_that_changed_under_an_approved_edit_is_left_alone(stage: Stage) -> None:
    file = stage.workspace / "plan"
    file.write_text("one\n")
    edit = calls("Edit", file_path="plan", old_string="one", new_string="two")
    session = stage.session(edit, {"text": "Done."}, tools=["Edit"])
    waiting = await session.reply("Change it")
    (call,) = await session.pending()
    file.write_text("one, and more\n")

    await session.confirm(call, allow=True, approver="ana")

    async def asked_again() -> bool:
        return [one.digest for one in await session.pending()] not in ([], [call.digest])

    await until(asked_again)
    assert file.read_text() == "one, and more\n"
    (again,) = await session.pending()
    assert "changed" in again.reason
    with pytest.raises(Refused, match="the file has changed"):
        await session.confirm(call, allow=True, approver="ana")
    await session.confirm(again, allow=True, approver="ana")
    await session.wait(waiting.id)
    assert file.read_text() == "two, and more\n"
