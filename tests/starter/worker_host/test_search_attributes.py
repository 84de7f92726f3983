"""Search attributes that a namespace lacks are registered, and those of another type refused in words."""

import asyncio
import shlex
from datetime import timedelta
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.starter.cli.doctor.server_checks import search_attributes
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.dev_server.search_attributes import VALUE_TYPES, compare, name_of_type, register
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.requirements import NotRegistered, register_search_attributes
from longhaul.workflows.contract import SEARCH_ATTRIBUTES
from tests.workflows.operations import until

server = pytest.mark.server


def test_each_kind_has_a_name_that_the_server_knows() -> None:
    unknown = [kind for kind in SEARCH_ATTRIBUTES.values() if kind not in VALUE_TYPES]

    assert unknown == []
    assert {kind: name_of_type(number) for kind, number in VALUE_TYPES.items()} == {kind: kind for kind in VALUE_TYPES}


async def namespace_of(server: DevServer, name: str) -> Client:
    """A namespace of one test: on the shared server, with no attribute of ours."""
    asking = await Client.connect(server.address)
    retention = Duration(seconds=int(timedelta(days=1).total_seconds()))
    await asking.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=name, workflow_execution_retention_period=retention)
    )
    client = await Client.connect(server.address, namespace=name)

    async def is_known() -> bool:
        try:
            await compare(client, {})
        except RPCError:
            return False
        return True

    await until(is_known)
    return client


async def has(client: Client, others: int, missing: int) -> None:
    """Wait until the server's own memory of them is renewed."""

    async def is_so() -> bool:
        found = await compare(client, SEARCH_ATTRIBUTES)
        return (len(found.others), len(found.missing)) == (others, missing)

    await until(is_so)


@pytest.fixture
async def turned(temporal_server: DevServer) -> Client:
    """A namespace in which two of our names have another type."""
    client = await namespace_of(temporal_server, "turned")
    await register(client, {"LonghaulTokens": "Keyword", "LonghaulWaitingSince": "Text"})
    await has(client, others=2, missing=len(SEARCH_ATTRIBUTES) - 2)
    return client


@server
async def test_a_worker_registers_what_is_missing(temporal_server: DevServer) -> None:
    client = await namespace_of(temporal_server, "blank")

    lacking = await search_attributes(client, Settings())
    await register_search_attributes(client)
    await has(client, others=0, missing=0)
    found = await search_attributes(client, Settings())

    assert (lacking.ok, lacking.detail) == (False, f"missing: {', '.join(SEARCH_ATTRIBUTES)}")
    assert (found.ok, found.detail) == (True, "registered")


@server
async def test_an_attribute_of_another_type_is_refused_with_commands_that_help(
    turned: Client, temporal_cli: Path
) -> None:
    with pytest.raises(NotRegistered) as refused:
        await register_search_attributes(turned)
    said = str(refused.value)
    checked = await search_attributes(turned, Settings())

    assert "'turned'" in said
    for each in (
        "LonghaulTokens is of type Keyword and has to be of type Int",
        "LonghaulWaitingSince is of type Text and has to be of type Datetime",
    ):
        assert each in said
        assert each in checked.detail
    assert not checked.ok

    commands = [command for command in checked.fix.split("`") if command.startswith("temporal ")]
    where = ["--address", turned.service_client.config.target_host, "--namespace", "turned"]
    for command in commands:
        done = await asyncio.create_subprocess_exec(temporal_cli, *shlex.split(command)[1:], *where)
        assert await done.wait() == 0, command
    await has(turned, others=0, missing=len(SEARCH_ATTRIBUTES) - 2)
    await register_search_attributes(turned)
    await has(turned, others=0, missing=0)
