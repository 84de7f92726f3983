"""However much a session holds, it is never ended by the server for being too large."""

import json

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.service import RPCError

from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls, push_over

pytestmark = pytest.mark.server


async def runs_on(stage: Stage, session: Session) -> bool:
    """Whether it goes on in another history, with all that it holds."""
    messages = (await session.status()).messages
    await push_over(stage, session)
    assert (await session.status()).messages == messages
    return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.RUNNING


@pytest.mark.parametrize("operation", ["x", "\u0001", "🦊"], ids=["plain", "control", "emoji"])
async def test_a_waiting_session_takes_more_than_a_history_input_holds_and_goes_on(
    stage: Stage, operation: str
) -> None:
    size = len(json.dumps(operation, ensure_ascii=False).encode()) - 2
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")

    for _ in range(10):
        await session.observe(operation * (300_000 // size))

    assert await runs_on(stage, session)
    await session.confirm("call_0_0", allow=False)
    assert (await session.wait(waiting.id)).finished_reason is not None


async def test_large_results_do_not_end_a_session(stage: Stage) -> None:
    """Each result is as large as results get, and all of them are live."""
    pages = [calls("fetch", page=number, chars=95_000) for number in range(30)]
    session = stage.session(
        *pages,
        {"text": "All read."},
        tools=["fetch"],
        context_config={"tool_result_limit": 1_000_000},
        model_config={"context_length": 10_000_000},
    )

    done = await session.reply("Read on")

    assert (done.error, done.get_text_content(), len(done.get_tool_results())) == (None, "All read.", 30)
    assert await runs_on(stage, session)


@pytest.mark.parametrize("kilobytes", [1_950, 3_000, 3_900])
async def test_an_update_too_large_to_be_accepted_does_not_end_the_session(stage: Stage, kilobytes: int) -> None:
    """The server terminates a workflow that accepts an update above its limit: it must be turned away before."""
    session = stage.session({"text": "First."}, {"text": "Second."})
    await session.reply("Hello")

    stranger = (await connect(stage.address)).get_workflow_handle(session.workflow_id)

    with pytest.raises((WorkflowUpdateFailedError, RPCError)):
        await stranger.execute_update("observe", {"messages": "x" * kilobytes * 1_000})

    assert (await session.reply("Are you there?")).get_text_content() == "Second."
