"""A stage whose sessions keep large values in a blob store, and a store that can be told to lose them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Any, Self

from temporalio.client import Client

from longhaul.starter.client.session import Session
from longhaul.starter.connection.connect import connect
from longhaul.starter.worker_host.replay import replayer
from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, session_prefix
from longhaul.worker import build
from longhaul.workflows.contract import TASK_TIMEOUT, WORKFLOW, SessionStart, converter_with, stored_in
from longhaul.workflows.payload_converter import BY_REFERENCE_BYTES
from tests.workflows.conftest import Stage


@dataclass
class Roomy(Stage):
    """A stage whose client and workers reach one blob store."""

    @property
    def blobs(self) -> BlobStore:
        blobs = stored_in(self.client.data_converter)
        assert blobs is not None
        return blobs

    @asynccontextmanager
    async def another_worker(self) -> AsyncIterator[None]:
        async with build(await connect(self.address, settings=self.settings), self.settings, self.providers):
            yield

    async def opened(self, *lines: dict[str, Any], **spec: Any) -> Session:
        """A session that runs, in the format that does not carry all of its entries."""
        session = self.session(*lines, **spec)
        start = SessionStart(session_id=session.id, spec=session.spec)
        await self.client.start_workflow(
            WORKFLOW,
            start,
            id=session.workflow_id,
            task_queue=self.settings.task_queue,
            task_timeout=TASK_TIMEOUT,
        )
        return session

    async def stored(self, session: Session) -> list[str]:
        return await self.blobs.keys(session_prefix("default", session.workflow_id))

    @classmethod
    async def over(cls, stage: Stage) -> Self:
        """The same stage, with a client that reaches the blobs; without a worker of its own."""
        given: dict[str, Any] = {each.name: getattr(stage, each.name) for each in fields(Stage)}
        return cls(**{**given, "client": await connect(stage.address, settings=stage.settings)})


async def failure_of_replay(stage: Stage, session: Session) -> BaseException | None:
    """On a worker that knows nothing but the history and the blobs."""
    history = await stage.handle(session).fetch_history()
    fresh = replayer(stage.client.data_converter, stage.client.namespace)
    return (await fresh.replay_workflow(history, raise_on_replay_failure=False)).replay_failure


@dataclass
class Moody:
    """A blob store that loses what is put, or can't be reached, for as long as it is told to."""

    real: BlobStore
    losing: bytes | None = None
    """Values that hold these bytes; empty for all."""
    away: bool = False
    lost: dict[str, bytes] = field(default_factory=dict[str, bytes])
    place: str = "a moody place"

    async def put(self, key: str, data: bytes) -> None:
        self._check()
        if self.losing is not None and self.losing in data:
            self.lost[key] = data
        else:
            await self.real.put(key, data)

    async def get(self, key: str) -> bytes:
        self._check()
        return await self.real.get(key)

    async def keys(self, prefix: str) -> list[str]:
        return await self.real.keys(prefix)

    async def delete_prefix(self, prefix: str) -> int:
        return await self.real.delete_prefix(prefix)

    async def mark(self, new: str = "") -> str:
        return await self.real.mark(new)

    async def close(self) -> None:
        await self.real.close()

    def _check(self) -> None:
        if self.away:
            raise BlobsUnavailable("a moody place is not in the mood")


@asynccontextmanager
async def worker_with(blobs: Moody, roomy: Roomy, from_bytes: int = BY_REFERENCE_BYTES) -> AsyncIterator[None]:
    """A worker that reaches these blobs, and puts values from so many bytes there."""
    client = await Client.connect(roomy.address, data_converter=converter_with(blobs, from_bytes))
    async with build(client, roomy.settings, roomy.providers):
        yield
