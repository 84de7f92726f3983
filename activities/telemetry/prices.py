"""Computes what tokens cost, by an operator's list: prices change and differ by contract, so that those of a package
count where the operator says so, and below the operator's own.

Prices of the package genai-prices, where an operator wants them: dollars, as its makers have looked them up.

It takes some seconds and 100 MB to load, so nothing does that unasked.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.activities.models.requests.model_rules import AT_BEDROCK
from longhaul.agent.values.budget import Price
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.profiles import ModelProfile

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


class BadPrices(HookSetupError):
    """The operator's mistake: a list of prices that can't be read."""


@dataclass(frozen=True)
class Prices:
    known: dict[str, Price]
    """By the beginning of a model's name, as providers report it."""
    packaged: bool = False
    """Whether a model that is not among them has the price of the package."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """None for a model that the list does not know."""
        price = self.of(model)
        return None if price is None else price.of(usage)

    def of(self, model: str) -> Price | None:
        """By the server's own name of a model, or None. Of several that fit, the longest name counts."""
        fitting = [name for name in self.known if model.startswith(name)]
        if fitting:
            return self.known[max(fitting, key=len)]
        return packaged_price(model) if self.packaged else None


_LIST = TypeAdapter(dict[str, Price])


def load_prices(path: Path | None, profiles: Mapping[str, ModelProfile] | None = None) -> Prices | None:
    """TOML, a table to each model, and what the operator's profiles say beside it. None: nobody wants to know. Raises
    BadPrices."""
    of_profiles = _of_profiles(profiles or {})
    if path is None:
        return Prices(of_profiles) if of_profiles else None
    if str(path) == PACKAGE:
        return Prices(of_profiles, packaged=_checked(PACKAGE))
    known, packaged = _listed(path)
    return Prices({**of_profiles, **known}, packaged)


def _of_profiles(profiles: Mapping[str, ModelProfile]) -> dict[str, Price]:
    """By the servers' own names of the models: replies tell those alone."""
    found: dict[str, Price] = {}
    for name, profile in profiles.items():
        if profile.prices is None:
            continue
        if found.setdefault(profile.model, profile.prices) != profile.prices:
            raise BadPrices(
                f"LONGHAUL_MODELS: {name}.prices: another profile has other prices for {profile.model!r}, and replies "
                "tell the model alone; write the same into both"
            )
    return found


def _checked(others: object) -> bool:
    """Whether all other models have the package's prices."""
    if others is None:
        return False
    if others != PACKAGE:
        raise BadPrices(f"LONGHAUL_PRICES: others: {others!r} is no list of prices; write {PACKAGE!r}, or leave it out")
    if not is_installed():
        raise BadPrices(
            f"LONGHAUL_PRICES: {PACKAGE!r} is not installed on the worker; it comes with an extra: pip install "
            "'longhaul-agents[ai]'"
        )
    load()
    return True


def _listed(path: Path) -> tuple[dict[str, Price], bool]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        packaged = _checked(tables.pop("others", None))
        return _LIST.validate_python(tables), packaged
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPrices(f"LONGHAUL_PRICES: {str(path)!r} can't be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadPrices(
            f"LONGHAUL_PRICES: {str(path)!r}: {place}: {first['msg']}; a table is [model], with input and output per "
            "million tokens, and cached and cache_write where they differ"
        ) from None
