"""A sub-agent's session that closes with its task: few events, no result lost, and all of it there to be read."""

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import session_prefix
from tests.workflows.children.trees import SUMMED_UP, agent, asked, child_of, lead, outcomes, runs, tasks
from tests.workflows.conftest import Stage, TypeTemporal
from tests.workflows.incarnation.test_incarnations import forget
from tests.workflows.operations import calls, push_over, results, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

SUCCESS = ToolResultState.SUCCESS
BARE_EVENTS = 23
"""Of a workflow that begins, calls a model, a tool and a model, and ends."""


async def kinds(stage: Stage, session: Session) -> list[str]:
    events = (await stage.handle(session).fetch_history()).events
    return [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]


async def how_it_ended(stage: Stage, session: Session) -> WorkflowExecutionStatus | None:
    return (await stage.handle(session).describe()).status


async def test_a_task_of_one_call_costs_few_events_more_than_a_bare_workflow(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, calls("fetch", page=7), {"text": "Read."})})

    done = await session.reply("Have page 7 read")

    assert results(done) == [(SUCCESS, "Read.")]
    child = child_of(stage, session)
    assert len(await kinds(stage, child)) <= 1.25 * BARE_EVENTS
    assert await how_it_ended(stage, child) is WorkflowExecutionStatus.COMPLETED
    assert [await failure_of_replay(stage, one) for one in (session, child)] == [None, None]


async def test_it_is_read_and_spoken_to_as_before(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, {"text": "Seen."}, {"text": "Still here."})})
    await session.reply("Go")
    child = child_of(stage, session)

    said = [message.get_text_content() async for message in child.transcript()]
    again = await child.reply("Are you there?")

    assert said == ["see to t1", "Seen."]
    assert again.get_text_content() == "Still here."
    assert await outcomes(session) == [("t1", "scout", "success")]
    assert await runs(stage, child) == 2


async def test_few_entries_stand_with_its_state_alone_and_outlive_its_history(
    stage: Stage, type_temporal: TypeTemporal
) -> None:
    scout = agent(stage, calls("fetch", page=7), {"text": "Read."}, {"text": "Still here."}, {"text": "Always."})
    session = lead(stage, {"scout": scout})
    await session.reply("Go")
    child = child_of(stage, session)
    prefix = session_prefix("default", child.workflow_id)
    said, told = [message async for message in child.transcript()], (await child.events()).events
    sealed = await open_blobs("", data_dir=stage.settings.data_dir).keys(prefix)
    await forget(child, stage, type_temporal, (await stage.handle(child).describe()).run_id)

    await child.reply("Are you there?")
    await push_over(stage, child)
    await child.reply("And now?")

    heard = [message.get_text_content() for message in said]
    assert sealed == []
    assert [message.get_text_content() async for message in child.transcript()] == [
        *heard,
        "Are you there?",
        "Still here.",
        "And now?",
        "Always.",
    ]
    assert (await child.events()).events[: len(told)] == told
    assert ((await child.status()).incarnation, (await child.status()).quarantine) == (2, "")
    assert await failure_of_replay(stage, child) is None


async def test_one_that_no_store_takes_at_its_end_stays_open_and_loses_nothing(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, calls("send", to="Ana"), {"text": "Sent."}, {"text": "Still here."})})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)
    folder = stage.settings.data_dir / "sessions"
    folder.rename(folder.with_name("away"))
    folder.write_text("no directory")
    await child.confirm(call, allow=True)
    done = await session.wait(reply)
    how, said = await how_it_ended(stage, child), [message async for message in child.transcript()]
    folder.unlink()
    folder.with_name("away").rename(folder)

    again = await child.reply("Are you there?")

    assert results(done) == [(SUCCESS, "Sent.")]
    assert how is WorkflowExecutionStatus.RUNNING
    assert again.get_text_content() == "Still here."
    assert [message async for message in child.transcript()][: len(said)] == said
    assert await failure_of_replay(stage, child) is None


async def test_one_whose_agent_says_when_to_close_stays_open_and_reports_by_operation(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, {"text": "Seen."}, idle_close_seconds=600)})

    done = await session.reply("Go")

    assert results(done) == [(SUCCESS, "Seen.")]
    child = child_of(stage, session)
    assert await how_it_ended(stage, child) is WorkflowExecutionStatus.RUNNING
    assert "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED" in await kinds(stage, child)


async def test_a_lead_that_goes_on_in_a_new_run_is_told_by_operation(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, calls("send", to="Ana"), {"text": "Sent."})})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)
    await push_over(stage, session)

    async def is_asked() -> bool:
        return "WORKFLOW_EXECUTION_SIGNALED" in await kinds(stage, child)

    await until(is_asked)
    await child.confirm(call, allow=True)

    assert results(await session.wait(reply)) == [(SUCCESS, "Sent.")]
    assert await how_it_ended(stage, child) is WorkflowExecutionStatus.RUNNING


async def test_what_was_told_to_a_run_that_is_gone_is_looked_up(stage: Stage) -> None:
    """The lead is ended from outside; its sub-agent ends its task, and closes; then the lead is spoken to again."""
    billed = {"usage": {"input_tokens": 700, "output_tokens": 300}}
    scout = agent(stage, {**calls("send", to="Ana"), **billed}, {"text": "Sent.", **billed})
    session = lead(
        stage, {"scout": scout}, {**tasks("t1 scout"), **billed}, {**SUMMED_UP, **billed}, budget={"max_calls": 10}
    )
    await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)
    await stage.handle(session).terminate("by hand")
    await child.confirm(call, allow=True)

    async def has_closed() -> bool:
        return await how_it_ended(stage, child) is WorkflowExecutionStatus.COMPLETED

    await until(has_closed)
    await session.reply("What came of it?")

    async def has_heard() -> bool:
        return await outcomes(session) == [("t1", "scout", "success")]

    await until(has_heard)
    budget = (await session.status()).budget
    assert budget is not None
    assert (budget.spent["calls"], budget.reserved["calls"]) == (4, 0)
    assert await failure_of_replay(stage, session) is None


async def test_an_interrupt_that_meets_its_end_loses_no_result(stage: Stage) -> None:
    ids = [f"t{number}" for number in range(6)]
    crew = {f"scout{number}": agent(stage, {"text": "Seen.", "delay_ms": 200 * number}) for number in range(6)}
    given = (f"{one} scout{number}" for number, one in enumerate(ids))
    session = lead(stage, crew, tasks(*given), {"text": "Never."})
    reply = await session.submit("Go")

    async def some_has_ended() -> bool:
        return await session.has_started() and any(child.outcome for child in (await session.status()).children)

    await until(some_has_ended)
    await session.interrupt()
    await session.wait(reply)

    async def all_are_known() -> bool:
        return all(how in ("success", "interrupted") for _, _, how in await outcomes(session))

    await until(all_are_known)
    assert len(await outcomes(session)) == len(ids)
    assert await failure_of_replay(stage, session) is None
