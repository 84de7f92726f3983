"""A script that uses the client and comes to its end: the interpreter's normal one, with no trick at it."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.processes import ROOT

pytestmark = pytest.mark.server

OWN_CONNECTION = """
import asyncio, sys
from longhaul import Longhaul

async def main():
    async with Longhaul.connect(sys.argv[1]) as app:
        print(await app.sessions(user="nobody"))

asyncio.run(main())
"""
ABOVE_A_CLIENT = """
import asyncio, sys
from longhaul import Longhaul
from temporalio.client import Client

async def main():
    print(await Longhaul(await Client.connect(sys.argv[1])).sessions(user="nobody"))

asyncio.run(main())
"""
JOINED_TO_A_CLIENT = """
import asyncio, sys
from longhaul import Longhaul
from temporalio.client import Client

async def main():
    async with Longhaul.connect(client=await Client.connect(sys.argv[1])) as app:
        print(await app.sessions(user="nobody"))

asyncio.run(main())
"""
SCRIPTS = 6
"""On a busy machine one in six of them was aborted when nothing waited for the SDK's threads."""


async def ended(script: str, address: str) -> tuple[int | None, str]:
    words = (sys.executable, "-c", script, address)
    process = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=PIPE, stderr=PIPE)
    said, complained = await process.communicate()
    return process.returncode, (said + complained).decode()


@pytest.mark.parametrize(
    "script",
    [OWN_CONNECTION, ABOVE_A_CLIENT, JOINED_TO_A_CLIENT],
    ids=["its own connection", "a client that it was given", "joined to a client that it was given"],
)
async def test_scripts_end_with_their_own_exit_code(temporal_server: DevServer, script: str) -> None:
    ends = await asyncio.gather(*(ended(script, temporal_server.address) for _ in range(SCRIPTS)))

    assert ends == [(0, "[]\n")] * SCRIPTS
