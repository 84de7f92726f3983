"""Computes what tokens cost, by an operator's list: prices change and differ by contract, so that those that ship with
us count where the operator says so, and below the operator's own.

They are those of the package genai-prices: dollars, as its makers have looked them up on the day of
`model_rules.made_on`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.context.prompt_hooks import HookSetupError
from longhaul.activities.models.requests.model_rules import AT_BEDROCK, made_on, plain_name, price_rows
from longhaul.agent.values.budget import Price
from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.spec.profiles import ModelProfile

PACKAGE = "genai-prices"


def packaged_price(model: str) -> Price | None:
    """By a server's own name of a model, or a gateway's; None for one that the list does not know."""
    names = dict.fromkeys((model, plain_name(model), plain_name(model).replace(".", "-")))
    at_bedrock = AT_BEDROCK.match(model) is not None
    for name in names:
        fitting = [row for row in price_rows() if _fits(row["match"], name)]
        fitting.sort(key=lambda row: (row["of"] == "aws") is not at_bedrock)
        if fitting:
            return _price_today(fitting[0])
    return None


def _price_today(row: Mapping[str, Any]) -> Price:
    today = datetime.now(UTC).date().isoformat()
    dated = [each for each in row["from"] if each.get("since", "") <= today] or row["from"][:1]
    told = {name: value for name, value in dated[-1].items() if name != "since"}
    return Price.model_validate({**told, "source": row.get("source") or f"{PACKAGE}, {made_on()}"})


def _fits(clause: Mapping[str, Any], name: str) -> bool:
    """Whether a name is meant, by the package's own forms."""
    ((form, wanted),) = clause.items()
    if isinstance(wanted, list):
        fits = [_fits(each, name) for each in wanted]
        return any(fits) if form == "or" else all(fits)
    text, lower = str(wanted), name.lower()
    match form:
        case "regex":
            return re.search(text, name) is not None
        case "equals":
            return lower == text.lower()
        case "starts_with":
            return lower.startswith(text.lower())
        case "ends_with":
            return lower.endswith(text.lower())
        case _:
            return text.lower() in lower


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
    known, packaged = _load_prices(path)
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
    return True


def _load_prices(path: Path) -> tuple[dict[str, Price], bool]:
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
