"""Sets up how a worker is watched. Loads OpenTelemetry, or what writes JSON, when it is asked to, and nothing
otherwise.
"""

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalio.worker import Interceptor

from longhaul.activities.masker import Masker
from longhaul.activities.models.profiles import KeyPlace
from longhaul.activities.models.providers import Providers
from longhaul.activities.telemetry.operator_lines import LOGGER as OPERATORS
from longhaul.agent.values.spec.profiles import ModelProfile


def watched_providers(
    masker: Masker,
    places: Sequence[KeyPlace],
    counted_to: str,
    *,
    traced: bool,
    content: bool,
    profiles: Mapping[str, ModelProfile] | None = None,
) -> Providers:
    """What the worker calls models by. `counted_to`: where metrics go, `otlp` or `prometheus`; empty: nowhere."""
    if not (traced or counted_to):
        return Providers(places=places, profiles=profiles)
    if not traced:
        from longhaul.activities.telemetry.metrics import CountedProviders  # noqa: PLC0415  see above

        return CountedProviders(places=places, to=counted_to, profiles=profiles)
    from longhaul.activities.telemetry import spans  # noqa: PLC0415  see above

    return spans.providers(masker, places, counted_to, content=content, profiles=profiles)


def watching(masker: Masker, *, wanted: bool, content: bool) -> list[Interceptor]:
    """What the worker runs its activities through."""
    if not wanted:
        return []
    from longhaul.activities.telemetry import spans  # noqa: PLC0415  see above

    return [spans.activities(masker, content=content)]


def counting(
    prices: Path | None, *, wanted: bool, profiles: Mapping[str, ModelProfile] | None = None
) -> list[Interceptor]:
    """What counts for metrics; it has to be there once, on the worker. Raises BadPrices."""
    if not wanted:
        return []
    from longhaul.activities.telemetry.metrics import CountedActivities  # noqa: PLC0415  see above
    from longhaul.activities.telemetry.prices import load_prices  # noqa: PLC0415

    return [CountedActivities(load_prices(prices, profiles))]


def logged(*, wanted: bool, traced: bool) -> list[Interceptor]:
    """What writes a line for each attempt of an activity."""
    if not wanted:
        return []
    from longhaul.activities.telemetry.log_lines import LoggedActivities  # noqa: PLC0415  see above

    return [LoggedActivities(traced=traced)]


def begin_logs(level: str, *, structured: bool) -> None:
    """Of this process, on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    if structured:
        from longhaul.activities.telemetry import log_lines  # noqa: PLC0415  see above

        handler.setFormatter(log_lines.JsonLines())
        log_lines.without_details_in_words()
    else:
        handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    logging.basicConfig(level=level, handlers=[handler])
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(max(logging.getLevelNamesMapping()[level], logging.INFO))
    if level == "WARNING":
        # Approvals are no trouble, and yet what an operator wants to find here.
        logging.getLogger(OPERATORS).setLevel(logging.INFO)
    if level not in {"DEBUG", "NOTSET"} and (structured or level == "WARNING"):
        # A failed attempt is retried or told to the session; the SDK's traceback of each would bury what matters.
        logging.getLogger("temporalio.activity").setLevel(logging.ERROR)


_TALKATIVE = ("anthropic", "openai", "httpx", "httpx2", "httpcore", "httpcore2")
"""Whole requests, with keys and all that is said in them, stand in their lines for debugging."""
