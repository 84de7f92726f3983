"""The plugin: agents' worker in an application's own process, over its connection, beside its own worker."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.client import Client, Interceptor
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.runtime import MetricBuffer, Runtime, TelemetryConfig
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Worker
from temporalio.worker import Interceptor as WorkerInterceptor

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.plugin import LonghaulPlugin, SharedTaskQueue
from longhaul.starter.client.client import Longhaul
from longhaul.starter.connection.connect import let_go, over_connection
from longhaul.stores.state.store import BadStoreSetting
from tests.embedding.conftest import Application
from tests.embedding.order_workflows import Greeting
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server


async def asked(client: Client, application: Application, folder: Path) -> str:
    """What an agent answers to the application's client."""
    script = folder / f"{uuid4().hex[:8]}.jsonl"
    script.write_text(json.dumps({"text": "Three orders are late."}) + "\n", encoding="utf-8")
    app = Longhaul(client, application.settings)
    session = app.session(
        f"{application.name}-{uuid4().hex[:6]}", agent=AgentSpec(name="clerk", model=f"scripted:{script}")
    )
    async with asyncio.timeout(SURE_SECONDS):
        return (await session.reply("What is late?")).get_text_content()


async def greeted(client: Client, application: Application) -> str:
    return await client.execute_workflow(
        Greeting.run, "Ana", id=f"{application.name}-{uuid4().hex[:6]}", task_queue=application.queue
    )


@pytest.mark.proves("X22")
async def test_on_a_client_it_gives_each_worker_of_that_client_agents(application: Application, tmp_path: Path) -> None:
    client = await application.client(application.plugin)
    other = Worker(client, task_queue=f"{application.queue}-2", workflows=[Greeting])
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        async with other:
            both = await asked(client, application, tmp_path)
        said = await greeted(client, application)
        again = await asked(client, application, tmp_path)

    assert (both, again) == ("Three orders are late.", "Three orders are late.")
    assert said == "Hello Ana, from a sandbox"


async def test_on_a_worker_it_does_the_same(application: Application, tmp_path: Path) -> None:
    client = await application.client()
    async with Worker(client, task_queue=application.queue, workflows=[Greeting], plugins=[application.plugin]):
        assert await asked(client, application, tmp_path) == "Three orders are late."
        assert await greeted(client, application) == "Hello Ana, from a sandbox"


class Noting(Interceptor, WorkerInterceptor):
    """An interceptor of the application's own, around its client and so around all its workers."""

    def __init__(self) -> None:
        self.activities = list[str]()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002  the SDK's name
        return _Noting(next, self.activities)


class _Noting(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, activities: list[str]) -> None:
        super().__init__(inner)
        self._activities = activities

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002  the SDK's name
        self._activities.append(activity.info().activity_type)
        return await super().execute_activity(input)


async def test_the_agents_share_connection_metrics_and_interceptors(application: Application, tmp_path: Path) -> None:
    metrics, noting = MetricBuffer(10_000), Noting()
    runtime = Runtime(telemetry=TelemetryConfig(metrics=metrics))
    client = await application.client(application.plugin, interceptors=[noting], runtime=runtime)
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        await asked(client, application, tmp_path)
        counted = {update.attributes.get("task_queue") for update in metrics.retrieve_updates()}
    ours = over_connection(client, application.settings)
    await let_go(ours)

    assert ours.service_client is client.service_client
    assert "longhaul.call_model" in noting.activities
    assert application.settings.task_queue in counted


class Backwards(PayloadCodec):
    """A codec of the application's own, which everything of its own must go through."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": b"back/wards"}, data=each.SerializeToString()[::-1]) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload.FromString(each.data[::-1]) for each in payloads]


async def test_what_we_change_of_the_sdk_spares_an_applications_own_converter(application: Application) -> None:
    converter = dataclasses.replace(DataConverter.default, payload_codec=Backwards())
    client = await application.client(application.plugin, data_converter=converter)
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        handle = await client.start_workflow(
            Greeting.run, "Ana", id=f"{application.name}-backwards", task_queue=application.queue
        )
        said = await handle.result()
    events = (await handle.fetch_history()).events
    ends = [event.workflow_execution_completed_event_attributes.result for event in events]

    assert said == "Hello Ana, from a sandbox"
    assert [end.payloads[0].metadata["encoding"] for end in ends if end.payloads] == [b"back/wards"]


@pytest.mark.proves("X22")
@pytest.mark.parametrize("first", [True, False], ids=["before pydantic-ai's", "behind pydantic-ai's"])
async def test_it_stands_beside_another_plugin_in_any_order(
    application: Application, tmp_path: Path, first: bool
) -> None:
    plugins = [application.plugin, PydanticAIPlugin()] if first else [PydanticAIPlugin(), application.plugin]
    client = await application.client(*plugins)
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        assert await greeted(client, application) == "Hello Ana, from a sandbox"
        assert await asked(client, application, tmp_path) == "Three orders are late."


async def test_without_a_host_the_agents_wait_for_a_worker_elsewhere(application: Application, tmp_path: Path) -> None:
    client = await application.client(LonghaulPlugin(application.settings, host=False))
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        assert await greeted(client, application) == "Hello Ana, from a sandbox"
        waiting = asyncio.create_task(asked(client, application, tmp_path))
        done, _ = await asyncio.wait((waiting,), timeout=1)
        assert not done
        async with Worker(
            client,
            task_queue=f"{application.queue}-2",
            workflows=[Greeting],
            plugins=[WorkerHost(application.settings)],
        ):
            assert await waiting == "Three orders are late."


class WorkerHost(LonghaulPlugin):
    """Of another type: the SDK warns of one that both a client and a worker have."""


async def test_the_agents_worker_ends_last_and_lets_its_calls_end(application: Application, tmp_path: Path) -> None:
    client = await application.client(application.plugin)
    script = tmp_path / "slow.jsonl"
    script.write_text(json.dumps({"text": "Slow, but whole.", "delay_ms": 1_500}) + "\n", encoding="utf-8")
    session = Longhaul(client, application.settings).session(
        application.name, agent=AgentSpec(name="clerk", model=f"scripted:{script}")
    )
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        reply = await session.submit("Go")
        async with asyncio.timeout(SURE_SECONDS):
            while (await session.status()).status != "working":  # noqa: ASYNC110  it tells nobody
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
    async with Worker(client, task_queue=application.queue, workflows=[Greeting]):
        said = await session.wait(reply)
        lost = (await session.status()).lost

    assert said.get_text_content() == "Slow, but whole."
    assert lost.calls == 0


async def test_a_worker_of_agents_that_cant_start_ends_the_application_with_its_sentence(
    application: Application,
) -> None:
    settings = application.settings.model_copy(update={"store": "carrier-pigeon://loft"})
    client = await application.client()
    worker = Worker(client, task_queue=application.queue, workflows=[Greeting], plugins=[LonghaulPlugin(settings)])

    async with asyncio.timeout(SURE_SECONDS):
        with pytest.raises(BadStoreSetting, match="carrier-pigeon"):
            await worker.run()


async def test_one_queue_for_both_is_refused_when_the_worker_is_made(application: Application) -> None:
    client = await application.client()

    with pytest.raises(SharedTaskQueue, match=r"LONGHAUL_TASK_QUEUE: '.*' is the task queue of this application's"):
        Worker(client, task_queue=application.settings.task_queue, workflows=[Greeting], plugins=[application.plugin])
