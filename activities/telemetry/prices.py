"""Computes what tokens cost, by an operator's list: prices change and differ by contract, so that those of a package
count where the operator says so, and below the operator's own."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.activities.telemetry.packaged_prices import PACKAGE, is_installed, load, packaged_price
from longhaul.agent.values.budget import Price
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.profiles import ModelProfile


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
