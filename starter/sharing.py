"""Workers on several hosts: what they have to share, seen to before one of them starts."""

from activities.stores.opening import why_not_shared
from starter.settings import Settings


class Refusal(Exception):
    """Why this worker does not start, and the line that mends it."""


def check_shared(settings: Settings) -> None:
    """Raise Refusal for a store or blobs of this host alone, where LONGHAUL_SHARED says that several hosts work."""
    if not settings.shared:
        return
    if why := why_not_shared(settings.store):
        raise Refusal(why)
    if not settings.blobs:
        raise Refusal(
            "LONGHAUL_BLOBS is not set, so that large values would lie in the data directory of each host, but "
            "LONGHAUL_SHARED says that several hosts work: set redis://…, or a directory that all of them mount"
        )
