"""What a model call has taken that was lost with its worker is named, as estimated, beside what was reported."""

import pytest

from longhaul.starter import render_session
from longhaul.starter.console.about import amounts
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.letters import until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

USAGE = {"input_tokens": 700, "output_tokens": 300}


async def heard_bytes(stage: Stage, workflow_id: str) -> int:
    """As the newest heartbeat of the session's model call tells."""
    about = (await stage.client.get_workflow_handle(workflow_id).describe()).raw_description
    for one in about.pending_activities:
        if len(one.heartbeat_details.payloads) == 3:
            return int(
                stage.client.data_converter.payload_converter.from_payloads([*one.heartbeat_details.payloads])[2]
            )
    return 0


async def test_an_answer_that_its_worker_took_along_is_named_in_the_use(unserved: Stage) -> None:
    stage = unserved
    line = {"text": "A long story of whales. " * 4, "chunk_chars": 4, "delay_ms": 150, "usage": USAGE}
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
