"""Sessions whose key is limited: those that were not refused themselves wait too, and let go at once."""

import asyncio

import pytest

from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.models.wire import Answer, Wire
from tests.workflows.conftest import Stage
from tests.workflows.operations import until
from tests.workflows.workers.models.test_models import GPT, SAYS, refusing, speaking
from tests.workflows.workers.models.test_outages import told_of

pytestmark = pytest.mark.server


async def refused(stage: Stage, wire: Wire, seconds: str) -> tuple[Session, str]:
    """A session, and its reply, of which one call was turned away."""
    wire.answers = [refusing(429, **{"retry-after": seconds}), *([Answer(SAYS[GPT])] * 3)]
    session = speaking(stage, GPT, wire.url)
    reply = await session.submit("How is the wind?")

    async def is_refused() -> bool:
        return len(wire.bodies) == 1

    await until(is_refused)
    return session, reply


async def test_a_session_that_comes_later_waits_with_the_one_that_was_refused(stage: Stage, wire: Wire) -> None:
    first, reply = await refused(stage, wire, "2")

    second = await speaking(stage, GPT, wire.url).reply("How is the tide?")
    done = await first.wait(reply)

    assert [answer.get_text_content() for answer in (done, second)] == ["Fair wind.", "Fair wind."]
    refusal, *later = wire.moments
    assert len(later) == 2
    assert min(later) - refusal >= 1.9


@pytest.mark.alone
async def test_an_interrupt_ends_the_waiting_for_others_at_once(stage: Stage, wire: Wire) -> None:
    await refused(stage, wire, "9")
    second = speaking(stage, GPT, wire.url)
    reply = await second.submit("How is the tide?")

    async def is_interrupted() -> bool:
        try:
            await second.interrupt()
        except Refused:  # its reply has not started
            return False
        return True

    async with asyncio.timeout(7):
        await until(is_interrupted)
        done = await second.wait(reply)

    assert (done.finished_reason, len(wire.bodies)) == ("interrupted", 1)


async def test_a_session_that_was_never_asked_for_says_what_it_waits_for(stage: Stage, wire: Wire) -> None:
    await refused(stage, wire, "300")
    second = speaking(stage, GPT, wire.url)
    reply = await second.submit("How is the tide?")

    await told_of(second)
    status = await second.status()
    await second.interrupt()
    done = await second.wait(reply)

    assert status.outage is not None
    assert status.outage.attempt == 1
    assert "other calls of the worker come first" in status.outage.why
    assert (done.finished_reason, len(wire.bodies)) == ("interrupted", 1)
