"""`temporal workflow reset` takes nothing back: what a session did behind the point is known, or told as unknown, and
no call that may be started once is started again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import Status
from tests.workflows.children.trees import agent, lead, outcomes
from tests.workflows.conftest import Stage, TypeTemporal
from tests.workflows.operations import calls, push_over, results, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"permission": {"mode": "bypass"}, "tools": ("dawdle", "fetch")}
ASKED: dict[str, Any] = {"tools": ("dawdle", "fetch")}
LAST = ("--type", "LastWorkflowTask")
SUCCESS, UNKNOWN = ToolResultState.SUCCESS, ToolResultState.UNKNOWN


def started(ledger: Path) -> int:
    """How often the tool has started."""
    return ledger.read_text().count("started") if ledger.exists() else 0


def let_end(ledger: Path) -> None:
    ledger.with_suffix(".enough").touch()


async def has_started(ledger: Path) -> None:
    async def there() -> bool:
        return started(ledger) > 0

    await until(there)


async def reset(type_temporal: TypeTemporal, session: Session, *where: str) -> None:
    typed = await type_temporal("workflow", "reset", "-w", session.workflow_id, *where, "--reason", "a test")
    assert typed.status == 0, typed.said


async def before(stage: Stage, session: Session, activity: str) -> tuple[str, str]:
    """The task that has asked for that activity, as the command line names it: it is made again."""
    events = (await stage.handle(session).fetch_history()).events
    asked = [event.activity_task_scheduled_event_attributes for event in events]
    return "--event-id", str(
        next(a.workflow_task_completed_event_id for a in asked if a.activity_type.name == activity)
    )


async def looked_back(session: Session, incarnation: int = 2) -> Status:
    """Once it knows what it was."""

    async def knows() -> bool:
        return (await session.status()).incarnation >= incarnation

    await until(knows)
    return await session.status()


async def all_results(session: Session) -> list[ToolResultState]:
    return [state async for message in session.transcript() for state, _ in results(message)]


@pytest.mark.proves("S16")
async def test_a_call_that_had_ended_behind_the_point_is_known_and_not_started_again(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    let_end(ledger)
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Done."}, {"text": "Still here."}, **FREE)
    await session.reply("Go", request_id="r-go")

    await reset(type_temporal, session, *await before(stage, session, "dawdle"))
    status = await looked_back(session)
    again = await session.submit("Go", request_id="r-go")
    after = await session.reply("Are you there?")

    assert started(ledger) == 1
    assert await all_results(session) == [SUCCESS]
    assert status.note.startswith("It was reset from outside, which takes nothing back")
    assert (await session.wait(again)).get_text_content() == "Done."
    assert after.get_text_content() == "Still here."
    assert await failure_of_replay(stage, session) is None


@pytest.mark.proves("S16")
async def test_a_running_call_is_told_as_unknown_whatever_its_worker_says_of_it_later(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Still here."}, **FREE)
    reply = await session.submit("Go")
    await has_started(ledger)

    await reset(type_temporal, session, *LAST)
    await looked_back(session)
    let_end(ledger)
    cut_off = await session.wait(reply)
    after = await session.reply("Are you there?")

    assert started(ledger) == 1
    assert [state for state, _ in results(cut_off)] == [UNKNOWN]
    assert (await session.status()).unknown_outcomes == 1
    assert after.get_text_content() == "Still here."


@pytest.mark.proves("S16")
async def test_a_call_that_the_server_gives_out_again_is_not_started_again(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    """Its event stands before the point, and its end behind it: the server hands it to a worker at once."""
    ledger = tmp_path / "ledger"
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Still here."}, **FREE)
    await session.submit("Go")
    await has_started(ledger)
    await session.observe("It rains.")

    await reset(type_temporal, session, *LAST)
    await looked_back(session)
    await session.reply("Are you there?")
    let_end(ledger)

    assert started(ledger) == 1
    assert await all_results(session) == [UNKNOWN]


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_call_that_was_approved_behind_the_point_is_not_started_by_the_approval_that_the_server_sends_again(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path, *, parallel: bool
) -> None:
    ledger, other = tmp_path / "ledger", tmp_path / "other"
    let_end(ledger)
    let_end(other)
    line = calls("dawdle", path=str(ledger))
    if parallel:
        line["tool_calls"].append({"name": "dawdle", "input": {"path": str(other)}})
    session = stage.session(line, {"text": "Done."}, {"text": "Still here."}, **ASKED)
    reply = await session.submit("Go")
    await session.wait(reply)
    point = await last_task(stage, session)
    for call in await session.pending():
        await session.confirm(call, allow=True, approver="ana")
    await session.wait(reply)

    await reset(type_temporal, session, *point)
    await looked_back(session)
    after = await session.reply("Are you there?")

    assert (started(ledger), started(other)) == (1, int(parallel))
    assert await all_results(session) == [SUCCESS] * (1 + parallel)
    assert after.get_text_content() == "Still here."


async def last_task(stage: Stage, session: Session) -> tuple[str, str]:
    """The newest one that has ended: what comes next stands behind it."""
    events = (await stage.handle(session).fetch_history()).events
    ended = [event.event_id for event in events if event.HasField("workflow_task_completed_event_attributes")]
    return "--event-id", str(ended[-1])


async def test_a_session_that_waits_for_a_person_says_that_its_call_did_not_run(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Still here."}, **ASKED)
    await session.wait(await session.submit("Go"))

    await reset(type_temporal, session, *LAST)
    await looked_back(session)
    after = await session.reply("Are you there?")

    assert started(ledger) == 0
    assert await all_results(session) == [ToolResultState.INTERRUPTED]
    assert (after.get_text_content(), await session.pending()) == ("Still here.", [])


async def test_one_that_sleeps_says_that_its_sleep_was_cut_short(stage: Stage, type_temporal: TypeTemporal) -> None:
    session = stage.session(calls("sleep", **{"for": "1h"}), {"text": "Still here."}, tools=("sleep",))
    await session.submit("Rest")

    async def asleep() -> bool:
        return [call.waits_for for call in await session.pending()] == ["event"]

    await until(asleep)
    await reset(type_temporal, session, *LAST)
    await looked_back(session)
    after = await session.reply("Are you there?")

    assert await all_results(session) == [ToolResultState.INTERRUPTED]
    assert after.get_text_content() == "Still here."


@pytest.mark.parametrize("at_work", [False, True])
async def test_a_sub_agent_is_started_once(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path, *, at_work: bool
) -> None:
    ledger = tmp_path / "ledger"
    if not at_work:
        let_end(ledger)
    scout = agent(stage, calls("dawdle", path=str(ledger)), {"text": "Read."}, tools=["dawdle"])
    session = lead(stage, {"scout": scout}, permission={"mode": "bypass"})
    reply = await session.submit("Have page 7 read")
    await has_started(ledger)
    if not at_work:
        await session.wait(reply)

    await reset(type_temporal, session, *await before_children(stage, session))
    await looked_back(session)
    let_end(ledger)

    async def has_ended() -> bool:
        return not any(child.outcome == "" for child in (await session.status()).children)

    await until(has_ended)
    how = "interrupted" if at_work else "success"
    assert await outcomes(session) == [("t1", "scout", how)]
    assert started(ledger) == 1
    assert await all_results(session) == [ToolResultState.INTERRUPTED if at_work else SUCCESS]


async def before_children(stage: Stage, session: Session) -> tuple[str, str]:
    events = (await stage.handle(session).fetch_history()).events
    asked = [event.start_child_workflow_execution_initiated_event_attributes for event in events]
    return "--event-id", str(next(a.workflow_task_completed_event_id for a in asked if a.workflow_id))


async def test_a_session_that_is_reset_twice_has_started_its_call_once(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    let_end(ledger)
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Done."}, {"text": "Still here."}, **FREE)
    await session.reply("Go")

    await reset(type_temporal, session, *await before(stage, session, "dawdle"))
    await looked_back(session, 2)
    await reset(type_temporal, session, *LAST)
    await looked_back(session, 3)
    await session.reply("Are you there?")

    assert started(ledger) == 1
    assert await all_results(session) == [SUCCESS]


async def test_resets_that_no_worker_saw_lose_nothing(
    unserved: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    stage, ledger = unserved, tmp_path / "ledger"
    let_end(ledger)
    session = stage.session(calls("dawdle", path=str(ledger)), {"text": "Done."}, {"text": "Still here."}, **FREE)
    async with stage.another_worker():
        await session.reply("Go")
        point = await before(stage, session, "dawdle")
    await reset(type_temporal, session, *point)
    await reset(type_temporal, session, *point)
    await stage.handle(session).terminate("by somebody who thought better of it")

    async with stage.another_worker():
        after = await session.reply("Are you there?")
        states = await all_results(session)

    assert (started(ledger), states) == (1, [SUCCESS])
    assert after.get_text_content() == "Still here."


async def test_a_session_that_had_continued_as_new_is_reset_to_the_begin_of_its_run(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    let_end(ledger)
    lines = ({"text": "Well."}, calls("dawdle", path=str(ledger)), {"text": "Done."}, {"text": "Still here."})
    session = stage.session(*lines, **FREE)
    await session.reply("How do you do?")
    await push_over(stage, session)
    await session.reply("Go")

    await reset(type_temporal, session, "--type", "FirstWorkflowTask")
    await looked_back(session)
    after = await session.reply("Are you there?")

    assert started(ledger) == 1
    assert await all_results(session) == [SUCCESS]
    assert after.get_text_content() == "Still here."


async def test_a_session_that_had_closed_goes_on_from_its_end(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    let_end(ledger)
    lines = (calls("dawdle", path=str(ledger)), {"text": "Done."}, {"text": "Still here."})
    session = stage.session(*lines, idle_close_seconds=1, **FREE)
    await session.reply("Go")

    async def closed() -> bool:
        return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.COMPLETED

    await until(closed)
    await reset(type_temporal, session, *await before(stage, session, "dawdle"))
    after = await session.reply("Are you there?")

    assert started(ledger) == 1
    assert await all_results(session) == [SUCCESS]
    assert after.get_text_content() == "Still here."


async def test_what_is_asked_while_it_is_reset_is_answered(
    stage: Stage, type_temporal: TypeTemporal, tmp_path: Path
) -> None:
    ledger = tmp_path / "ledger"
    session = stage.session(calls("dawdle", path=str(ledger)), *[{"text": f"{n}."} for n in range(9)], **FREE)
    await session.submit("Go")
    await has_started(ledger)

    async def ask(number: int) -> str:
        await asyncio.sleep(number / 20)
        return (await session.reply(f"Question {number}")).get_text_content()

    asked = [asyncio.create_task(ask(number)) for number in range(6)]
    await reset(type_temporal, session, *LAST)
    said = await asyncio.gather(*asked)
    let_end(ledger)

    assert started(ledger) == 1
    assert len(said) == 6
    texts = [message.get_text_content() async for message in session.transcript() if message.role == "user"]
    assert sorted(texts) == ["Go", *(f"Question {number}" for number in range(6))]
