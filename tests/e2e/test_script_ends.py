"""A script that uses the client and comes to its end: the interpreter's normal one, with no trick at it."""

import asyncio
import sys
from asyncio.subprocess import PIPE

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.processes import ROOT

pytestmark = pytest.mark.server

ASKS = """
import asyncio, sys
from longhaul import Longhaul

async def main():
    async with Longhaul.connect(sys.argv[1]) as app:
        print(await app.sessions(user="nobody"))

asyncio.run(main())
"""
SCRIPTS = 6
"""On a busy machine one in six of them was aborted when nothing waited for the SDK's threads."""


async def ended(address: str) -> tuple[int | None, str]:
    words = (sys.executable, "-c", ASKS, address)
    script = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdout=PIPE, stderr=PIPE)
    said, complained = await script.communicate()
    return script.returncode, (said + complained).decode()


async def test_scripts_end_with_their_own_exit_code(temporal_server: DevServer) -> None:
    assert await asyncio.gather(*(ended(temporal_server.address) for _ in range(SCRIPTS))) == [(0, "[]\n")] * SCRIPTS
