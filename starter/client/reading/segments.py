"""Sealed segments as a client reads them: from the blob store that its own settings name."""

from temporalio.client import Client

from longhaul.agent.entries import Segment
from longhaul.starter.client.reading.history import HistoryUnreadable
from longhaul.starter.reach.connection import keyring_in, opened_blobs
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import BlobsUnavailable
from longhaul.stores.segments import DamagedSegment, Whole
from longhaul.stores.segments import Segments as InBlobs


class SealedSegments:
    """Reads from the store through which the client sends; else from one that is opened for each reading."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def read(self, segment: Segment) -> Whole:
        """Raises HistoryUnreadable."""
        async with opened_blobs(self._client, self._settings) as blobs:
            return await _read(InBlobs(blobs, keys=keyring_in(self._client)), blobs.place, segment)


async def _read(segments: InBlobs, place: str, segment: Segment) -> Whole:
    try:
        return await segments.read_whole(segment)
    except (DamagedSegment, BlobsUnavailable) as error:
        raise HistoryUnreadable(
            f"{error}. Here LONGHAUL_BLOBS leads to {place!r}; it must lead to the workers' blobs"
        ) from error
