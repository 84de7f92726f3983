"""Reads from the headers of a provider's answer how long it asks us to wait."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

LONGEST_SECONDS = 3600.0
"""A longer wait is cut to this: a clock that is off, or a hostile server, must not park a session for days."""

_RESET = re.compile(r"(?:x-|anthropic-)?ratelimit(?:-[a-z-]+)?-reset(?:-[a-z-]+)?")
"""`x-ratelimit-reset-requests` (OpenAI, Azure, Groq), `anthropic-ratelimit-tokens-reset`, `x-ratelimit-reset`."""
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
"""`6m0s`, `7.66s`, `12ms`."""
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_FIRST_MOMENT = 1e8
"""A number from here on is no pause but a moment in seconds since 1970, and above the next in milliseconds."""
_FIRST_MILLISECOND = 1e11


def read_retry_after(headers: Mapping[str, str], now: datetime, *, limited: bool = False) -> float | None:
    """Seconds to wait, 0 to 3600; None without a header that can be read. `now` has a zone.

    `retry-after-ms` wins over `retry-after`, which holds seconds or an HTTP date (RFC 9110, section 10.2.3), and both
    over the moments at which limits are full again, which are longer than need be. `limited`: those count. Moments are
    the provider's, and so is its `date`, which takes the place of `now`: our clock may be hours off.
    """
    now += timedelta(seconds=_until(headers.get("date"), now) or 0.0)
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return within_limits(milliseconds / 1000)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None:
        seconds = _until(value, now)
    if seconds is None and limited:
        seconds = _until_reset(headers, now)
    return None if seconds is None else within_limits(seconds)


def within_limits(seconds: float) -> float:
    return min(max(seconds, 0.0), LONGEST_SECONDS)


def _until_reset(headers: Mapping[str, str], now: datetime) -> float | None:
    """The longest of the limits that are used up; of all, where none says that it is."""
    resets = {
        name: seconds
        for name, value in headers.items()
        if _RESET.fullmatch(name) and (seconds := _pause(value, now)) is not None
    }
    used_up = [resets[name] for name in resets if _number(headers.get(name.replace("reset", "remaining"))) == 0]
    return max(used_up or resets.values(), default=None)


def _pause(value: str, now: datetime) -> float | None:
    number = _number(value)
    if number is None:
        return _duration(value) or _until(value, now) or _until_iso(value, now)
    if number < _FIRST_MOMENT:
        return number
    return (number if number < _FIRST_MILLISECOND else number / 1000) - now.timestamp()


def _duration(value: object) -> float | None:
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) and value.strip() else None
    if found is None:
        return None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part)


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
    return _from(now, moment)


def _until_iso(value: str, now: datetime) -> float | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return _from(now, moment)


def _from(now: datetime, moment: datetime) -> float:
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
