"""Times as text, from milliseconds that were given: no clock is read here."""

from datetime import UTC, date, datetime, time, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def iso(at_ms: int) -> str:
    """`2026-11-21T09:30:00.250+00:00`. Of two such texts the earlier time is the smaller one."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")


def moment(given: object) -> str:
    """A time as people and files give it, spelt as by `iso`. Raises ValueError.

    A plain date is the end of that day; without a zone it is UTC.
    """
    if isinstance(given, str):
        given = _read(given)
    if isinstance(given, date) and not isinstance(given, datetime):
        given = datetime.combine(given, time.max, tzinfo=UTC)
    if not isinstance(given, datetime):
        raise ValueError(f"{given!r} is no time; write a date as in 2026-12-31, or 2026-12-31T18:00Z")
    zoned = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
    try:
        return zoned.astimezone(UTC).isoformat(timespec="milliseconds")
    except OverflowError:
        raise ValueError(f"{given} is no time that could be reached") from None


def _read(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is no time; write a date as in 2026-12-31, or 2026-12-31T18:00Z") from None
