"""RedisOffloader against a real Redis: the same promises as LocalWorkspace."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from longhaul.agent.values.conversation.messages import TextBlock, UserMsg
from longhaul.stores.offload.redis_offloader import RedisOffloader
from tests.limits import usual
from tests.servers.local import free_port
from tests.stores.offload.samples import PIXEL, PIXEL_NAME, picture, result, said

pytestmark = pytest.mark.redis


@pytest.fixture
def prefix() -> str:
    return f"test:{uuid4().hex[:8]}"


@asynccontextmanager
async def looking(url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(url)
    try:
        yield client
    finally:
        await client.aclose()


async def texts_at(url: str, reference: str) -> list[str]:
    async with looking(url) as redis:
        lines = await redis.lrange(reference.partition("/0/")[2], 0, -1)
    return [json.loads(line)["content"][0]["text"] for line in lines]


async def value_at(url: str, reference: str) -> bytes:
    async with looking(url) as redis:
        value = await redis.get(reference.partition("/0/")[2])
    assert isinstance(value, bytes)
    return value


async def test_messages_are_there_once_however_often_a_call_is_repeated(redis_url: str, prefix: str) -> None:
    offloader = RedisOffloader(redis_url, prefix)
    attempts = [offloader.offload_context("kettle", [said(1), said(2)], batch="epoch-2") for _ in range(8)]

    reference, *_ = await asyncio.gather(*attempts)
    await offloader.offload_context("kettle", [said(2), said(3)], batch="epoch-3")

    assert reference == f"{redis_url}/{prefix}:{{kettle}}:context"
    assert await texts_at(redis_url, reference) == ["message 1", "message 2", "message 2", "message 3"]


async def test_a_result_of_the_same_id_gets_a_key_of_its_own_unless_it_is_the_same(redis_url: str, prefix: str) -> None:
    offloader = RedisOffloader(redis_url, prefix)
    outputs = ["first", "second", "first", "second"]

    references = [await offloader.offload_tool_result("kettle", result("call_7", output)) for output in outputs]

    assert [reference.rpartition(":")[2] for reference in references] == [
        "tool_result-call_7", "tool_result-call_7(1)", "tool_result-call_7", "tool_result-call_7(1)",
    ]  # fmt: skip
    assert [await value_at(redis_url, reference) for reference in references] == [text.encode() for text in outputs]


async def test_attachments_are_kept_once_and_referenced(redis_url: str, prefix: str) -> None:
    offloader = RedisOffloader(redis_url, prefix)

    await offloader.offload_context("kettle", [UserMsg("ana", [picture()])])
    text = await offloader.offload_tool_result("pot", result("call_7", (TextBlock(text="see"), picture())))

    data = f"{redis_url}/{prefix}:data:{PIXEL_NAME}"
    assert await value_at(redis_url, data) == PIXEL
    assert await value_at(redis_url, text) == f"see\n[image/png 'pixel.png': {data}]".encode()


async def test_a_time_to_live_is_counted_from_the_last_attempt(redis_url: str, prefix: str) -> None:
    offloader = RedisOffloader(redis_url, prefix, ttl_seconds=90)
    await offloader.offload_context("kettle", [UserMsg("ana", [picture()])], batch="epoch-2")
    await offloader.offload_tool_result("kettle", result("call_7", "kept"))

    async with looking(redis_url) as redis:
        keys = sorted([key async for key in redis.scan_iter(f"{prefix}:*")])
        for key in keys:
            await redis.expire(key, 5)
        await offloader.offload_context("kettle", [UserMsg("ana", [picture()])], batch="epoch-2")
        await offloader.offload_tool_result("kettle", result("call_7", "kept"))
        left = [await redis.ttl(key) for key in keys]

    assert len(keys) == 4
    assert [seconds > 80 for seconds in left] == [True] * 4


async def test_a_reference_holds_no_password(redis_url: str, prefix: str) -> None:
    async with looking(redis_url) as redis:
        await redis.acl_setuser("ana", enabled=True, passwords=["+marmalade"], keys=["*"], commands=["+@all"])
        try:
            with_login = redis_url.replace("redis://", "redis://ana:marmalade@")
            reference = await RedisOffloader(with_login, prefix).offload_tool_result("kettle", result("call_7", "kept"))
        finally:
            await redis.acl_deluser("ana")

    assert reference == f"{redis_url}/{prefix}:{{kettle}}:tool_result-call_7"


async def test_a_redis_that_is_down_is_an_error_within_seconds(prefix: str) -> None:
    started = time.monotonic()

    with pytest.raises(RedisError):
        await RedisOffloader(f"redis://127.0.0.1:{free_port()}/0", prefix).offload_tool_result(
            "kettle", result("c", "x")
        )

    assert time.monotonic() - started < usual(30)
