"""Says how long it counts what was found out about a call before it runs: what it reads, writes and reaches."""

FACTS_LAST_MS = 60_000
"""Findings older than this are made again before an approved call runs: files change while people think."""


def is_too_old(found_at: int, at: int) -> bool:
    """Both in milliseconds since 1970: the world may have changed, and is to be looked at again."""
    return at - found_at > FACTS_LAST_MS
