"""A stream that falls silent is given up soon, and one that shows any sign of life is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from longhaul.activities.models.apis.sdk_calls import silence_of
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import IncompleteStreamError
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.conftest import calling
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import BEGINNINGS, Answer, Wire, chat_says, claude_says, response_says
from tests.limits import SURE_SECONDS

CLAUDE, RESPONSES, CHAT = BEGINNINGS
WHOLE = {CLAUDE: claude_says("never ends"), RESPONSES: response_says("never ends"), CHAT: chat_says("never ends")}
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
COMMENT = b": keep-alive\n\n"
SIGNS = {CLAUDE: [PING, COMMENT], RESPONSES: [COMMENT], CHAT: [COMMENT]}
SIGN_PAIRS = [(model, sign) for model, signs in SIGNS.items() for sign in signs]


@asynccontextmanager
async def slow_to_end(model: str, sign: bytes, pauses: int) -> AsyncIterator[Caller]:
    """Calls a server that has started an answer, and gives that sign of life so often before it goes on."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
        writer.write(b"HTTP/1.1 200 Said\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(BEGINNINGS[model])
        for _ in range(pauses):
            await writer.drain()
            await asyncio.sleep(1)
            writer.write(sign)
        writer.write(WHOLE[model][len(BEGINNINGS[model]) :])
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        calling("http://{}:{}".format(*server.sockets[0].getsockname())) as caller,
    ):
        yield caller


@pytest.mark.proves("F6")
@pytest.mark.parametrize("model", BEGINNINGS)
async def test_a_stream_that_falls_silent_is_given_up(by_wire: Caller, wire: Wire, model: str) -> None:
    wire.answers.append(Answer(BEGINNINGS[model], whole=False, then_wait=True))

    async with asyncio.timeout(SURE_SECONDS):
        with pytest.raises(
            IncompleteStreamError, match=r"fell silent: nothing has come of its answer for 0\.5 s"
        ) as caught:
            await by_wire.call(model, "Hi", silence_seconds=0.5)

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("retry", "connection")
    assert by_wire.heard("text") == "never ends"
    await asyncio.wait_for(wire.hung_up.wait(), timeout=SURE_SECONDS)


@pytest.mark.parametrize(("model", "sign"), SIGN_PAIRS)
async def test_whatever_comes_is_a_sign_of_life(model: str, sign: bytes) -> None:
    """Four pauses of a second are more than the three that it may be silent."""
    async with slow_to_end(model, sign, pauses=4) as caller:
        reply = await caller.call(model, "Hi", silence_seconds=3)

    assert [block.type for block in reply.content] == ["text"]


@pytest.mark.parametrize("model", BEGINNINGS)
async def test_the_time_before_an_answer_begins_is_no_silence(model: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.2)
        writer.write(
            b"HTTP/1.1 200 Said\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n" + WHOLE[model]
        )
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        calling("http://{}:{}".format(*server.sockets[0].getsockname())) as caller,
    ):
        reply = await caller.call(model, "Hi", silence_seconds=0.6)

    assert [block.type for block in reply.content] == ["text"]


@pytest.mark.parametrize(
    ("host", "thinks_unseen", "seconds"),
    [
        ("api.anthropic.com", True, 60.0),
        ("api.deepseek.com", False, 60.0),
        ("openrouter.ai", True, 60.0),
        ("api.openai.com", False, 60.0),
        ("api.openai.com", True, 600.0),
        ("127.0.0.1", False, 600.0),
        ("gateway.example", True, 600.0),
    ],
)
def test_a_minute_is_enough_where_a_living_server_says_something(
    host: str, thinks_unseen: bool, seconds: float
) -> None:
    assert silence_of(ModelConfig(), host, thinks_unseen=thinks_unseen) == seconds
    assert silence_of(ModelConfig(silence_seconds=7.5), host, thinks_unseen=thinks_unseen) == 7.5
