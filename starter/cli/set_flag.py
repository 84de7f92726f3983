"""Reads `--set KEY=VALUE`: how the models of one session are called, beside what its agent says."""

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue, ValidationError

from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.starter.cli.exit_codes import Misuse


def fields_of(pairs: Sequence[str]) -> dict[str, JsonValue]:
    """By field of [model_config]; None is its default. Raises Misuse."""
    given: dict[str, JsonValue] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key.strip():
            raise Misuse(f"--set: {pair!r} is no KEY=VALUE; write it as max_output_tokens=16000")
        name = key.strip()
        if name not in ModelConfig.model_fields:
            raise Misuse(f"--set: model_config has no {name!r}; {did_you_mean(name, ModelConfig.model_fields)}")
        given[name] = _value(value.strip())
    return given


def called_otherwise(config: ModelConfig, given: Mapping[str, JsonValue]) -> ModelConfig:
    """Raises Misuse."""
    try:
        return config.called_otherwise(given)
    except ValidationError as error:
        raise Misuse(f"--set: {what_is_wrong(error)}") from None


def _value(text: str) -> JsonValue:
    """A number where it is one, None for none and for `null`, else the text: an effort, a model's name, an address."""
    try:
        number: JsonValue = json.loads(text)
    except ValueError:
        return text or None
    if number is None:
        return None
    return number if isinstance(number, int | float) and not isinstance(number, bool) else text
