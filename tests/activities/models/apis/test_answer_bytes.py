"""Packed answers are unpacked in pieces: a bomb keeps no other call waiting, and ends."""

import asyncio
import gzip
import zlib
from collections.abc import Callable

import pytest

from longhaul.activities.models.apis.answer_bytes import LONGEST_ANSWER_BYTES
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.agent.values.conversation.messages import TextBlock
from tests.activities.models.sample_requests import Caller
from tests.activities.models.wire import Answer, Wire, chat_says, claude_says, response_says

APIS = {"anthropic": claude_says, "openai": response_says, "openai-chat": chat_says}


@pytest.fixture(scope="module")
def bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    zeros = b": keep-alive\n" * 100_000
    return b"".join([*(packer.compress(zeros) for _ in range(300)), packer.flush()])


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_bomb_ends_and_other_calls_go_on_meanwhile(
    by_wire: Caller, wire: Wire, bomb: bytes, api: str, status: int
) -> None:
    wire.answers = [Answer(bomb, status=status, headers={"content-encoding": "gzip"})]
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    beating = asyncio.create_task(beat())
    with pytest.raises(Exception, match="more than") as failed:
        await by_wire.call(f"{api}:wibble", "Hi")
    beating.cancel()

    assert judge(failed.value).kind == "few_tries"
    assert len(bomb) < 2_000_000
    assert beats > LONGEST_ANSWER_BYTES / 1_000_000


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}


@pytest.mark.parametrize("encoding", PACKERS)
@pytest.mark.parametrize("api", APIS)
async def test_an_answer_is_the_same_packed_and_plain(by_wire: Caller, wire: Wire, api: str, encoding: str) -> None:
    wire.answers = [Answer(PACKERS[encoding](APIS[api]("Aye.")), headers={"content-encoding": encoding})]

    reply = await by_wire.call(f"{api}:wibble", "Hi")

    assert [block.text for block in reply.content if isinstance(block, TextBlock)] == ["Aye."]
