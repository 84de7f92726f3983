"""Live streams with their lines encrypted: a batch of lines is one line, with the key of its session."""

from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.keys.envelopes import as_line, disclosed, enclosed, from_line
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.keys import KeysUnavailable, NoKey
from longhaul.stores.streams.streams import StreamReader, Streams, StreamsUnavailable


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
