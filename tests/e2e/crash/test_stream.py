"""Workers, clients and Redis killed while text streams: what is recorded comes to every reader once and in order, and
what was shown folds into it."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from longhaul.starter.client.reading.event_reader import UNAVAILABLE
from longhaul.starter.client.reading.live_stream import RESTARTED
from longhaul.starter.dev_server.dev_server import DevServer
from tests.conftest import found
from tests.e2e.crash.crash_stage import Job, Stage, call, says, until
from tests.e2e.processes import WorkerProcess, WorkerSettings, worker
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port, running
from tests.servers.redis_server import find_redis

pytestmark = pytest.mark.server

SLOWLY = "The tide comes in, and the tide goes out, and nobody has asked it to."


@dataclass
class Reader:
    """One client, which may be cut off and comes back."""

    job: Job
    reducer: ReplyReducer
    seqs: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    live: list[AgentEvent] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    def attach(self) -> None:
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async with aclosing(self.job.session.follow(self.reducer.seq + 1)) as events:
            async for event in events:
                self.reducer.take(event)
                self.seqs += [event.seq] if event.seq else []
                self.names += [event.name] if event.type == "CUSTOM" else []
                self.live += [event] if event.live and event.delta else []
                if event.type == "REPLY_END":
                    return

    async def come_back(self) -> None:
        """Cut off at whatever it does, and go on from the last recorded event; not behind the end."""
        if self.task is not None and not self.task.done() and not self.reducer.ended:
            self.task.cancel()
            await asyncio.wait((self.task,))
            # The end may have come in the very moment of being cut off.
            if not self.reducer.ended:
                self.attach()

    async def has_seen(self, pieces: int) -> None:
        async def seen() -> bool:
            return len(self.live) >= pieces

        await until(seen, f"{pieces} pieces are shown")

    async def ends_like_the_record(self, seconds: float = SURE_SECONDS) -> None:
        """Everything recorded came once and in order, and folds into the recorded message."""
        assert self.task is not None
        done, _ = await asyncio.wait((self.task,), timeout=seconds)
        if not done:
            status, last = await self.job.session.status(), (await self.job.session.events(2**31)).last
            where = self.task.get_stack()
            raise AssertionError(f"told up to {self.reducer.seq} of {last} after {seconds:g} s, at {where}; {status}")
        if not self.task.cancelled():
            await self.task
        assert self.reducer.ended
        whole = await self.job.session.wait(self.job.reply_id)
        assert self.reducer.message() == whole
        assert self.seqs == list(range(1, len(self.seqs) + 1))


async def reading(job: Job) -> Reader:
    await job.start()
    reader = Reader(job, ReplyReducer(job.reply_id))
    reader.attach()
    return reader


@contextmanager
def redis_at(port: int, folder: Path) -> Iterator[str]:
    """An empty Redis on that port."""

    def answers() -> bool:
        try:
            with Redis(port=port) as client:
                return bool(client.ping())
        except RedisError:
            return False

    command = [found("redis", find_redis), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with running([*command, "--save", ""], port, folder / "redis.log", answers):
        yield f"redis://127.0.0.1:{port}/0"


@pytest.mark.proves("X6")
async def test_a_worker_killed_in_mid_stream_is_told_and_what_it_said_does_not_count(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("tide", [says(SLOWLY, delay_ms=60, chunk_chars=2)])
    settings = stage.worker()
    async with worker(settings) as first:
        reader = await reading(job)
        await reader.has_seen(5)
        await first.kill()
    shown = "".join(event.delta for event in reader.live)
    assert SLOWLY.startswith(shown)
    assert len(shown) < len(SLOWLY)

    async with worker(settings):
        await reader.ends_like_the_record()

    assert reader.names == [RESTARTED]
    again = [event.delta for event in reader.live if event.live and event.live.attempt == 2]
    assert "".join(again) == SLOWLY


@pytest.mark.redis
async def test_redis_killed_in_mid_stream_and_started_empty_stops_no_session(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    stage = await Stage.on(temporal_server.address, tmp_path)
    job = stage.job("tide", [says(SLOWLY, delay_ms=80, chunk_chars=1), says("", call("look")), says("Done.")])
    port = free_port()
    with redis_at(port, tmp_path) as url:
        ground = worker(replace(stage.worker(), redis_url=url))
        await ground.__aenter__()
        reader = await reading(job)
        await reader.has_seen(5)
    try:
        await asyncio.sleep(1.0)
        with redis_at(port, tmp_path):
            await reader.ends_like_the_record()
    finally:
        await ground.__aexit__(None, None, None)

    assert reader.names.count(UNAVAILABLE) <= 1
    assert set(reader.names) <= {UNAVAILABLE, "lost"}


@dataclass
class Ground:
    """What is killed: one worker and one Redis, each begun again at once."""

    settings: WorkerSettings
    port: int
    folder: Path
    process: WorkerProcess
    redis: ExitStack

    async def kill_worker(self) -> None:
        await self.process.kill()
        self.process = await WorkerProcess.start(self.settings)

    def kill_redis(self) -> None:
        self.redis.close()
        self.redis.enter_context(redis_at(self.port, self.folder))


@asynccontextmanager
async def ground(stage: Stage, folder: Path) -> AsyncIterator[Ground]:
    port = free_port()
    with ExitStack() as redis:
        url = redis.enter_context(redis_at(port, folder))
        settings = replace(stage.worker(), redis_url=url)
        made = Ground(settings, port, folder, await WorkerProcess.start(settings), redis)
        try:
            yield made
        finally:
            await made.process.kill()


async def survive(stage: Stage, folder: Path, kills: int, seed: int) -> None:
    """Kill at random while three sessions stream to two readers each."""
    dice = random.Random(seed)  # noqa: S311  chance that can be repeated
    script = [*(says(f"{number}: {SLOWLY}", call("look"), delay_ms=20) for number in range(3)), says("All done.")]
    for line in script[:-1]:
        line["tool_calls"][0] = {**line["tool_calls"][0], "id": ""}
    left = kills
    async with ground(stage, folder) as world:
        while left > 0:
            jobs = [stage.job(f"tide{number}", script) for number in range(3)]
            readers = [await reading(job) for job in jobs]
            for job in jobs:
                readers.append(Reader(job, ReplyReducer(job.reply_id)))
                readers[-1].attach()
            for _ in range(min(left, 8)):
                await asyncio.sleep(dice.uniform(0.1, 0.9))
                left -= 1
                match dice.choice(("client", "client", "worker", "redis")):
                    case "client":
                        await dice.choice(readers).come_back()
                    case "worker":
                        await world.kill_worker()
                    case _:
                        await asyncio.to_thread(world.kill_redis)
            for reader in readers:
                await reader.ends_like_the_record()


@pytest.mark.redis
async def test_random_kills_lose_no_recorded_event_and_repeat_none(temporal_server: DevServer, tmp_path: Path) -> None:
    await survive(await Stage.on(temporal_server.address, tmp_path), tmp_path, kills=8, seed=11)


@pytest.mark.redis
@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_two_hundred_random_kills_lose_no_recorded_event_and_repeat_none(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    await survive(await Stage.on(temporal_server.address, tmp_path), tmp_path, kills=200, seed=23)
