"""Keeps SDKs from adding what stands in the environment to requests for other addresses than the provider's own."""

import os
from typing import Any

ANTHROPIC = ("ANTHROPIC_CUSTOM_HEADERS",)
OPENAI = ("OPENAI_CUSTOM_HEADERS", "OpenAI-Organization", "OpenAI-Project")
"""A variable with lines of headers, and headers that have variables of their own."""


def left_out(omit: object, api_key: str, variable: str, *headers: str) -> dict[str, Any]:
    """Default headers that take the place of those: of `headers`, and of each in the lines of `variable`.

    `omit` is the SDK's word for no header at all. An empty key: the SDK's client makes the header itself.
    """
    lines = os.environ.get(variable, "").split("\n")
    named = [line.partition(":")[0].strip() for line in lines if ":" in line]
    return {
        name: f"Bearer {api_key}" if api_key and name.lower() == "authorization" else omit
        for name in (*headers, *named)
        if name
    }
