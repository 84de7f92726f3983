"""A context made shorter because somebody asks for it: when it happens, when it does not, and what stays readable."""

import asyncio

import pytest

from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.session import Session
from longhaul.starter.client.session_requests import CompressionFailed, CompressionPending
from longhaul.starter.client.wire import Refused, TooBig
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import ASKS, calls

pytestmark = pytest.mark.server

LOW = ContextConfig(trigger_ratio=0.2, reserve_ratio=0.01)
WINDOW = 8_000


def pages(count: int) -> list[Line]:
    return [calls("fetch", page=number, chars=2_000) for number in range(count)]


def reader(stage: Stage, *more: Line, window: int = WINDOW) -> Session:
    """A session that has read six long pages, about a third of its model's window, when it has answered."""
    lines = [*pages(6), {"text": "Read."}, *more]
    return stage.session(*lines, tools=["fetch"], model_config={"context_length": window})


@pytest.mark.proves("A4")
async def test_a_context_above_its_threshold_is_compressed_and_its_originals_stay(stage: Stage) -> None:
    session = reader(stage, {"text": "I remember."})
    await session.reply("Read six pages")
    before, said = await session.status(), [message async for message in session.transcript()]

    done = await session.compress_context(LOW, instructions="Keep the numbers.", by="ana")
    after = await session.status()

    assert done
    assert (before.compressions, after.compressions) == (0, 1)
    assert after.context_tokens < before.context_tokens <= after.context_length == WINDOW
    assert (await session.state()).summary
    assert [message async for message in session.transcript()] == said
    assert (await session.reply("What did you read?")).get_text_content() == "I remember."


@pytest.mark.proves("A4")
async def test_a_context_below_its_threshold_stays_as_it_is(stage: Stage) -> None:
    session = reader(stage)
    await session.reply("Read six pages")
    before = await session.state()

    done = await session.compress_context(ContextConfig(trigger_ratio=0.9))

    assert not done
    assert await session.state() == before
    assert (await session.status()).compression_tries == 0


async def test_a_context_of_which_nothing_can_go_is_not_waited_for(stage: Stage) -> None:
    session = reader(stage)
    await session.reply("Read six pages")
    everywhere = ContextConfig(trigger_ratio=0.02, reserve_ratio=0.01)
    await session.compress_context(everywhere)

    async with asyncio.timeout(SURE_SECONDS):
        again = await session.compress_context(everywhere)

    assert not again
    assert (await session.status()).compression_tries == 1


@pytest.mark.proves("A4")
async def test_a_system_prompt_that_is_too_big_alone_is_a_runtime_error(stage: Stage) -> None:
    session = stage.session(
        {"text": "Hm."}, tools=[], system_prompt="rule " * 1_500, model_config={"context_length": 4_000}
    )
    await session.reply("Hi")

    with pytest.raises(RuntimeError, match="The system prompt and the tools alone take") as failure:
        await session.compress_context(LOW)

    assert isinstance(failure.value, TooBig)


async def test_a_session_that_never_replied_refuses(stage: Stage) -> None:
    session = stage.session(*ASKS)
    await session.observe("It rains.")

    with pytest.raises(Refused, match="nothing to compact"):
        await session.compress_context()


@pytest.mark.proves("S14")
async def test_a_compression_that_fails_says_why_and_changes_nothing(stage: Stage) -> None:
    broken = {"for": "summary", "faults": [{"kind": "auth"}], "text": "never said"}
    session = reader(stage, broken)
    await session.reply("Read six pages")
    before = await session.state()

    with pytest.raises(CompressionFailed, match="did not accept the worker's key"):
        await session.compress_context(LOW)

    status = await session.status()
    assert await session.state() == before
    assert (status.compressions, status.compression_tries) == (0, 1)
    assert status.compression_error


async def test_a_session_that_waits_for_a_person_does_it_when_it_goes_on(stage: Stage) -> None:
    lines = [*pages(6), *ASKS]
    session = stage.session(*lines, tools=["fetch", "send"], model_config={"context_length": WINDOW})
    reply = await session.reply("Read six pages and write to Ana")

    with pytest.raises(CompressionPending, match="answers to its open calls"):
        await session.compress_context(LOW)
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    await session.wait(reply.id)

    assert (await session.status()).compressions == 1


async def test_a_summary_of_a_context_that_is_gone_by_then_changes_nothing(stage: Stage) -> None:
    fields = ("task_overview", "current_state", "important_discoveries", "next_steps", "context_to_preserve")
    slow = {"for": "summary", "delay_ms": 6_000, "chunk_chars": 100_000}
    written = {"tool_calls": [{"name": "write_summary", "input": dict.fromkeys(fields, "of before")}]}
    other = stage.session({"text": "Forty."})
    await other.reply("How many bricks?")
    session = reader(stage, {**slow, **written}, {"text": "Fifty."})
    await session.reply("Read six pages")
    shortening = asyncio.create_task(session.compress_context(LOW))
    await asyncio.sleep(1.5)

    await session.stored.import_state(await other.stored.export(), by="ana")
    await asyncio.gather(shortening, return_exceptions=True)

    state = await session.state()
    assert "of before" not in str(state.summary)
    assert [message.get_text_content() for message in state.context] == ["How many bricks?", "Forty."]
    assert (await session.reply("How many now?")).get_text_content() == "Fifty."
