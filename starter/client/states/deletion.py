"""The account of a deletion: what there was of a session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deleted:
    """What was deleted of a session."""

    terminated: bool
    """It was open until then."""
    runs: int
    """Histories on the server."""
    record: bool
    """In the state store."""
    blobs: int
    offloaded: int
    """Files, and keys in Redis."""
    stream: bool = False
    """The live stream."""
    snapshots: int = 0
    """Clones of the files of its workspace."""
    key: bool = False
    """What it was encrypted with: copies that lie elsewhere, as in backups, can't be read any more."""

    @property
    def anything(self) -> bool:
        return (
            self.terminated
            or self.record
            or self.stream
            or self.key
            or self.runs + self.blobs + self.offloaded + self.snapshots > 0
        )
