"""Windows are held to a list that others keep, and an older one is found out when that list is installed again."""

import re
from collections.abc import Iterator

import pytest
from genai_prices.data import providers

from longhaul.activities.models.model_limits import DEFAULT_TOKENS, context_length

MAKERS = ("anthropic", "deepseek", "google", "minimax", "mistral", "moonshotai", "openai", "x-ai", "zhipuai")
OTHER_WORK = re.compile(
    r"embed|tts|image|realtime|audio|transcribe|live|ocr|vision|voxtral|M2-her|computer-use", re.IGNORECASE
)
"""What no agent talks with."""
RETIRED = {"gpt-4-32k", "gemini-pro", "GLM-4-AirX", "GLM-4-Long", "gemini-pro-1.5", "moonshot-v1-8k", "moonshot-v1-32k"}
DEARER_BEYOND = re.compile(r"gpt-(5\.[4-9]|[6-9])")
"""OpenAI takes twice the price for input beyond 272,000 tokens."""
NEAR = 1.05
"""Some have a million for 1,048,576, and others the other way round."""


def known() -> Iterator[tuple[str, int]]:
    for provider in providers:
        for model in provider.models if provider.id in MAKERS else ():
            if model.context_window and model.id not in RETIRED and not OTHER_WORK.search(model.id):
                yield model.id, model.context_window


@pytest.mark.parametrize(("model", "window"), sorted(set(known())))
def test_a_models_window_is_that_of_the_list(model: str, window: int) -> None:
    ours = context_length(model)

    assert ours <= window * NEAR
    assert ours * 1.7 > window or ours == DEFAULT_TOKENS or DEARER_BEYOND.match(model)


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("anthropic:claude-opus-5-5", 1_000_000),
        ("anthropic:claude-fable-5-2", 1_000_000),
        ("anthropic:claude-sonnet-4-6", 1_000_000),
        ("anthropic:claude-opus-4-5-20251101", 200_000),
        ("anthropic:claude-opus-4-20250514", 200_000),
        ("anthropic:claude-haiku-4-5", 200_000),
        ("openai:gpt-5.1", 272_000),
        ("openai:gpt-6-sol", 272_000),
        ("ai:deepseek:deepseek-v4-pro", 1_000_000),
        ("ai:openrouter:moonshotai/kimi-k2-thinking", 262_144),
        ("ai:bedrock:us.amazon.nova-pro-v1:0", 300_000),
        ("ai:bedrock:amazon.nova-micro-v1:0", 128_000),
        ("ai:bedrock:global.amazon.nova-2-lite-v1:0", 1_000_000),
        ("ai:bedrock:us.meta.llama4-maverick-17b-instruct-v1:0", 1_000_000),
        ("ai:bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000),
        ("ai:bedrock:global.anthropic.claude-opus-4-8", 1_000_000),
        ("ai:bedrock:openai.gpt-oss-120b-1:0", 131_072),
        ("ai:google-vertex:gemini-3-pro", 1_048_576),
        ("qwen:qwen3-max", 262_144),
        ("openai-chat:our-deployment", DEFAULT_TOKENS),
    ],
)
def test_the_newest_have_the_room_that_they_have(model: str, window: int) -> None:
    assert context_length(model) == window
