"""Times as text, from milliseconds that were given: no clock is read here.

Estimates of tokens, and how the provider's own numbers correct them. Integers only: workflow code decides on them.

A message's tokens are counted once, by the activity that made it (`activities.context.tokens`), and recorded. What
the next
model call will read is then `reported + corrected(since, reported, estimated)`: what the provider said of the last call
(`reported`, cached tokens included), and the estimates of what came since, scaled by how far the estimate of that
last call's whole input (`estimated`) was off. So the error of the estimator counts for the newest messages alone.
"""

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


LARGEST_FACTOR = 3
"""Past it the report says something else than how the estimator errs: a compatible server that reports nonsense, or
one that leaves out what it cached."""

TRUSTED_TOKENS = 2_000
"""Added on both sides of the comparison. In a short context the difference is mostly what a provider adds to every
call, which says nothing about text: without this, a few hundred hidden tokens would double every estimate."""

BYTES_PER_TOKEN = 3
"""Of text from outside, which no activity has counted yet. English has more bytes in a token, so this errs upwards."""


def corrected(estimate: int, reported: int, estimated: int) -> int:
    """`estimate` scaled as the last call's report was to its estimate, rounded up; as it is when there was no report,
    or none that can be believed."""
    if not believable(reported, estimated):
        return estimate
    return -(-estimate * (reported + TRUSTED_TOKENS) // (estimated + TRUSTED_TOKENS))


def believable(reported: int, estimated: int) -> bool:
    """Whether a provider's count may be that of what the worker counted as `estimated`. It may add to every call what
    nobody here sees, and leave nothing out."""
    if reported <= 0 or estimated <= 0:
        return False
    return estimated <= LARGEST_FACTOR * reported and reported <= LARGEST_FACTOR * estimated + TRUSTED_TOKENS


def outside_estimate(utf8_bytes: int) -> int:
    """Tokens of a text of which only the length is known, rounded up."""
    return -(-utf8_bytes // BYTES_PER_TOKEN)
