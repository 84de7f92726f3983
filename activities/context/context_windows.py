"""Tells how many tokens a model's window holds, where the model's name tells it. `ModelConfig.context_length` overrules
it."""

import re

from longhaul.activities.models.model_names import Called
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import split_model

DEFAULT_TOKENS = 128_000

_WINDOWS: tuple[tuple[str, int], ...] = (
    (r"claude-(fable|mythos)-\d|claude-([a-z]+-)?([5-9]|\d\d)\b|claude-([a-z]+-)?4[-.]([6-9]|\d\d)\b", 1_000_000),
    (r"claude-", 200_000),
    (r"gpt-[5-9][\d.]*-chat|gpt-5\.3(?!-codex)|gpt-oss", 128_000),
    (r"gpt-[5-9]", 272_000),
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-4o|gpt-4-turbo|chatgpt-4o", 128_000),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"o1-mini|o1-preview", 128_000),
    (r"o\d", 200_000),
    (r"qwen3-(max|coder|vl)", 262_144),
    (r"qwen-(max|vl)", 32_768),
    (r"qwen|qwq", 131_072),
    (r"deepseek-(v4|flash|pro)", 1_000_000),
    (r"deepseek-(v3\.|r1-distill)", 128_000),
    (r"deepseek", 65_536),
    (r"gemini-", 1_048_576),
    (r"grok-4([-.]1)?-fast", 2_000_000),
    (r"grok-4\.(20|3)", 1_000_000),
    (r"grok-4\.[4-9]", 500_000),
    (r"grok-(4|build|code)", 256_000),
    (r"grok-2", 32_768),
    (r"kimi-k[3-9]", 1_048_576),
    (r"kimi-k2-0711", 131_072),
    (r"kimi-k2", 262_144),
    (r"glm-5\.[2-9]", 1_000_000),
    (r"glm-(5|4\.[67])", 200_000),
    (r"minimax-(m[3-9]|01)", 1_000_000),
    (r"minimax-m2", 204_800),
    (r"mistral-large-4", 1_048_576),
    (r"mistral-(large-2512|medium-3-5|small-2603)|devstral-2512", 262_144),
    (r"codestral", 256_000),
    (r"nova-micro", 128_000),
    (r"nova-(lite|pro)", 300_000),
    (r"nova-(premier|2-lite)", 1_000_000),
    (r"llama-?4-", 1_000_000),
    (r"llama3-(8|70)b", 8_192),
)
"""First match counts. `tests/activities/context/test_context_windows.py` holds it to genai-prices, which takes a second
and 100 MB to load. Where sizes differ by plan or release the smaller one stands here: too early a compaction costs
little, too late a one costs a refused call. OpenAI's newest take a million tokens, and more than 272,000 of input at
twice the price."""
AT_BEDROCK = re.compile(
    r"^(?:[a-z-]+\.)?(?:amazon|anthropic|google|meta|minimax|mistral|moonshot(?:ai)?|nvidia|openai|qwen|writer|xai|zai)\."
)
"""What stands before a model's name at Bedrock: `us.amazon.`."""


def window_of(model: str, config: ModelConfig, called: Called | None) -> int:
    """Of a model as an agent names it. `called`: what that stands for, where it is known."""
    if called is None:
        return config.context_length or context_length(model)
    return called.config.context_length or context_length(called.told_by)


def context_length(full_model_name: str) -> int:
    """Tokens of input and output together, for a name with or without its provider prefix and organisation."""
    name = split_model(full_model_name)[1] or full_model_name
    name = AT_BEDROCK.sub("", name.rpartition("/")[2].lower(), count=1)
    return next((tokens for pattern, tokens in _WINDOWS if re.match(pattern, name)), DEFAULT_TOKENS)
