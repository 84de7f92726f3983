"""Word of a cancellation goes from one worker's process to another's."""

import asyncio
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.cancel_hints import Hints
from longhaul.activities.attempt.heartbeat import beating
from longhaul.stores.streams.opening import open_streams
from tests.workflows.letters import until

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[3]
TELLER = """
import asyncio, sys
from pathlib import Path
from longhaul.activities.attempt.cancel_hints import Hints
from longhaul.stores.streams.opening import open_streams

async def main(url, folder, *told):
    hints = Hints(open_streams(url, data_dir=Path(folder)), "default", "amber")
    async with hints.heard():
        for workflow_id in told:
            hints.tell(workflow_id)
        await asyncio.sleep(0.2)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["directory", pytest.param("redis", marks=pytest.mark.redis)])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("redis_url")) if request.param == "redis" else ""


async def tell(url: str, folder: Path, *workflow_ids: str) -> None:
    """As another worker."""
    one = await asyncio.create_subprocess_exec(sys.executable, "-c", TELLER, url, str(folder), *workflow_ids, cwd=ROOT)
    assert await one.wait() == 0


async def test_a_call_beats_soon_after_another_process_has_said_that_it_was_cancelled(url: str, tmp_path: Path) -> None:
    environment, beats = ActivityEnvironment(), list[float]()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=60), workflow_id="longhaul/teal")
    environment.on_heartbeat = lambda *_: beats.append(time.monotonic())
    hints = Hints(open_streams(url, data_dir=tmp_path), "default", "amber")
    enough = asyncio.Event()

    async def work() -> None:
        async with beating():
            await enough.wait()

    async def has_beaten() -> bool:
        return bool(beats)

    async with hints.heard():
        call = asyncio.create_task(environment.run(work))
        await tell(url, tmp_path, "longhaul/other")
        others = len(beats)
        await tell(url, tmp_path, "rubbish \n\udcff", "longhaul/teal")
        await until(has_beaten)
        enough.set()
        await call

    assert others == 0
    assert len(beats) <= 4
