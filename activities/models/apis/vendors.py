"""The table of vendors whose models are called through pydantic-ai: keys, addresses, and what of the library they need.

The library itself is imported by the first call alone.

Keeps SDKs from adding what stands in the environment to requests for other addresses than the provider's own.
"""

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.agent.values.spec.profiles import IDENTITY

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


Sdk = Literal["openai", "bedrock", "cohere", "google", "groq", "mistral"]
_MODULES: Mapping[Sdk, str] = {
    "openai": "openai",
    "bedrock": "boto3",
    "cohere": "cohere",
    "google": "google.genai",
    "groq": "groq",
    "mistral": "mistralai",
}
_EXTRAS: Mapping[Sdk, str] = {"bedrock": "ai,bedrock", "cohere": "cohere"}
"""Others than `ai`."""


@dataclass(frozen=True, slots=True)
class Vendor:
    key_env: str
    base_url_env: str
    base_url: str = ""
    """Empty: a server of one's own, or an address for each customer."""
    sdk: Sdk = "openai"
    """`openai`: the vendor speaks Chat Completions."""
    takes_pictures: bool = True
    takes_pdf: bool = False
    takes_gif: bool = True
    takes_sound: bool = False
    library_name: str = ""
    """The library's name of it; empty: the same."""


@dataclass(frozen=True, slots=True)
class Hosted:
    """Where the models are; of clouds also the region and the project."""

    base_url: str
    region: str = ""
    project: str = ""


VENDORS: Mapping[str, Vendor] = {
    "azure": Vendor("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL"),
    "bedrock": Vendor("AWS_BEARER_TOKEN_BEDROCK", "", sdk="bedrock", takes_pdf=True),
    "cerebras": Vendor("CEREBRAS_API_KEY", "CEREBRAS_BASE_URL", "https://api.cerebras.ai/v1"),
    "cohere": Vendor("CO_API_KEY", "CO_BASE_URL", "https://api.cohere.com", sdk="cohere", takes_pictures=False),
    "deepseek": Vendor("DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "https://api.deepseek.com"),
    "fireworks": Vendor("FIREWORKS_API_KEY", "FIREWORKS_BASE_URL", "https://api.fireworks.ai/inference/v1"),
    "google": Vendor(
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "https://generativelanguage.googleapis.com",
        sdk="google",
        takes_pdf=True,
        takes_gif=False,
        takes_sound=True,
    ),
    "google-vertex": Vendor(
        IDENTITY,
        "",
        sdk="google",
        takes_pdf=True,
        takes_gif=False,
        takes_sound=True,
        library_name="google-cloud",
    ),
    "groq": Vendor("GROQ_API_KEY", "GROQ_BASE_URL", "https://api.groq.com", sdk="groq"),
    "litellm": Vendor("LITELLM_API_KEY", "LITELLM_BASE_URL", takes_pdf=True),
    "mistral": Vendor("MISTRAL_API_KEY", "MISTRAL_BASE_URL", "https://api.mistral.ai", sdk="mistral", takes_pdf=True),
    "moonshotai": Vendor("MOONSHOTAI_API_KEY", "MOONSHOTAI_BASE_URL", "https://api.moonshot.ai/v1"),
    "nebius": Vendor("NEBIUS_API_KEY", "NEBIUS_BASE_URL", "https://api.studio.nebius.com/v1"),
    "ollama": Vendor("OLLAMA_API_KEY", "OLLAMA_BASE_URL"),
    "openrouter": Vendor("OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", takes_pdf=True),
    "sambanova": Vendor("SAMBANOVA_API_KEY", "SAMBANOVA_BASE_URL", "https://api.sambanova.ai/v1"),
    "together": Vendor("TOGETHER_API_KEY", "TOGETHER_BASE_URL", "https://api.together.xyz/v1"),
    "vercel": Vendor("VERCEL_AI_GATEWAY_API_KEY", "VERCEL_AI_GATEWAY_BASE_URL", "https://ai-gateway.vercel.sh/v1"),
    "vllm": Vendor("VLLM_API_KEY", "VLLM_BASE_URL"),
    "zai": Vendor("ZAI_API_KEY", "ZAI_BASE_URL", "https://api.z.ai/api/paas/v4"),
}
"""The addresses are the library's own. Clouds have one for each region, which `activities.models.clouds` knows."""


def vendor_of(provider_name: str) -> str:
    """`google` of `ai:google`."""
    return provider_name.partition(":")[2]


def check_installed(provider_name: str) -> None:
    """Raises SetupError where the worker lacks what the vendor needs; nothing is imported for that."""
    sdk = VENDORS[vendor_of(provider_name)].sdk
    extra = _EXTRAS.get(sdk, "ai")
    for module in ("pydantic_ai", _MODULES[sdk]):
        if not is_there(module):
            raise SetupError(
                f"Models of {provider_name} need {module!r}, which is not installed on the worker; it comes with an "
                f"extra: pip install 'longhaul-agents[{extra}]'."
            )


def is_there(module: str) -> bool:
    """Whether it could be imported; it is not."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
