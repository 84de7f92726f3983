"""How a worker is watched. Loads OpenTelemetry, or what writes JSON, when it is asked to, and nothing otherwise."""

import logging
import sys
from pathlib import Path

from temporalio.worker import Interceptor

from activities.masking import Masker
from activities.models.providers import Providers


def watched_providers(masker: Masker, *, wanted: bool, content: bool) -> Providers:
    """What the worker calls models by."""
    if not wanted:
        return Providers()
    from activities.telemetry import spans  # noqa: PLC0415  see above

    return spans.providers(masker, content=content)


def watching(masker: Masker, *, wanted: bool, content: bool) -> list[Interceptor]:
    """What the worker runs its activities through."""
    if not wanted:
        return []
    from activities.telemetry import spans  # noqa: PLC0415  see above

    return [spans.activities(masker, content=content)]


def counting(prices: Path | None, *, wanted: bool) -> list[Interceptor]:
    """What counts for metrics; it has to be there once, on the worker. Raises BadPrices."""
    if not wanted:
        return []
    from activities.telemetry.counting import CountedActivities  # noqa: PLC0415  see above
    from activities.telemetry.prices import load_prices  # noqa: PLC0415

    return [CountedActivities(load_prices(prices))]


def logged(*, wanted: bool, traced: bool) -> list[Interceptor]:
    """What writes a line for each attempt of an activity."""
    if not wanted:
        return []
    from activities.telemetry.logging_attempts import LoggedActivities  # noqa: PLC0415  see above

    return [LoggedActivities(traced=traced)]


def begin_logs(level: str, *, structured: bool) -> None:
    """Of this process, on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    if structured:
        from activities.telemetry import log_lines  # noqa: PLC0415  see above

        handler.setFormatter(log_lines.JsonLines())
        log_lines.without_details_in_words()
    else:
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.getLevelNamesMapping()[level], logging.INFO))
    if level not in {"DEBUG", "NOTSET"} and (structured or level == "WARNING"):
        # A failed attempt is retried or told to the session; the SDK's traceback of each would bury what matters.
        logging.getLogger("temporalio.activity").setLevel(logging.ERROR)


_TALKATIVE = ("anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2")
"""Whole requests, with keys and all that is said in them, stand in their lines for debugging."""
