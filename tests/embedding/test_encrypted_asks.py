"""Asks of agents whose sessions are encrypted: the workflow has no key, and reads the answer all the same."""

import asyncio
import base64
import dataclasses
import os
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.workflow import AskResult
from tests.embedding.conftest import Application
from tests.embedding.order_workflows import Order, OrderWorkflow
from tests.embedding.test_asking import SENT
from tests.embedding.test_plugin import Backwards
from tests.limits import SURE_SECONDS
from tests.workflows.children.trees import asked
from tests.workflows.operations import until

pytestmark = pytest.mark.server

CONVERTERS = {
    "without a codec": pydantic_data_converter,
    "with one": dataclasses.replace(pydantic_data_converter, payload_codec=Backwards()),
}


@pytest.fixture(params=[*CONVERTERS])
async def shop(application: Application, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """The client of an application whose agents' sessions are encrypted."""
    key = SecretStr(f"first:{base64.b64encode(os.urandom(32)).decode()}")
    application.settings = application.settings.model_copy(update={"master_key": key})
    client = await application.client(application.plugin, data_converter=CONVERTERS[request.param])
    async with asyncio.timeout(SURE_SECONDS), Worker(client, task_queue=application.queue, workflows=[OrderWorkflow]):
        yield client


@pytest.mark.proves("X12", "X22")
async def test_an_answer_is_read_and_the_session_is_encrypted(application: Application, shop: Client) -> None:
    agent = application.agent({"text": "Two orders are late."})
    order = Order(agent, "Check Zinnober17", options={"session": application.case})
    handle = await application.begin(shop, order)
    found: AskResult[str] = await handle.result()
    history = await shop.get_workflow_handle(f"longhaul/clerk/~/{application.case}").fetch_history()
    recorded = b"".join(event.SerializeToString() for event in history.events[1:])

    assert (found.state, found.words) == ("success", "Two orders are late.")
    assert b"longhaul/aes" in recorded or b"longhaul/aes"[::-1] in recorded
    assert b"Zinnober17" not in recorded
    assert b"Zinnober17"[::-1] not in recorded


@pytest.mark.proves("X12", "X22")
async def test_a_second_workflow_is_answered_by_a_signal_that_it_can_read(
    application: Application, shop: Client
) -> None:
    order = Order(application.agent(*SENT, {"text": "Ten."}), options={"session": application.case})
    async with Longhaul.connect(client=shop, settings=application.settings) as app:
        session = app.session(application.case, agent=AgentSpec(name="clerk"))
        first = await application.begin(shop, order)
        call = await asked(session)
        second = await application.begin(shop, dataclasses.replace(order, text="How many?"))

        async def is_queued() -> bool:
            return (await session.status()).queued == 1

        await until(is_queued)
        await session.confirm(call, allow=True)
        found: list[AskResult[str]] = [await first.result(), await second.result()]

    assert [(each.state, each.words) for each in found] == [("success", "Sent."), ("success", "Ten.")]
