"""What a model call has taken that was lost with its worker is named, as estimated, beside what was reported."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from longhaul.activities.models.providers import Providers
from longhaul.starter import render_session
from longhaul.starter.client.session import Session
from longhaul.starter.console.about import amounts
from tests.activities.models.background_answers import WORDS, KeepsAnswers, keeping_answers
from tests.activities.models.sample_requests import KEYS
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

USAGE = {"input_tokens": 700, "output_tokens": 300}


async def beat(stage: Stage, workflow_id: str) -> list[str]:
    """What the newest heartbeat of the session's model call tells."""
    about = (await stage.client.get_workflow_handle(workflow_id).describe()).raw_description
    for one in about.pending_activities:
        if one.heartbeat_details.payloads:
            told = stage.client.data_converter.payload_converter.from_payloads([*one.heartbeat_details.payloads])
            return [str(each) for each in told]
    return []


async def heard_bytes(stage: Stage, workflow_id: str) -> int:
    told = await beat(stage, workflow_id)
    return int(told[2]) if len(told) == 3 else 0


async def test_an_answer_that_its_worker_took_along_is_named_in_the_use(unserved: Stage) -> None:
    stage = unserved
    line = {"text": "A long story of whales. " * 30, "chunk_chars": 6, "delay_ms": 150, "usage": USAGE}
    session = stage.session(line, {"text": "The end.", "usage": USAGE})
    first = stage.worker_settings
    async with worker(first) as killed:
        reply = await session.submit("Tell it")

        async def told() -> bool:
            return await heard_bytes(stage, session.workflow_id) > 0

        await until(told)
        heard = await heard_bytes(stage, session.workflow_id)
        await killed.kill()
    async with stage.another_worker():
        done = await session.wait(reply)
        status = await session.status()

        assert done.error is None
        assert (status.model_calls, status.input_tokens, status.output_tokens) == (1, 700, 300)
        lost = status.lost
        assert (lost.calls >= 1, lost.usage.estimated, status.tokens_estimated) == (True, True, False)
        assert 0 < lost.usage.input_tokens < 700 * lost.calls
        assert lost.usage.output_tokens >= heard // 4 > 0
        assert "lost attempt" in render_session.cost(status)
        assert [row.model for row in amounts(status)][-1] == "lost (estimated)"
        await session.reply("And then?")
        assert (await session.status()).lost == lost
        assert await failure_of_replay(stage, session) is None


async def test_attempts_that_the_provider_has_turned_away_are_not_lost(stage: Stage) -> None:
    faults = [{"kind": "overloaded"}, {"kind": "rate_limited", "retry_after": 0}]
    session = stage.session({"text": "Said.", "faults": faults, "usage": USAGE})

    assert (await session.reply("Say it")).get_text_content() == "Said."

    status = await session.status()
    assert status.lost.calls == 0
    assert "lost" not in render_session.cost(status)


@pytest.fixture
async def openai() -> AsyncIterator[KeepsAnswers]:
    async with keeping_answers() as told:
        yield told


def kept_at(stage: Stage, openai: KeepsAnswers) -> Session:
    """A session whose model answers in the background."""
    profile = {"provider": "openai", "model": "gpt-5.1", "background": True}
    stage.providers = Providers({**KEYS, "OPENAI_BASE_URL": openai.url})
    return stage.session(model="kept", models={"kept": profile}, tools=[])


async def test_an_answer_whose_worker_was_killed_is_picked_up_and_paid_for_once(
    unserved: Stage, openai: KeepsAnswers
) -> None:
    session = kept_at(unserved, openai)
    keys = {"OPENAI_API_KEY": KEYS["OPENAI_API_KEY"], "OPENAI_BASE_URL": openai.url}
    async with worker(replace(unserved.worker_settings, further=keys)) as killed:
        reply = await session.submit("Tell it")

        async def told() -> bool:
            return "resp_1" in await beat(unserved, session.workflow_id)

        await until(told)
        await killed.kill()
    openai.goes_on.set()
    async with unserved.another_worker():
        done = await session.wait(reply)
        status = await session.status()

        assert (done.error, done.get_text_content()) == (None, "".join(WORDS))
        assert (len(openai.made), openai.resumed) == (1, ["stream=true"])
        assert (status.model_calls, status.input_tokens, status.lost.calls) == (1, 900, 0)
        assert await failure_of_replay(unserved, session) is None


async def test_an_answer_that_was_interrupted_is_stopped_at_its_provider(unserved: Stage, openai: KeepsAnswers) -> None:
    session = kept_at(unserved, openai)
    async with unserved.another_worker():
        reply = await session.submit("Tell it")
        await openai.half_told.wait()
        await session.interrupt()
        await session.wait(reply)

    assert openai.cancelled == ["resp_1"]
