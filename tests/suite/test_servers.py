"""The other servers of the test session do what the tests rely on."""

import anthropic
import httpx
import pytest
from openai import AsyncOpenAI
from redis.asyncio import Redis
from temporalio.client import Client
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.workflows.contract import SEARCH_ATTRIBUTES, STATUS
from tests.servers.aimock import Aimock


@pytest.mark.server
async def test_the_shared_server_knows_the_sessions_search_attributes(temporal_server: DevServer) -> None:
    client = await Client.connect(temporal_server.address)
    waiting = TypedSearchAttributes([SearchAttributePair(STATUS, "waiting")])

    handle = await client.start_workflow("Parked", id="w-kettle", task_queue="nobody", search_attributes=waiting)
    described = await handle.describe()

    assert described.typed_search_attributes.get(STATUS) == "waiting"
    assert temporal_server.settings.search_attributes == SEARCH_ATTRIBUTES


@pytest.mark.redis
async def test_redis_keeps_a_stream(redis_url: str) -> None:
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        await redis.xadd("weather", {"sky": "grey"}, id="7-1")

        entries = await redis.xrange("weather")

    assert entries == [("7-1", {"sky": "grey"})]


@pytest.mark.aimock
async def test_both_providers_are_answered_and_every_request_is_in_the_journal(aimock: Aimock) -> None:
    aimock.answer({"match": {"userMessage": "umbrella"}, "response": {"content": "It rains."}})

    async with anthropic.AsyncAnthropic(base_url=aimock.url, api_key="k-tea") as client:
        said = await client.messages.create(
            model="claude-teapot", max_tokens=50, messages=[{"role": "user", "content": "umbrella?"}]
        )
    async with AsyncOpenAI(base_url=f"{aimock.url}/v1", api_key="k-cup") as other:
        answered = await other.chat.completions.create(
            model="gpt-teapot", messages=[{"role": "user", "content": "umbrella!"}]
        )

    assert [block.text for block in said.content if block.type == "text"] == ["It rains."]
    assert answered.choices[0].message.content == "It rains."
    assert [entry["path"] for entry in aimock.journal()] == ["/v1/messages", "/v1/chat/completions"]


@pytest.mark.aimock
def test_a_fault_hits_the_next_request_only(aimock: Aimock) -> None:
    aimock.answer({"match": {"userMessage": "umbrella"}, "response": {"content": "It rains."}})
    aimock.fail_next(529)
    body = {"model": "claude-teapot", "max_tokens": 9, "messages": [{"role": "user", "content": "umbrella?"}]}

    with httpx.Client(base_url=aimock.url, trust_env=False) as client:
        statuses = [client.post("/v1/messages", json=body).status_code for _ in range(2)]

    assert statuses == [529, 200]
