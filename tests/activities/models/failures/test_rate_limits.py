"""Calls with a key that its provider limits: none storms it, and none is held longer than need be."""

import asyncio
import json
import logging
import time
from dataclasses import dataclass, field

import pytest
from temporalio.common import RetryPolicy

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.retry_errors import pause_seconds
from longhaul.activities.models.failures.status_table import HeldBack
from tests.activities.models.conftest import calling
from tests.activities.models.sample_requests import KEYS, Caller
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says
from tests.limits import SURE_SECONDS

CHAT, RESPONSES, CLAUDE = "openai-chat:gpt-4.1", "openai:gpt-4.1", "anthropic:claude-haiku-4-5"
SAYS = {CHAT: chat_says("Fair wind."), RESPONSES: response_says("Fair wind."), CLAUDE: claude_says("Fair wind.")}


def limited(**headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"error": {"type": "rate_limit_error", "message": "Slow down"}}
    return Answer(json.dumps(body).encode(), 429, {"content-type": "application/json", **named})


async def refused(caller: Caller, wire: Wire, **headers: str) -> None:
    """One call has just been turned away."""
    wire.answers.insert(0, limited(**headers))
    with pytest.raises(Exception, match=r"429|Slow down"):
        await caller.call(CHAT, "Hi")


@pytest.mark.proves("F6")
@pytest.mark.parametrize("model", [CHAT, RESPONSES])
async def test_other_calls_of_the_key_wait_as_long_as_one_is_told_to(by_wire: Caller, wire: Wire, model: str) -> None:
    await refused(by_wire, wire, retry_after_ms="700")
    wire.answers.append(Answer(SAYS[model]))

    await by_wire.call(model, "Hi")

    first, second = wire.moments
    assert 0.65 <= second - first < 30


async def test_a_call_with_another_key_waits_for_nobody(by_wire: Caller, wire: Wire) -> None:
    await refused(by_wire, wire, retry_after="300")
    wire.answers.append(Answer(SAYS[CLAUDE]))

    reply = await by_wire.call(CLAUDE, "Hi")

    assert (len(reply.content), len(wire.bodies)) == (1, 2)


async def test_those_that_waited_come_one_after_another(by_wire: Caller, wire: Wire) -> None:
    await refused(by_wire, wire, retry_after_ms="300")
    wire.answers += [Answer(SAYS[CHAT])] * 12

    await asyncio.gather(*(by_wire.call(CHAT, "Hi") for _ in range(12)))

    told, *later = wire.moments
    assert min(later) >= told + 0.3
    assert max(later) >= told + 0.3 + 11 * 0.03, "a herd of them came at once"


async def test_what_waits_can_be_cancelled_at_once_and_is_never_sent(by_wire: Caller, wire: Wire) -> None:
    await refused(by_wire, wire, retry_after="9")
    waiting = asyncio.create_task(by_wire.call(CHAT, "Hi"))
    await asyncio.sleep(0.2)

    waiting.cancel()

    async with asyncio.timeout(6):
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert len(wire.bodies) == 1


async def test_a_call_that_would_wait_long_is_given_back(by_wire: Caller, wire: Wire) -> None:
    await refused(by_wire, wire, retry_after="300")

    with pytest.raises(HeldBack) as caught:
        await by_wire.call(CHAT, "Hi")

    action = judge(caught.value)
    assert (action.kind, action.error_type) == ("retry_after", "rate_limit")
    assert action.delay_seconds is not None
    assert 50 < action.delay_seconds <= 60.2
    assert len(wire.bodies) == 1


@pytest.mark.parametrize(("status", "code"), [(529, "overloaded_error"), (500, ""), (429, "insufficient_quota")])
async def test_only_a_limit_holds_others_back(by_wire: Caller, wire: Wire, status: int, code: str) -> None:
    body = json.dumps({"error": {"code": code, "message": "No"}}).encode()
    wire.answers = [
        Answer(body, status, {"content-type": "application/json", "retry-after": "300"}),
        Answer(SAYS[CHAT]),
    ]
    with pytest.raises(Exception, match="No"):
        await by_wire.call(CHAT, "Hi")

    await by_wire.call(CHAT, "Hi")

    assert len(wire.bodies) == 2


async def test_no_key_is_in_a_log(by_wire: Caller, wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await refused(by_wire, wire, retry_after_ms="20")

    (line,) = [record.getMessage() for record in caplog.records if "limits their rate" in record.getMessage()]
    assert not any(key in line for key in KEYS.values())


@dataclass
class Account:
    """Allows so many calls a second, and two at once."""

    per_second: float
    refusals: int = 0
    answers: int = 0
    _left: float = 2.0
    _at: float = field(default_factory=time.monotonic)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        now = time.monotonic()
        self._left, self._at = min(self._left + (now - self._at) * self.per_second, 2.0), now
        answer = limited(retry_after_ms="100")
        if self._left >= 1:
            self._left -= 1
            self.answers += 1
            answer = Answer(SAYS[CHAT], headers={"content-type": "text/event-stream"})
        else:
            self.refusals += 1
        headers = {**answer.headers, "content-length": str(len(answer.body)), "connection": "close"}
        lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + answer.body)
        await writer.drain()
        writer.close()


async def test_many_sessions_of_one_account_find_its_pace() -> None:
    """Of 24 that begin together 22 are turned away, which nobody could know before."""
    account = Account(per_second=8)

    async def insist(caller: Caller) -> None:
        for attempt in range(1, 50):
            try:
                await caller.call(CHAT, "Hi")
            except Exception as error:  # noqa: BLE001  as an attempt does
                await asyncio.sleep(pause_seconds(attempt, judge(error).delay_seconds or 0.0, RetryPolicy()))
            else:
                return

    async with (
        await asyncio.start_server(account.serve, "127.0.0.1", 0) as server,
        calling("http://{}:{}".format(*server.sockets[0].getsockname())) as caller,
        asyncio.timeout(SURE_SECONDS),
    ):
        await asyncio.gather(*(insist(caller) for _ in range(24)))

    assert account.answers == 24
    assert account.refusals < 40
