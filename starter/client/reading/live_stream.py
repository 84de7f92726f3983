"""One session's live stream, as far as it can be read from here: reading it never fails, it only goes silent."""

import asyncio
from weakref import WeakKeyDictionary

from temporalio.client import Client, WorkflowQueryFailedError

from longhaul.starter.client.reading.asking import Asking
from longhaul.starter.reach.connection import keyring_in
from longhaul.starter.settings import Settings
from longhaul.stores.streams.open_streams import decrypting, reach
from longhaul.stores.streams.streams import SETTLED, Item, StreamReader, Streams, StreamsUnavailable, decode, key_of

BREATH_SECONDS = 0.025
"""Between looks of somebody who waits for the end, and has no use for the pieces."""
LONGEST_REST_SECONDS = 5.0
"""While a session speaks on. Not every end is told: that of a request which is dropped is not, nor one behind which the
next reply begins while a checkpoint is still being written."""
AGAIN_SECONDS = 2.0
"""Between tries to read a stream that has failed."""

_last_told = WeakKeyDictionary[Client, str]()
"""Where the session was whose address was asked for last: most often all sessions of a client are there."""


class LiveStream:
    """A place in the stream; it begins with the oldest item that is kept. Close it."""

    def __init__(self, asking: Asking, settings: Settings, workflow_id: str) -> None:
        self._asking = asking
        self._settings = settings
        self._key = key_of(asking.client.namespace, workflow_id)
        self._streams: Streams | None = None
        self._reader: StreamReader | None = None
        self._address: str | None = None
        """None: not asked for yet."""
        self._guessed = False
        self.heard = False
        """Whether it has said anything: one that has will say when there is more."""
        self.silent = False
        """Whether it said nothing at all while it was waited for last."""
        self.trouble = ""
        """Why nothing can be read; empty while it can, or was not tried yet."""

    async def read(self, seconds: float) -> list[Item]:
        """What comes next; nothing after so many seconds, or without a stream. Cut short only by what comes."""
        return [item for line in await self._lines(seconds) if (item := decode(line)) is not None]

    async def reach(self, *, guess: bool = False) -> bool:
        """Whether it can be read, as far as is known. The session is asked once where it is.

        `guess`: take it to be where another session's was, which saves the question; `make_sure` puts it.
        """
        if self._address is None:
            known = self._asking.stream_address
            if known is None and guess:
                known = _last_told.get(self._asking.client)
                self._guessed = known is not None
            await self._reach(await self._told() if known is None else known)
        return self.reached

    async def make_sure(self) -> None:
        """Of an address that was guessed: what the stream has said there may be of an earlier time."""
        if self._guessed:
            self._guessed = False
            await self.look_again()

    def doubt(self) -> None:
        """The session came to something of which this stream said nothing: who reads it next asks where it is."""
        if self.reached and self._asking.stream_address == self._address:
            self._asking.stream_address = None
            _last_told.pop(self._asking.client, None)

    async def _lines(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        await self.reach()
        if self._reader is None:
            await asyncio.sleep(seconds)
            return []
        try:
            lines = await self._reader.read(seconds, gently=gently)
        except StreamsUnavailable as error:
            self.trouble = str(error)
            await asyncio.sleep(min(max(seconds, 0.01), AGAIN_SECONDS))
            return []
        self.trouble = ""
        self.heard = self.heard or bool(lines)
        return lines

    async def pass_over(self, ends: "ToldEnds") -> bool:
        """All that it has said so far: whoever asks the session next hears what came of it. Whether the reply may have
        ended by then."""
        told = list[bool]()
        while lines := await self._lines(0):
            told += [ends.hear(line) for line in lines]
        return any(told)

    async def rest(self, seconds: float, ends: "ToldEnds") -> bool:
        """Until the reply may have ended, or wait for somebody, which is True; or until nothing was said for so long.
        While it speaks on that is LONGEST_REST_SECONDS, or `seconds` where they are more."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        latest = loop.time() + max(LONGEST_REST_SECONDS, seconds)
        self.silent = True
        while (left := until - loop.time()) > 0:
            lines = await self._lines(left, gently=True)
            self.silent = self.silent and not lines
            told = [ends.hear(line) for line in lines]
            if any(told):
                return True
            if lines:
                until = min(loop.time() + seconds, latest)
            await asyncio.sleep(min(BREATH_SECONDS, left))
        return False

    @property
    def reached(self) -> bool:
        return self._reader is not None and not self.trouble

    async def look_again(self) -> None:
        """Where the session's stream is by now: another worker may write to another one, or it has come back."""
        address = await self._told()
        if address != self._address or self.trouble:
            await self.aclose()
            await self._reach(address)

    async def _told(self) -> str:
        """By the session: the client's own folders may be others than the worker's. Empty: of no stream."""
        try:
            told = await self._asking.query("stream", str)
        except WorkflowQueryFailedError:
            return ""  # a session that could not begin
        _last_told[self._asking.client] = self._asking.stream_address = told
        return told

    async def _reach(self, address: str) -> None:
        self._address = address
        self.heard = False
        try:
            self._streams = await reach(address, redis_url=self._settings.redis_url)
            self._reader = decrypting(self._streams.reader(self._key), keyring_in(self._asking.client), self._key)
        except StreamsUnavailable as error:
            self.trouble = str(error)
        else:
            self.trouble = ""

    async def aclose(self) -> None:
        """It may be read again, from the oldest item that is kept."""
        reader, streams, self._reader, self._streams = self._reader, self._streams, None, None
        if reader is not None:
            await reader.close()
        if streams is not None:
            await streams.close()


class ToldEnds:
    """What a stream tells of the end of one reply."""

    def __init__(self, reply_id: str) -> None:
        self._reply_id = reply_id
        self._begun = False
        """Whether the reply is the newest one that was begun: of others nothing is told."""

    def is_made(self, reply_id: str) -> None:
        """The reply is being made, perhaps as a part of that one."""
        self._reply_id, self._begun = reply_id, True

    def hear(self, line: bytes) -> bool:
        """Whether it may have ended by then, or wait for somebody."""
        if SETTLED.encode() not in line:
            return False
        item = decode(line)
        if item is None or item.kind != "wake" or item.name != SETTLED:
            return False
        if not item.text:
            return self._begun
        before, self._begun = self._begun, item.text == self._reply_id
        return before and not self._begun
