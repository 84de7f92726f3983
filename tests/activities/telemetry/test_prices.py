"""What tokens cost by an operator's list."""

from pathlib import Path

import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price

from longhaul.activities.telemetry.prices import BadPrices, Prices, load_prices
from longhaul.agent.values.budget import Price
from longhaul.agent.values.conversation.messages import Usage

LIST = """
["claude-sea"]
input = 3
output = 15
cached = 0.3
cache_write = 3.75

["claude-sea-small"]
input = 1
output = 5
"""


def listed(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def test_cached_tokens_have_a_price_of_their_own(tmp_path: Path) -> None:
    prices = load_prices(listed(tmp_path, LIST))
    usage = Usage(
        input_tokens=1_000_000, output_tokens=100_000, cache_input_tokens=400_000, cache_creation_input_tokens=200_000
    )

    assert prices is not None
    assert prices.cost("claude-sea-20261121", usage) == pytest.approx(0.4 * 3 + 0.1 * 15 + 0.4 * 0.3 + 0.2 * 3.75)


def test_the_longest_name_that_fits_counts_and_an_unknown_model_costs_nothing_that_is_known() -> None:
    prices = Prices({"claude-sea": Price(input=3, output=15), "claude-sea-small": Price(input=1, output=5)})

    assert prices.cost("claude-sea-small-2", Usage(input_tokens=1_000_000)) == 1
    assert prices.cost("claude-sea-2", Usage(input_tokens=1_000_000, cache_input_tokens=1_000_000)) == 3
    assert prices.cost("gpt-shore", Usage(input_tokens=1_000_000)) is None


def test_without_a_list_nobody_wants_to_know() -> None:
    assert load_prices(None) is None


def test_a_packages_prices_count_below_the_operators_own(tmp_path: Path) -> None:
    alone = load_prices(Path("genai-prices"))
    beside = load_prices(listed(tmp_path, 'others = "genai-prices"\n["claude-opus-4-8"]\ninput = 2\noutput = 9\n'))
    assert alone is not None
    assert beside is not None

    opus, none = alone.of("claude-opus-4-8"), alone.of("our-own-deployment")
    assert opus is not None
    assert (opus.input, opus.output, opus.cached, opus.cache_write, none) == (5, 25, 0.5, 6.25, None)
    assert opus.source.startswith("genai-prices")
    assert beside.of("claude-opus-4-8") == Price(input=2, output=9)
    assert beside.of("claude-haiku-4-5-20251001") == alone.of("claude-haiku-4-5")


@pytest.mark.parametrize(
    ("model", "paid"),
    [
        ("us.amazon.nova-pro-v1:0", (0.8, 3.2, 0.2)),
        ("amazon.nova-micro-v1:0", (0.035, 0.14, 0.00875)),
        ("global.anthropic.claude-opus-4-8", (5, 25, 0.5)),
        ("us.anthropic.claude-opus-4-8-v1:0", (5.5, 27.5, 0.55)),
    ],
)
def test_what_bedrock_takes_is_known_by_its_names(model: str, paid: tuple[float, ...]) -> None:
    prices = load_prices(Path("genai-prices"))
    assert prices is not None
    price = prices.of(model)

    assert price is not None
    assert (price.input, price.output, price.cached) == paid


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        ("gemini-2.5-pro", Usage(input_tokens=200_000, output_tokens=1_000), 0.2 * 1.25 + 0.001 * 10),
        ("gemini-2.5-pro", Usage(input_tokens=200_001, output_tokens=1_000), 0.200001 * 2.5 + 0.001 * 15),
        ("gpt-6.1-sol", Usage(input_tokens=272_000, cache_input_tokens=200_000), 0.072 * 2 + 0.2 * 0.1),
        ("gpt-6.2-sol", Usage(input_tokens=300_000, output_tokens=10_000), 0.3 * 4 + 0.01 * 15),
        ("claude-opus-5-5", Usage(input_tokens=100_000, cache_creation_input_tokens=90_000), 0.01 * 4 + 0.09 * 5),
        (
            "claude-opus-5-5",
            Usage(input_tokens=100_000, cache_creation_input_tokens=90_000, cache_creation_1h_input_tokens=60_000),
            0.01 * 4 + 0.03 * 5 + 0.06 * 8,
        ),
        ("anthropic/claude-opus-5.5", Usage(output_tokens=1_000_000), 20),
        ("openrouter/openai/gpt-6.1-sol", Usage(output_tokens=1_000_000), 10),
    ],
)
def test_a_call_costs_what_its_length_and_its_cache_cost(model: str, usage: Usage, dollars: float) -> None:
    prices = load_prices(Path("genai-prices"))
    assert prices is not None

    assert prices.cost(model, usage) == pytest.approx(dollars)


def test_the_list_says_what_the_package_says() -> None:
    """At half a million tokens of input, and at a thousand."""
    prices = load_prices(Path("genai-prices"))
    assert prices is not None
    asked = {
        "anthropic": "claude-opus-5-5",
        "openai": "gpt-5.4",
        "google": "gemini-3.1-pro-preview",
        "x-ai": "grok-4.7",
    }
    for provider, model in asked.items():
        for tokens in (1_000, 500_000):
            theirs = calc_price(TheirUsage(input_tokens=tokens, output_tokens=7_000), model, provider_id=provider)
            ours = prices.cost(model, Usage(input_tokens=tokens, output_tokens=7_000))
            assert ours == pytest.approx(float(theirs.total_price)), model


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[sea]\ninput = 3", "sea.output: Field required; a table is [model]"),
        ("[sea]\ninput = -3\noutput = 1", "sea.input: Input should be greater than or equal to 0"),
        ("[sea]\ninput = 3\noutput = 1\ncache = 1", "sea.cache: Extra inputs are not permitted"),
        ("[sea", "can't be read"),
        ('others = "litellm"', "others: 'litellm' is no list of prices; write 'genai-prices'"),
    ],
)
def test_a_list_that_cannot_be_followed_is_a_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(BadPrices) as refused:
        load_prices(listed(tmp_path, text))

    assert str(refused.value).startswith("LONGHAUL_PRICES: ")
    assert complaint in str(refused.value)
