"""Computes what tokens cost, by an operator's list: none comes along, for prices change and differ by contract."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.price import Price
from longhaul.agent.values.spec.profiles import ModelProfile


class BadPrices(HookSetupError):
    """The operator's mistake: a list of prices that can't be read."""


@dataclass(frozen=True)
class Prices:
    known: dict[str, Price]
    """By the beginning of a model's name, as providers report it."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """None for a model that the list does not know."""
        price = self.of(model)
        return None if price is None else price.of(usage)

    def of(self, model: str) -> Price | None:
        """By the server's own name of a model, or None. Of several that fit, the longest name counts."""
        fitting = [name for name in self.known if model.startswith(name)]
        return self.known[max(fitting, key=len)] if fitting else None


_LIST = TypeAdapter(dict[str, Price])


def load_prices(path: Path | None, profiles: Mapping[str, ModelProfile] | None = None) -> Prices | None:
    """TOML, a table to each model, and what the operator's profiles say beside it. None: nobody wants to know. Raises
    BadPrices."""
    of_profiles = _of_profiles(profiles or {})
    if path is None:
        return Prices(of_profiles) if of_profiles else None
    return Prices({**of_profiles, **_listed(path)})


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


def _listed(path: Path) -> dict[str, Price]:
    try:
        return _LIST.validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPrices(f"LONGHAUL_PRICES: {str(path)!r} can't be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadPrices(
            f"LONGHAUL_PRICES: {str(path)!r}: {place}: {first['msg']}; a table is [model], with input and output per "
            "million tokens, and cached and cache_write where they differ"
        ) from None
