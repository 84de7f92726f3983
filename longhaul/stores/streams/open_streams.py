"""From a setting, or from what a session says, to its live streams.

Live streams with their lines encrypted: a batch of lines is one line, with the key of its session.
"""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.keys.keyring import Keyring, KeysUnavailable, NoKey, as_line, disclosed, enclosed, from_line
from longhaul.stores.streams.stream_directory import DirectoryStreams
from longhaul.stores.streams.streams import BadStreamsSetting, StreamReader, Streams, StreamsUnavailable

FOLDER = "streams"
NO_STREAM = "the session's worker has no live stream, or none that this client could read"


def open_streams(redis_url: str, *, data_dir: Path) -> Streams:
    """A worker's: in Redis when it has one, else in its data directory. Raises BadStreamsSetting."""
    if redis_url:
        from longhaul.stores.streams.redis_streams import RedisStreams  # noqa: PLC0415  only who uses Redis loads it

        return RedisStreams(redis_url)
    return DirectoryStreams(data_dir.absolute() / FOLDER)


async def reach(address: str, *, redis_url: str = "") -> Streams:
    """What stands at the address that a session tells. Raises StreamsUnavailable when that is not reached from here.

    An address has no password, and may be a name that only workers know: where the client has a Redis of its own
    setting, that is taken to be the same.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme == "file":
            directory = DirectoryStreams(Path(unquote(parts.path)))
            await directory.check_is(parse_qs(parts.query).get("id", [""])[0])
            return directory
        if parts.scheme.partition("+")[0] in ("redis", "rediss"):
            streams = open_streams(redis_url or address, data_dir=Path())
            try:
                await streams.check()
            except BaseException:
                await streams.close()
                raise
            return streams
    except (BadStreamsSetting, ValueError) as error:
        raise StreamsUnavailable(f"the session's live stream has an address that can't be read: {error}") from error
    raise StreamsUnavailable(NO_STREAM)


class EncryptedStreams:
    def __init__(self, inside: Streams, keys: Keyring) -> None:
        self._inside, self._keys = inside, keys

    @property
    def address(self) -> str:
        return self._inside.address

    async def append(self, key: str, lines: bytes) -> None:
        try:
            envelope = await enclosed(self._keys, _owner(key), lines)
        except (KeysUnavailable, NoKey) as error:
            raise StreamsUnavailable(str(error)) from error
        await self._inside.append(key, as_line(envelope) + b"\n")

    def reader(self, key: str) -> StreamReader:
        return decrypting(self._inside.reader(key), self._keys, key)

    async def check(self) -> None:
        await self._inside.check()

    async def delete(self, key: str) -> bool:
        return await self._inside.delete(key)

    async def close(self) -> None:
        await self._inside.close()


class EncryptedReader:
    """Leaves out what it can't decrypt: no session depends on it."""

    def __init__(self, inside: StreamReader, keys: Keyring, owner: str) -> None:
        self._inside, self._keys, self._owner = inside, keys, owner

    async def read(self, seconds: float, *, gently: bool = False) -> list[bytes]:
        found = list[bytes]()
        for line in await self._inside.read(seconds, gently=gently):
            try:
                found += (await disclosed(self._keys, self._owner, from_line(line))).splitlines()
            except NoKey:
                continue
            except KeysUnavailable as error:
                raise StreamsUnavailable(str(error)) from error
        return found

    async def close(self) -> None:
        await self._inside.close()


def decrypting(reader: StreamReader, keys: Keyring | None, key: str) -> StreamReader:
    """Reads the stream of that key, encrypted or not; without keys as it is, where nobody has encrypted."""
    return reader if keys is None else EncryptedReader(reader, keys, _owner(key))


def _owner(key: str) -> str:
    namespace, _, workflow_id = key.partition("/")
    return session_prefix(namespace, workflow_id)
