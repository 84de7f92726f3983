"""Payloads above a limit go by reference: the SDK's external storage over a blob store, kept apart by session.

Written by whoever sends (a client, a worker), read by whoever receives. A blob that can't be had is no error here, for
one would fail the workflow task, for ever, before our code could refuse the letter: it becomes a payload that says so.
"""

import asyncio
from collections.abc import Sequence

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ExternalStorage,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
)

from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, NoBlob, is_key, key_of

DRIVER = "longhaul"
BY_REFERENCE_BYTES = 256 * 1024
"""Payloads from here on go by reference; pages of queries are smaller."""

BLOBS_AWAY = "what this session stores outside of its history can't be reached"
"""How the sentence begins of a session that needs a blob while its store is away: it goes on by itself."""
MISSING = b"longhaul/blob-missing"
"""Encoding of a payload whose blob can't be had; its data says why."""
KEY = "longhaul-blob"
"""Metadata of what came by reference, had or not: the blob's key, empty for one that no session may have."""

WITH_KEY = b"key:"
"""Before the id of a key, in the same place: of what was encrypted, and can't be decrypted."""


class BlobDriver(StorageDriver):
    """The blobs of one session, by its prefix; those of nobody without one.

    Whose they are follows from the serialization context on both sides, so that what is written is what the reader
    looks for; the SDK's own store context names another reader for what a child session returns.
    """

    def __init__(self, blobs: BlobStore, prefix: str | None = None) -> None:
        self.blobs = blobs
        self._prefix = prefix

    def name(self) -> str:
        return DRIVER

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Raises BlobsUnavailable."""
        del context
        return [await self._put(payload.SerializeToString(deterministic=True)) for payload in payloads]

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """For what is absent, damaged or somebody else's, a payload of encoding MISSING. Raises BlobsUnavailable only:
        then nobody knows what is there, and the task is tried again."""
        del context
        return list(await asyncio.gather(*(self._get(claim.claim_data.get("key", "")) for claim in claims)))

    async def _put(self, data: bytes) -> StorageDriverClaim:
        if self._prefix is None:
            raise BlobsUnavailable(f"a value of {len(data) // 1000} kB belongs to no session, and can't be stored")
        key = key_of(self._prefix, data)
        try:
            await self.blobs.put(key, data)
        except ValueError as error:
            raise BlobsUnavailable(str(error)) from error
        return StorageDriverClaim({"key": key})

    async def _get(self, key: str) -> Payload:
        if self._prefix is None or not is_key(key) or not key.startswith(f"{self._prefix}/"):
            return missing("", "it names something that was not stored for this session")
        try:
            payload = Payload.FromString(await self.blobs.get(key))
        except NoBlob as error:
            return missing(key, str(error))
        except BlobsUnavailable as error:
            raise BlobsUnavailable(f"{BLOBS_AWAY}: {error}") from error
        except DecodeError:
            return missing(key, f"the blob {key} is no value that was sent")
        payload.metadata[KEY] = key.encode()
        return payload


def storage_of(blobs: BlobStore, prefix: str | None = None, from_bytes: int = BY_REFERENCE_BYTES) -> ExternalStorage:
    return ExternalStorage(drivers=[BlobDriver(blobs, prefix)], payload_size_threshold=from_bytes)


def missing(key: str, why: str) -> Payload:
    return Payload(metadata={"encoding": MISSING, KEY: key.encode()}, data=why.encode("utf-8", "replace"))
