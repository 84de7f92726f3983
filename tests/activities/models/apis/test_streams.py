"""Streams that are left before their end, with each API."""

import asyncio

import pytest

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import IncompleteStreamError
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import BEGINNINGS, Answer, Wire
from tests.limits import SURE_SECONDS


@pytest.fixture(params=list(BEGINNINGS))
def model(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


async def test_cancelling_closes_the_connection(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(BEGINNINGS[model], whole=False, then_wait=True))
    running = asyncio.create_task(by_wire.call(model, "Hi"))
    await asyncio.wait_for(by_wire.began.wait(), timeout=SURE_SECONDS)

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert by_wire.heard("text") == "never ends"
    await asyncio.wait_for(wire.hung_up.wait(), timeout=SURE_SECONDS)


async def test_a_call_ends_after_its_time(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(BEGINNINGS[model], whole=False, then_wait=True))

    with pytest.raises(Exception, match=r"^$|timed out") as caught:
        await by_wire.call(model, "Hi", call_timeout_seconds=0.5)

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "connection")
    await asyncio.wait_for(wire.hung_up.wait(), timeout=SURE_SECONDS)


async def test_a_stream_that_stops_early_is_no_reply(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(BEGINNINGS[model]))

    with pytest.raises(IncompleteStreamError, match="ended the stream before the reply was complete"):
        await by_wire.call(model, "Hi")


async def test_a_broken_connection_is_worth_a_retry(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(BEGINNINGS[model], whole=False))

    with pytest.raises(Exception, match=r"(?i)connection error|peer closed") as caught:
        await by_wire.call(model, "Hi")

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "connection")
    assert len(wire.bodies) == 1
