"""The blobs as a client uses them: written only where workers read, and what is missing is explained."""

from collections.abc import Awaitable, Callable

from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, NoBlob

Why = Callable[[], Awaitable[str]]


class TheirBlobs:
    """Until `ask_by` is called, and after `are_our_own`, just what is inside."""

    def __init__(self, inside: BlobStore) -> None:
        self._inside = inside
        self._why_others: Why | None = None
        self._certain = False

    def ask_by(self, why_others: Why) -> None:
        """`why_others`: why workers keep theirs elsewhere; empty when they don't, or nobody tells."""
        self._why_others = why_others

    def are_our_own(self) -> None:
        """This process is a worker: where it keeps them is where they are."""
        self._why_others = None

    @property
    def place(self) -> str:
        return self._inside.place

    async def put(self, key: str, data: bytes) -> None:
        """Raises BlobsUnavailable, also for a place where no worker would find it."""
        if not self._certain and self._why_others is not None:
            if why := await self._why_others():
                raise BlobsUnavailable(why)
            self._certain = True
        await self._inside.put(key, data)

    async def get(self, key: str) -> bytes:
        try:
            return await self._inside.get(key)
        except NoBlob as error:
            why = await self._why_others() if self._why_others is not None else ""
            raise NoBlob(f"{error}; {why}") if why else error from None

    async def keys(self, prefix: str) -> list[str]:
        return await self._inside.keys(prefix)

    async def delete_prefix(self, prefix: str) -> int:
        return await self._inside.delete_prefix(prefix)

    async def mark(self, new: str = "") -> str:
        return await self._inside.mark(new)

    async def close(self) -> None:
        await self._inside.close()
