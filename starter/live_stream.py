"""One session's live stream, as far as it can be read from here: reading it never fails, it only goes silent."""

import asyncio

from temporalio.client import WorkflowQueryFailedError

from activities.streams.items import PIECES, Item, decode
from activities.streams.opening import NO_STREAM, reach
from activities.streams.streams import StreamReader, Streams, StreamsUnavailable, key_of
from starter.asking import Asking
from starter.settings import Settings

AGAIN_SECONDS = 2.0
"""Between tries to read a stream that has failed."""


class LiveStream:
    """A place in the stream; it begins with the oldest item that is kept. Close it."""

    def __init__(self, asking: Asking, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._settings = settings
        self._key = key_of(asking.client.namespace, workflow_id)
        self._streams: Streams | None = None
        self._reader: StreamReader | None = None
        self._asked = False
        self.trouble = ""
        """Why nothing can be read; empty while it can, or was not tried yet."""

    async def read(self, seconds: float) -> list[Item]:
        """What comes next; nothing after so many seconds, or without a stream. Cut short only by what comes."""
        if not self._asked:
            await self._reach()
        if self._reader is None:
            await asyncio.sleep(seconds)
            return []
        try:
            lines = await self._reader.read(seconds)
        except StreamsUnavailable as error:
            self.trouble = str(error)
            await asyncio.sleep(min(max(seconds, 0.01), AGAIN_SECONDS))
            return []
        self.trouble = ""
        return [item for line in lines if (item := decode(line)) is not None]

    async def rest(self, seconds: float) -> None:
        """Until the session has done something that others may see, or so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            if any(item.kind not in PIECES for item in await self.read(left)):
                return

    @property
    def reached(self) -> bool:
        return self._reader is not None and not self.trouble

    async def _reach(self) -> None:
        """Ask the session where its stream is: the client's own folders may be others than the worker's."""
        try:
            address = await self._asking.query("stream", str)
            self._asked = True
            self._streams = await reach(address, redis_url=self._settings.redis_url)
            self._reader = self._streams.reader(self._key)
        except WorkflowQueryFailedError:
            self._asked, self.trouble = True, NO_STREAM
        except StreamsUnavailable as error:
            self.trouble = str(error)

    async def aclose(self) -> None:
        if self._reader is not None:
            await self._reader.close()
        if self._streams is not None:
            await self._streams.close()
