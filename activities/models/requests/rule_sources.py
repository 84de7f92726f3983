"""Writes the file of what models take, from packages whose makers look it up: genai-prices has windows and prices,
pydantic-ai has efforts, thinking and forced tools, the vendors' SDKs have names. `rule_overrides.toml` has the last
word.

`make rules` runs it: it writes `model_rules.json`, and lists what nobody has looked up for 60 days. With `--check` it
writes nothing, and fails where the file is not the one that it would write. Nothing of this is loaded by a worker.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from longhaul.activities.models.requests.model_rules import RULES_FILE, parse, plain_name

HERE = Path(__file__).parent
OVERRIDES = HERE / "rule_overrides.toml"
OLD_AFTER = timedelta(days=60)
PACKAGES = ("genai-prices", "pydantic-ai-slim", "anthropic", "openai")

_MAKERS = {
    **{name: name for name in ("anthropic", "openai", "google", "x-ai", "deepseek", "moonshotai", "zai", "mistral")},
    "minimax": "minimax",
    "meta": "meta",
    "cohere": "cohere",
    "aws": "amazon",
    "zhipuai": "zai",
}
"""By provider of genai-prices, in the order in which they are asked."""
_OTHER_WORK = (
    *("embed", "image", "tts", "whisper", "transcribe", "realtime", "moderation", "live", "voice", "ocr", "omni"),
    *("robotics", "nano-banana", "computer-use", "search", "cyber", "rosalind", "deep-research", "voxtral", "sonic"),
    *("ada", "babbage", "curie", "davinci", "ft:", "aya", "gemma", "her", "titan", "zai-", "contributor"),
)
"""Parts of names of models that no agent talks to, or that are no family of their own."""
_PRICES = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
}
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def rules_now() -> dict[str, Any]:
    """The whole file, as it would be written today."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  it takes seconds and 100 MB

    overrides = tomllib.loads(OVERRIDES.read_text(encoding="utf-8"))
    providers = {provider.id: provider for provider in get_snapshot().providers}
    models: dict[str, dict[str, Any]] = {}
    for name, maker in _MAKERS.items():
        for model in providers[name].models:
            _add(models, maker, model.id, model.context_window)
    for maker, name in _names_of_sdks():
        _add(models, maker, name, None)
    for row in overrides["rows"]:
        for name in row["names"]:
            if not name.endswith("*") and "maker" in row:
                _add(models, row["maker"], name, None)
    for name, row in models.items():
        _override(name, row, overrides["rows"])
    models = dict(_undated(models))
    prices = [dict(row) for row in _own_prices(overrides.get("prices", ()))]
    prices += [row for name in _MAKERS for row in _prices(name, providers[name])]
    return {
        "made": datetime.now(UTC).date().isoformat(),
        "sources": {package: version(package) for package in PACKAGES},
        "ours": [f"{row['source']} ({row['date']})" for row in overrides["rows"]],
        "apis": {name: _plain(api) for name, api in overrides["apis"].items()},
        "models": models,
        "prices": prices,
    }


def _add(models: dict[str, dict[str, Any]], maker: str, model: str, window: int | None) -> None:
    """A model as the packages know it. Of two providers of the same model the first counts."""
    name = plain_name(model)
    if (maker != "anthropic" and "claude" in name) or (maker == "mistral" and "deepseek" in name):
        return  # at another's price
    if maker == "amazon":
        maker = next((each for word, each in (("nova", "amazon"), ("llama", "meta")) if word in name), "")
    if not maker or any(part in name for part in _OTHER_WORK):
        return
    row = models.setdefault(name, {"maker": maker, "from": []})
    if window and "window" not in row:
        row["window"] = window
        row["from"].append("genai-prices")
    if profile := _PROFILED.get(maker, _unknown)(name):
        row.update(profile)
        row["from"] = [*(each for each in row["from"] if each != "pydantic-ai"), "pydantic-ai"]


def _names_of_sdks() -> Iterator[tuple[str, str]]:
    from anthropic.types import Model as ClaudeModel  # noqa: PLC0415
    from openai.types.shared import ChatModel  # noqa: PLC0415

    for name in get_args(get_args(ClaudeModel)[0]):
        yield "anthropic", name
    for name in get_args(ChatModel):
        yield "openai", name


def _anthropic(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.anthropic import anthropic_model_profile  # noqa: PLC0415

    said: Any = anthropic_model_profile(name)
    adaptive = said["anthropic_supports_adaptive_thinking"]
    efforts = ["low", "medium", "high"] if said["anthropic_supports_effort"] else []
    if efforts and said["anthropic_supports_xhigh_effort"]:
        efforts.append("xhigh")
    if efforts and said["anthropic_supports_max_effort"]:
        efforts.append("max")
    always, unasked = said["thinking_always_enabled"], said["thinking_enabled_by_default"]
    off = "between_tools" if said["anthropic_disables_thinking_with_between_tools"] else "disabled"
    return {
        "efforts": efforts,
        "thinks": "always" if always else "default" if unasked else "asked",
        "thinking": "adaptive" if adaptive else "interleaved",
        "samples": "no" if said["anthropic_disallows_sampling_settings"] else "yes",
        **({} if always else {"off": off}),
        **({} if said["supports_forced_tool_choice"] else {"forced": False}),
        **({"binds": True} if said["anthropic_binds_thinking_blocks"] else {}),
        **({"output": most} if (most := said["anthropic_max_output_tokens"]) else {}),
    }


def _openai(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.openai import openai_model_profile  # noqa: PLC0415

    said: Any = openai_model_profile(name)
    if not said["supports_thinking"]:
        return {}  # it says so of names that it does not know, too
    efforts = said.get("openai_reasoning_efforts")
    thinks = (
        "always" if said["thinking_always_enabled"] else "default" if said["thinking_enabled_by_default"] else "asked"
    )
    return {
        **({} if efforts is None else {"efforts": _in_order(efforts)}),
        "thinks": thinks,
        "samples": "no" if thinks == "always" else "idle",
    }


def _google(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.google import google_model_profile  # noqa: PLC0415

    said: Any = google_model_profile(name)
    if not said["supports_thinking"]:
        return {"efforts": [], "thinks": "no", "samples": "yes"}
    levels = said.get("google_thinking_levels") or {"MINIMAL", "LOW", "MEDIUM", "HIGH"}
    always = said["thinking_always_enabled"]
    off = () if always or "MINIMAL" not in levels else ("none",)
    efforts = _in_order({*off, *(level.lower() for level in levels)})
    return {"efforts": efforts, "thinks": "always" if always else "default", "samples": "yes"}


def _grok(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.grok import grok_model_profile  # noqa: PLC0415

    said: Any = grok_model_profile(name)
    efforts = _in_order(said["grok_reasoning_efforts"])
    # Grok reasons, whether it takes an effort or not.
    return {"efforts": efforts, "thinks": "default" if "none" in efforts else "always", "samples": "yes"}


def _moonshot(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.moonshotai import moonshotai_model_profile  # noqa: PLC0415

    said: Any = moonshotai_model_profile(name)
    return {"thinks": "default" if said["supports_thinking"] else "no"}


def _muse(name: str) -> dict[str, Any]:
    from pydantic_ai.profiles.meta import muse_model_profile  # noqa: PLC0415

    said: Any = muse_model_profile(name)
    if said is None:
        return {}
    return {
        "efforts": _in_order(said["openai_reasoning_efforts"]),
        "thinks": "always",
        "window": said["context_window"],
    }


def _unknown(_: str) -> dict[str, Any]:
    return {}


_PROFILED: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "anthropic": _anthropic,
    "openai": _openai,
    "google": _google,
    "x-ai": _grok,
    "moonshotai": _moonshot,
    "meta": _muse,
}


def _in_order(efforts: Any) -> list[str]:
    return [effort for effort in _EFFORTS if effort in efforts]


def _override(name: str, row: dict[str, Any], overrides: list[dict[str, Any]]) -> None:
    for place, each in enumerate(overrides):
        if any(name.startswith(named[:-1]) if named.endswith("*") else name == named for named in each["names"]):
            row.update({field: value for field, value in each.items() if field not in ("names", "source", "date")})
            row["from"] = [*row["from"], place]


def _undated(models: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """One name of each model: the shortest; another one where its window is another, as of a later preview."""
    by_key: dict[Any, list[str]] = {}
    for name in models:
        by_key.setdefault(parse(name), []).append(name)
    kept = {min(names, key=lambda name: (len(name), name)) for names in by_key.values()}
    for names in by_key.values():
        row = models[next(name for name in names if name in kept)]
        windows = [each["window"] for name in names if "window" in (each := models[name])]
        if "window" not in row and windows:
            row["window"] = min(windows)
        kept |= {name for name in names if models[name].get("window", row.get("window")) != row.get("window")}
    for name in sorted(kept):
        if len(models[name]) > len(("maker", "from")):
            yield name, models[name]


def _own_prices(rows: Any) -> Iterator[dict[str, Any]]:
    for row in rows:
        price = {field: row[field] for field in _PRICES if field in row}
        tiers = {"above": [row["above"]]} if "above" in row else {}
        for name in row["names"]:
            told = f"{row['source']} ({row['date']})"
            yield {"of": "", "match": {"equals": name}, "from": [{**price, **tiers}], "source": told}


def _prices(name: str, provider: Any) -> Iterator[dict[str, Any]]:
    """A row for each model: how its name is known, and what it costs from which day on."""
    for model in provider.models:
        listed = model.prices if isinstance(model.prices, list) else [None]
        dated: list[dict[str, Any]] = []
        for each in listed:
            prices = model.prices if each is None else each.prices
            constraint = getattr(each, "constraint", None)
            price = _price(prices)
            if price is None:
                continue
            if constraint is None:
                dated.append(price)
            elif (start := getattr(constraint, "start_date", None)) is not None:
                dated.append({"since": start.isoformat(), **price})
            elif dated and price["output"] > dated[-1]["output"]:
                # Of prices that change with the hour the highest counts, so that no budget is passed.
                dated[-1] = {**({"since": dated[-1]["since"]} if "since" in dated[-1] else {}), **price}
        if dated:
            yield {"of": name, "match": _match(model.match), "from": dated}


def _price(prices: Any) -> dict[str, Any] | None:
    told = {name: getattr(prices, field, None) for name, field in _PRICES.items()}
    if told["input"] is None or told["output"] is None:
        return None
    base = {name: float(getattr(price, "base", price)) for name, price in told.items() if price is not None}
    starts = sorted({tier.start for price in told.values() for tier in getattr(price, "tiers", ())})
    above = [
        {"tokens": start, **{name: _at(price, start) for name, price in told.items() if price is not None}}
        for start in starts
    ]
    return {**base, **({"above": above} if above else {})}


def _at(price: Any, start: int) -> float:
    tiers = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return float(tiers[-1] if tiers else getattr(price, "base", price))


def _match(clause: Any) -> dict[str, Any]:
    """The package's own form: one of equals, starts_with, ends_with, contains, regex, or, and."""
    (name, value), *_ = vars(clause).items()
    if isinstance(value, list):
        return {name.rstrip("_"): [_match(each) for each in value]}
    return {name: value}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}


def old_rows(today: date) -> list[str]:
    """Each row of ours that nobody has looked up for 60 days, and the packages' where the file is as old."""
    overrides = tomllib.loads(OVERRIDES.read_text(encoding="utf-8"))
    ours = [*overrides["rows"], *overrides.get("prices", ())]
    found = [
        f"{row['date']}  {', '.join(row['names'])}: {row['source']}" for row in ours if _is_old(row["date"], today)
    ]
    found += [
        f"{api['date']}  {name}: {api['source']}"
        for name, api in overrides["apis"].items()
        if _is_old(api["date"], today)
    ]
    made = json.loads((HERE / RULES_FILE).read_text(encoding="utf-8"))
    if _is_old(date.fromisoformat(made["made"]), today):
        found.append(f"{made['made']}  what {', '.join(made['sources'])} say")
    return found


def _is_old(looked_up: date, today: date) -> bool:
    return today - looked_up > OLD_AFTER


def written(rules: Mapping[str, Any]) -> str:
    """A line for each model and each price, so that a change is read line by line."""
    lines = []
    for name, value in rules.items():
        if name == "models":
            rows = ",\n".join(f"  {json.dumps(model)}: {json.dumps(row)}" for model, row in value.items())
            lines.append(f'"models": {{\n{rows}\n }}')
        elif name == "prices":
            rows = ",\n".join(f"  {json.dumps(row)}" for row in value)
            lines.append(f'"prices": [\n{rows}\n ]')
        else:
            lines.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def main(arguments: list[str]) -> int:
    now, path = rules_now(), HERE / RULES_FILE
    if "--check" in arguments:
        before = json.loads(path.read_text(encoding="utf-8"))
        changed = [name for name in now if name != "made" and now[name] != before.get(name)]
        print(f"{RULES_FILE} would change: {', '.join(changed)}" if changed else f"{RULES_FILE} is as the sources say")
        return 1 if changed else 0
    path.write_text(written(now), encoding="utf-8")
    print(f"{RULES_FILE}: {len(now['models'])} models, {len(now['prices'])} prices, by {now['sources']}")
    for row in old_rows(datetime.now(UTC).date()):
        print(f"looked up more than {OLD_AFTER.days} days ago: {row}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
