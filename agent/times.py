"""Times as text, from milliseconds that were given: no clock is read here."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ms: int) -> str:
    """`2026-11-21T09:30:00.250+00:00`."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")
