"""A summary whose model is away is waited for as an answer is, and said; where something else would do, it is not."""

import asyncio
from typing import Any

import pytest

from longhaul.activities.attempt.model_attempts import FIRST_TOLD
from longhaul.agent.values.spec.agent_spec import ContextConfig
from longhaul.starter.client.session import Session
from longhaul.starter.client.session_requests import CompressionFailed
from tests.limits import SURE_SECONDS
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls
from tests.workflows.workers.models.test_outages import told_of

pytestmark = pytest.mark.server

FIELDS = ("task_overview", "current_state", "important_discoveries", "next_steps", "context_to_preserve")
WRITTEN = {"tool_calls": [{"name": "write_summary", "input": dict.fromkeys(FIELDS, "short")}]}
PAGES = 16
SMALL = {"context_length": 6_000, "max_output_tokens": 500, "max_retries": 1}


def away(times: int, last_seconds: float) -> dict[str, Any]:
    """A summary that is given when its provider was away so often."""
    quick = {"kind": "overloaded", "retry_after": 0.02}
    return {"for": "summary", "faults": [quick] * (times - 1) + [{**quick, "retry_after": last_seconds}], **WRITTEN}


def reading(stage: Stage, summary: dict[str, Any], **more: Any) -> Session:
    pages = [calls("fetch", page=number, chars=1_500) for number in range(PAGES)]
    return stage.session(*pages, {"text": "All read."}, summary, tools=["fetch"], model_config=SMALL, **more)


async def test_a_summary_waits_for_a_provider_that_is_away_and_says_so(stage: Stage) -> None:
    session = reading(stage, away(FIRST_TOLD, 4))
    reply = await session.submit("Read every page")
    await told_of(session)

    status = await session.status()
    done = await session.wait(reply)
    after = await session.status()

    assert status.outage is not None
    assert status.outage.attempt == FIRST_TOLD
    assert "overloaded" in status.outage.why
    assert (done.error, done.get_text_content()) == (None, "All read.")
    assert (after.outage, after.compression_error) == (None, "")
    assert after.compressions == after.compression_tries >= 1
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert names.count("provider_unavailable") == 1


async def test_an_interrupt_ends_the_waiting_for_a_summary(stage: Stage) -> None:
    session = reading(stage, away(FIRST_TOLD, 60))
    reply = await session.submit("Read every page")
    await told_of(session)

    async with asyncio.timeout(10):
        await session.interrupt()
        done = await session.wait(reply)

    assert done.finished_reason == "interrupted"
    assert (await session.status()).outage is None


async def test_a_condenser_that_needs_no_model_comes_before_any_waiting(stage: Stage) -> None:
    session = reading(stage, away(50, 1), context_config=ContextConfig(condensers=("summary", "drop_oldest")))

    done = await session.reply("Read every page")

    assert (done.error, done.get_text_content()) == (None, "All read.")
    told = [event for event in (await session.events()).events if event.type == "CUSTOM"]
    assert {event.value["condenser"] for event in told if event.name == "context_compressed"} >= {"drop_oldest"}
    assert "provider_unavailable" not in {event.name for event in told}


async def test_whoever_asks_for_a_compression_hears_soon_that_it_failed(stage: Stage) -> None:
    session = stage.session(
        *(calls("fetch", page=number, chars=2_000) for number in range(6)), {"text": "Read."}, away(50, 1),
        tools=["fetch"], model_config={"context_length": 8_000, "max_retries": 1},
    )  # fmt: skip
    await session.reply("Read six pages")

    async with asyncio.timeout(SURE_SECONDS):
        with pytest.raises(CompressionFailed, match="overloaded"):
            await session.compress_context(ContextConfig(trigger_ratio=0.2, reserve_ratio=0.01))
