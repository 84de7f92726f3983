"""What tokens cost, by an operator's list: none comes along, for prices change and differ by contract."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, TypeAdapter, ValidationError

from activities.prompt_hooks import HookSetupError
from agent.messages import Usage
from agent.values import Value

MILLION = 1_000_000


class BadPrices(HookSetupError):
    """The operator's mistake: a list of prices that can't be read."""


class Price(Value):
    """Of a million tokens, in whatever money the operator counts."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of input that was read from the provider's cache; None: as other input."""
    cache_write: float | None = Field(default=None, ge=0)

    def of(self, usage: Usage) -> float:
        """Input tokens are given with those that were cached or are written to the cache."""
        cached, written = usage.cache_input_tokens, usage.cache_creation_input_tokens
        plain = max(usage.input_tokens - cached - written, 0)
        total = plain * self.input + usage.output_tokens * self.output
        total += cached * (self.input if self.cached is None else self.cached)
        total += written * (self.input if self.cache_write is None else self.cache_write)
        return total / MILLION


@dataclass(frozen=True)
class Prices:
    known: dict[str, Price]
    """By the beginning of a model's name, as providers report it."""

    def cost(self, model: str, usage: Usage) -> float | None:
        """None for a model that the list does not know. Of several that fit, the longest name counts."""
        fitting = [name for name in self.known if model.startswith(name)]
        return self.known[max(fitting, key=len)].of(usage) if fitting else None


_LIST = TypeAdapter(dict[str, Price])


def load_prices(path: Path | None) -> Prices | None:
    """TOML, a table to each model. None: nobody wants to know. Raises BadPrices."""
    if path is None:
        return None
    try:
        return Prices(_LIST.validate_python(tomllib.loads(path.read_text(encoding="utf-8"))))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPrices(f"LONGHAUL_PRICES: {str(path)!r} can't be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadPrices(
            f"LONGHAUL_PRICES: {str(path)!r}: {place}: {first['msg']}; a table is [model], with input and output per "
            "million tokens, and cached and cache_write where they differ"
        ) from None
