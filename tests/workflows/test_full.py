"""A session that is full says so; it is never ended by the server for being too large."""

import json

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowUpdateFailedError
from temporalio.service import RPCError

from agent.keeping import CARRY_LIMIT
from starter.session import Session
from starter.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.letters import ASKS, calls, push_over

pytestmark = pytest.mark.server

FULL = "The session is full"


async def fill(session: Session, text: str) -> int:
    """Observe that text until it is refused; how often it was taken."""
    for number in range(100):
        try:
            await session.observe(text)
        except Refused as refusal:
            if FULL not in str(refusal):
                raise
            return number
    raise AssertionError("a hundred times, and never full")


async def runs_on(stage: Stage, session: Session) -> bool:
    """Whether it goes on in another history, with all that it holds."""
    messages = (await session.status()).messages
    await push_over(stage, session)
    assert (await session.status()).messages == messages
    return (await stage.handle(session).describe()).status is WorkflowExecutionStatus.RUNNING


@pytest.mark.parametrize("letter", ["x", "\u0001", "🦊"], ids=["plain", "control", "emoji"])
async def test_a_session_takes_messages_until_it_is_full_and_rolls_over_full(stage: Stage, letter: str) -> None:
    size = len(json.dumps(letter, ensure_ascii=False).encode()) - 2
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")

    taken = await fill(session, letter * (300_000 // size))

    assert taken == 5
    assert 0.8 < (await session.status()).filled <= 1
    assert await runs_on(stage, session)
    await session.confirm("call_0_0", allow=False)
    assert (await session.wait(waiting.id)).finished_reason is not None


async def test_a_full_session_refuses_a_request_and_answers_everything_else(stage: Stage) -> None:
    session = stage.session({"text": "One."})
    first = await session.reply("Hello", request_id="r-amber")
    await fill(session, "x" * 300_000)
    await fill(session, "x" * 10_000)

    with pytest.raises(Refused, match=FULL):
        await session.submit("y" * 20_000)

    assert await session.reply("Hello", request_id="r-amber") == first
    assert (await session.status()).status == "idle"
    assert len([message async for message in session.transcript()]) > 6


async def test_results_that_fill_a_session_end_its_reply(stage: Stage) -> None:
    """Each result is as large as results get, and heavier as JSON than as text."""
    pages = [calls("fetch", page=number, chars=95_000) for number in range(30)]
    session = stage.session(*pages, tools=["fetch"])

    done = await session.reply("Read on")

    assert done.finished_reason == "error"
    assert done.error is not None
    assert FULL in done.error.message
    assert (await session.status()).status == "idle"
    assert (await stage.handle(session).describe()).status is WorkflowExecutionStatus.RUNNING


async def test_an_external_result_weighs_what_it_weighs_as_json_in_json(stage: Stage) -> None:
    quotes = [""] * (CARRY_LIMIT // 7)
    session = stage.session(calls("courier", parcel="quotes"), {"text": "Enough."})
    waiting = await session.reply("Send quotes")

    await session.external_result("call_0_0", quotes)
    done = await session.wait(waiting.id)

    assert done.get_text_content() == "Enough."
    assert 6 / 7 < (await session.status()).filled < 0.99
    assert await runs_on(stage, session)


@pytest.mark.parametrize("kilobytes", [1_950, 3_000, 3_900])
async def test_an_update_too_large_to_be_accepted_does_not_end_the_session(stage: Stage, kilobytes: int) -> None:
    """The server terminates a workflow that accepts an update above its limit: it must be turned away before."""
    session = stage.session({"text": "First."}, {"text": "Second."})
    await session.reply("Hello")

    with pytest.raises((WorkflowUpdateFailedError, RPCError)):
        await stage.handle(session).execute_update("observe", {"messages": "x" * kilobytes * 1_000})

    assert (await session.reply("Are you there?")).get_text_content() == "Second."
