"""Prices of the package genai-prices, where an operator wants them: dollars, as its makers have looked them up.

It takes some seconds and 100 MB to load, so nothing does that unasked.
"""

from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from longhaul.activities.context.context_windows import AT_BEDROCK
from longhaul.agent.values.budget import Price

PACKAGE = "genai-prices"
_MODULE = "genai_prices"


def is_installed() -> bool:
    return find_spec(_MODULE) is not None


def load() -> None:
    """Here and now: a reply that is prepared would wait for it, and all others of its worker."""
    packaged_price("")


def packaged_price(model: str) -> Price | None:
    """By the server's own name of a model; None for one that the package does not know. Of prices that rise with the
    length of a prompt the highest, so that a budget is not passed."""
    found = _found(model)
    if found is None:
        return None
    prices = found.get_prices(datetime.now(UTC))
    told = {name: _highest(getattr(prices, field, None)) for name, field in _FIELDS.items()}
    if told["input"] is None or told["output"] is None:
        return None
    return Price.model_validate({**told, "source": f"{PACKAGE} {version(PACKAGE)}"})


def _found(model: str) -> Any:
    """Amazon's own models, and others at its prices, are not found by their names alone."""
    snapshot: Any = import_module(f"{_MODULE}.data_snapshot").get_snapshot()
    for provider in ("aws", None) if AT_BEDROCK.match(model) else (None, "aws"):
        try:
            return snapshot.find_provider_model(model, None, provider, None)[1]
        except LookupError:
            continue
    return None


_FIELDS = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}


def _highest(price: Any) -> float | None:
    if price is None:
        return None
    tiers = getattr(price, "tiers", ())
    return max(float(each) for each in (getattr(price, "base", price), *(tier.price for tier in tiers)))
