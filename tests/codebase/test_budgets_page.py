"""The page about budgets: its agent file is one, and its prices are read.

`tests/workflows/steering/test_budgets.py` runs its program."""

import re
import tomllib
from pathlib import Path

from longhaul.activities.telemetry.prices import load_prices
from longhaul.agent.values.spec.agent_spec import AgentSpec

PAGE = (Path(__file__).parents[2] / "docs" / "agents" / "budgets.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_agent_file_of_the_page_is_one() -> None:
    spec = AgentSpec.model_validate(tomllib.loads(blocks("toml")[0]))

    assert spec.budget is not None
    assert spec.budget.told() == {
        "tokens": 2_000_000,
        "cost": 2.5,
        "calls": 200,
        "steps": 100,
        "seconds": 14_400,
    }


def test_the_prices_of_the_page_are_read_with_their_date_and_source(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(blocks("toml")[1], encoding="utf-8")

    prices = load_prices(file)

    assert prices is not None
    price = prices.of("claude-sonnet-4-5-20260101")
    assert price is not None
    assert (str(price.as_of), price.source) == ("2026-11-23", "https://www.anthropic.com/pricing")
