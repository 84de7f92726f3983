"""Sessions on a client with a codec and a failure converter of its owner's: both stay, around what Longhaul does."""

import base64
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHandle
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DefaultFailureConverterWithEncodedAttributes, PayloadCodec

from longhaul import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.connection.connect import BadConnection, connect, let_go
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.settings import Settings
from longhaul.testing import AgentEnvironment, calls, environment, replay, scripted, settings_for, working
from tests.workflows.operations import until

pytestmark = pytest.mark.server

WORD = "Zinnober4402"
"""Stands in what is said, called and answered."""
TOOLS = "tests.workflows.tools"
ENCODING = b"shop/turned"


class Turned(PayloadCodec):
    """Turns bytes around, and takes what it did not encode as it is."""

    def __init__(self) -> None:
        self.is_down = False

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.check()
        return [Payload(metadata={"encoding": ENCODING}, data=p.SerializeToString()[::-1]) for p in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        self.check()
        return [Payload.FromString(p.data[::-1]) if p.metadata["encoding"] == ENCODING else p for p in payloads]

    def check(self) -> None:
        if self.is_down:
            raise ConnectionError("the shop's keys are down")


THEIRS = replace(
    pydantic_data_converter,
    payload_codec=Turned(),
    failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
)
"""As a setting names it."""


@pytest.fixture
async def shop(temporal_server: DevServer) -> tuple[Client, Turned]:
    codec = Turned()
    return (
        await Client.connect(temporal_server.address, data_converter=replace(THEIRS, payload_codec=codec)),
        codec,
    )


def payloads_of(message: object) -> list[Payload]:
    """All within a protobuf message."""
    if isinstance(message, Payload):
        return [message]
    found: list[Payload] = []
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            # Core's own note of an activity within a task has numbers and times, and no codec sees it.
            values = [each for key, each in value.items() if hasattr(each, "ListFields") and key != "data"]
        else:
            values = list(value) if not hasattr(value, "ListFields") else [value]
        for each in values:
            if field.name not in ("search_attributes", "header"):
                found += payloads_of(each)
    return found


async def has_failed_task(handle: WorkflowHandle[Any, Any]) -> bool:
    kinds = {event.event_type for event in (await handle.fetch_history()).events}
    return EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED in kinds


@pytest.mark.proves("X22")
@pytest.mark.parametrize("encrypts", [False, True], ids=["in clear text", "encrypted"])
async def test_their_codec_encodes_all_that_a_session_sends_and_ours_is_within_it(
    shop: tuple[Client, Turned], tmp_path: Path, encrypts: bool
) -> None:
    client, _ = shop
    key = f"first:{base64.b64encode(os.urandom(32)).decode()}" if encrypts else ""
    settings = settings_for(tmp_path, tools=TOOLS, master_key=SecretStr(key))

    async with environment(client, settings) as env:
        session = env.session(
            AgentSpec(
                name="clerk", tools=("send",), model=scripted([calls("send", f"To {WORD}.", to=WORD, text="Hi"), WORD])
            )
        )
        await session.reply(f"Write to {WORD}")
        reply = await env.approve(session, "send")
        seen = await env.seen(session)
        history = await client.get_workflow_handle(session.workflow_id).fetch_history()
        await replay(await env.save(session, tmp_path / "saved"), client=env.client)
        payloads = [one for event in history.events for one in payloads_of(event)]
        decoded = await THEIRS.payload_codec.decode(payloads) if THEIRS.payload_codec else []

    assert (reply.get_text_content(), seen.call("send").state) == (WORD, "success")
    assert [one for one in payloads if one.metadata["encoding"] != ENCODING] == []
    assert len(payloads) > 10
    within = {bytes(one.metadata["encoding"]) for one in decoded}
    assert within == ({b"longhaul/aes"} if encrypts else within - {b"longhaul/aes"})


async def test_malformed_payloads_are_refused_and_a_codec_that_is_down_is_waited_for(
    shop: tuple[Client, Turned], tmp_path: Path
) -> None:
    client, codec = shop
    settings = settings_for(tmp_path, tools=TOOLS)
    forged = Payload(metadata={"encoding": ENCODING}, data=b"\xff nothing of the sort")

    async with environment(client, settings) as env:
        session = env.session(AgentSpec(name="clerk", model=scripted(["First.", "Second."])))
        await session.reply("One")
        plain = await Client.connect(client.service_client.config.target_host)
        handle = plain.get_workflow_handle(session.workflow_id)
        await handle.signal("observe", RawValue(forged))
        codec.is_down = True
        await handle.signal("observe", RawValue(forged))
        await until(lambda: has_failed_task(handle))
        codec.is_down = False
        second = await session.reply("Two")
        status = await session.status()
        await replay(await env.save(session, tmp_path / "saved"), client=env.client)

    assert second.get_text_content() == "Second."
    assert status.refused == 2
    assert "codec" in str(status.last_refusals)


async def test_a_setting_names_the_codec_for_workers_and_clients_without_a_client_of_their_own(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    settings = settings_for(tmp_path, tools=TOOLS, codec="tests.workflows.incarnation.test_own_codec:THEIRS")
    client = await connect(temporal_server.address, settings=settings)
    try:
        async with working(client, settings):
            env = AgentEnvironment(client, settings)
            session = env.session(AgentSpec(name="clerk", model=scripted(["Hello."])))
            theirs = await Client.connect(temporal_server.address, data_converter=THEIRS)
            async with Longhaul.connect(settings=settings, client=theirs) as app:
                reply = await app.session(session.id, agent=session.spec).reply("Hello?")
            await env.end_sessions()
    finally:
        await let_go(client)

    assert reply.get_text_content() == "Hello."


async def test_a_codec_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadConnection, match="LONGHAUL_CODEC: 'os:sep' is a str; name a PayloadCodec"):
        await connect(settings=Settings(codec="os:sep", data_dir=tmp_path))
    with pytest.raises(BadConnection, match="the codec 'nowhere:at_all' can't be loaded"):
        await connect(settings=Settings(codec="nowhere:at_all", data_dir=tmp_path))
