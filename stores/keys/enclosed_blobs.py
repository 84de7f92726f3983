"""Puts bytes among a session's blobs in an envelope of its key, and reads them back."""

from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, key_of
from longhaul.stores.keys.envelopes import disclosed, enclosed
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.keys import KeysUnavailable


async def put_enclosed(blobs: BlobStore, keys: Keyring | None, prefix: str, data: bytes) -> str:
    """Where they lie; without keys as they are. Raises NoKey, BlobsUnavailable."""
    try:
        kept = data if keys is None else await enclosed(keys, prefix, data)
    except KeysUnavailable as error:
        raise BlobsUnavailable(str(error)) from error
    key = key_of(prefix, kept)
    await blobs.put(key, kept)
    return key


async def get_disclosed(blobs: BlobStore, keys: Keyring | None, key: str) -> bytes:
    """What was put there. Raises NoBlob, NoKey, BlobsUnavailable."""
    try:
        return await disclosed(keys, key.rpartition("/")[0], await blobs.get(key))
    except KeysUnavailable as error:
        raise BlobsUnavailable(str(error)) from error
