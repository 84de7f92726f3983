"""Word of a cancellation goes from one worker's process to another's."""

import asyncio
import sys
import time
from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from uuid import uuid4

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt import heartbeat
from longhaul.activities.attempt.heartbeat import CancelHints, Stalled, beating
from longhaul.stores.streams.open_streams import open_streams
from longhaul.stores.streams.streams import StreamsUnavailable, key_of
from tests.limits import SURE_SECONDS, usual
from tests.workflows.operations import until

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[3]
BEAT_SECONDS = 20.0
"""Between two beats that nobody asks for."""
TELLER = """
import asyncio, sys
from pathlib import Path
from longhaul.activities.attempt.heartbeat import CancelHints
from longhaul.stores.streams.open_streams import open_streams

async def main(url, folder, queue, *told):
    hints = CancelHints(open_streams(url, data_dir=Path(folder)), "default", queue)
    async with hints.heard():
        for workflow_id in told:
            hints.tell(workflow_id)
        await asyncio.sleep(0.2)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["directory", pytest.param("redis", marks=pytest.mark.redis)])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("redis_url")) if request.param == "redis" else ""


class Failing:
    """A reader."""

    def __init__(self, trouble: str) -> None:
        self._trouble = trouble

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        del seconds, gently
        if self._trouble == "when it is read":
            raise ValueError(self._trouble)
        raise StreamsUnavailable(self._trouble)

    async def close(self) -> None:
        if self._trouble == "when it is closed":
            raise ConnectionError(self._trouble)


async def tell(url: str, *words: str) -> None:
    """As another worker: folder, queue, workflow ids."""
    one = await asyncio.create_subprocess_exec(sys.executable, "-c", TELLER, url, *words, cwd=ROOT)
    assert await one.wait() == 0


async def test_a_call_whose_worker_stalled_beyond_its_heartbeat_stops_before_it_does_more() -> None:
    environment, done = ActivityEnvironment(), list[str]()
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(seconds=0.5), workflow_id="longhaul/late")

    async def work() -> None:
        async with beating():
            time.sleep(0.8)  # noqa: ASYNC251  nothing else runs on the worker's loop meanwhile
            await asyncio.sleep(0)
            await asyncio.sleep(SURE_SECONDS)
            done.append("the effect")

    with pytest.raises(Stalled, match="no heartbeat left this worker"):
        await environment.run(work)

    assert done == []


@pytest.mark.parametrize("trouble", ["none", "when it is read", "when it is closed"])
async def test_a_call_beats_soon_after_another_process_has_said_that_it_was_cancelled(
    url: str, tmp_path: Path, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the first reader fails in a way that nobody has foreseen."""
    monkeypatch.setattr(heartbeat, "AGAIN_SECONDS", 0.05)
    environment, beats = ActivityEnvironment(), list[float]()
    environment.info = replace(
        environment.info, heartbeat_timeout=timedelta(seconds=3 * BEAT_SECONDS), workflow_id="longhaul/teal"
    )
    environment.on_heartbeat = lambda *_: beats.append(time.monotonic())
    queue = uuid4().hex  # what was told in another test is kept
    streams = open_streams(url, data_dir=tmp_path)
    if trouble != "none":
        readers = chain([Failing(trouble)], map(streams.reader, repeat(key_of("default", f"hints/{queue}"))))
        monkeypatch.setattr(streams, "reader", lambda _: next(readers))
    hints = CancelHints(streams, "default", queue)
    enough = asyncio.Event()

    async def work() -> None:
        async with beating():
            await enough.wait()

    async def has_beaten() -> bool:
        return bool(beats)

    async with hints.heard():
        call = asyncio.create_task(environment.run(work))
        await tell(url, str(tmp_path), queue, "longhaul/other")
        others, began = len(beats), time.monotonic()
        await tell(url, str(tmp_path), queue, "malformed input \n\udcff", "longhaul/teal")
        await until(has_beaten)
        took = time.monotonic() - began
        enough.set()
        await call

    assert others == 0
    assert took < usual(BEAT_SECONDS / 2)
    assert len(beats) <= 4
