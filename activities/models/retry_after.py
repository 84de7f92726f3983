"""How long a provider asks us to wait, read from the headers of its answer."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_SECONDS = 3600.0
"""A longer wait is cut to this: a clock that is off, or a hostile server, must not park a session for days."""


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, 0 to 3600; None without a header that can be read. `now` has a zone.

    `retry-after-ms` wins over `retry-after`, which holds seconds or an HTTP date (RFC 9110, section 10.2.3).
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return within_limits(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, now)
    return None if seconds is None else within_limits(seconds)


def within_limits(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS)


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _until(value: str | None, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(value or "")
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - now).total_seconds()
