"""Models where clouds host them, called by the SDKs' own clients, which sign in as each cloud wants it: addresses,
packages, and the clients.

Sources, 2026-11-24: the SDKs' own modules; learn.microsoft.com, "Azure OpenAI API version lifecycle";
platform.claude.com, "Claude in Amazon Bedrock", "Claude on Vertex AI", "Claude in Microsoft Foundry".
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longhaul.activities.models.apis.vendors import ANTHROPIC, OPENAI, Hosted, is_there, left_out
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import Model
from longhaul.agent.values.spec.known_names import CLOUDS
from longhaul.agent.values.spec.profiles import ModelProfile

if TYPE_CHECKING:
    import anthropic
    import openai

_SIGNS_IN_BY: Mapping[str, tuple[tuple[str, ...], str]] = {
    "azure": (("azure.identity",), "azure"),
    "azure-chat": (("azure.identity",), "azure"),
    "bedrock": (("boto3",), "bedrock"),
    "bedrock-mantle": (("boto3",), "bedrock"),
    "foundry": (("azure.identity",), "azure"),
    "vertex": (("google.auth", "requests"), "vertex"),
}
"""Modules, and the extra that has them. Of those that are called through pydantic-ai `vendors` knows them."""
_NEEDED_WITH_A_KEY = ("bedrock",)
"""Its streams are in a form of AWS's own, which boto3's packages read."""
_OF_GOOGLE = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
_UNDATED = "v1"
"""The version of Azure's API that stands in its path, and speaks as OpenAI's own does."""
_AUDIENCES = {"foundry": "https://ai.azure.com/.default"}
_AUDIENCE = "https://cognitiveservices.azure.com/.default"
"""Whom a token of Azure's is for."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """What a profile says of where its model is hosted."""

    provider: str
    region: str = ""
    project: str = ""
    api_version: str = ""

    @property
    def address(self) -> str:
        """The cloud's own for the region; empty where each customer has one."""
        match self.provider:
            case "bedrock" | "ai:bedrock":
                return f"https://bedrock-runtime.{self.region}.amazonaws.com"
            case "bedrock-mantle":
                return f"https://bedrock-mantle.{self.region}.api.aws/anthropic"
            case "vertex":
                return f"{self._of_google}/v1"
            case "ai:google-vertex":
                return self._of_google
            case _:
                return ""

    @property
    def _of_google(self) -> str:
        return f"https://{_OF_GOOGLE.get(self.region, f'{self.region}-aiplatform.googleapis.com')}"


def cloud_of(profile: ModelProfile | None) -> Cloud | None:
    """None for a model that is called by its provider's name and key alone."""
    if profile is None or profile.provider not in CLOUDS:
        return None
    return Cloud(profile.provider, profile.region or "", profile.project or "", profile.api_version or "")


def check_cloud(cloud: Cloud, *, by_identity: bool) -> None:
    """Raises SetupError where the worker lacks what signs in; nothing is imported for that."""
    modules, extra = _SIGNS_IN_BY.get(cloud.provider, ((), ""))
    for module in modules if by_identity or cloud.provider in _NEEDED_WITH_A_KEY else ():
        if not is_there(module):
            raise SetupError(
                f"Models of {cloud.provider} need {module!r}, which is not installed on the worker; it comes with an "
                f"extra: pip install 'longhaul-agents[{extra}]'."
            )


def make_cloud_model(cloud: Cloud, key: str | None, base_url: str) -> Model:
    """`key`: None where the worker signs in as what it runs as."""
    if cloud.provider.startswith("ai:"):
        from longhaul.activities.models.apis.vendor_model import VendorModel  # noqa: PLC0415

        return VendorModel(cloud.provider, key, Hosted(base_url, cloud.region, cloud.project))
    from longhaul.activities.models.apis.anthropic import AnthropicModel  # noqa: PLC0415  a worker starts within a second

    match cloud.provider:
        case "azure":
            from longhaul.activities.models.apis.openai_responses import OpenAIResponsesModel  # noqa: PLC0415

            return OpenAIResponsesModel(_azure(cloud, key, base_url))
        case "azure-chat":
            from longhaul.activities.models.apis.openai_chat import OpenAIChatModel  # noqa: PLC0415

            return OpenAIChatModel(_azure(cloud, key, base_url), rewrites=bool(cloud.api_version))
        case "bedrock":
            return AnthropicModel(_bedrock(cloud, key, base_url), rewrites=True)
        case "bedrock-mantle":
            return AnthropicModel(_mantle(cloud, key, base_url))
        case "vertex":
            return AnthropicModel(_vertex(cloud, key, base_url), rewrites=True)
        case _:
            import anthropic  # noqa: PLC0415

            token = None if key is not None else _azure_token("foundry")
            foundry = anthropic.AsyncAnthropicFoundry(
                api_key=key or "",
                azure_ad_token_provider=token,
                base_url=base_url,
                max_retries=0,
                default_headers=_headers(anthropic.Omit()),
            )
            return AnthropicModel(foundry)


def _bedrock(cloud: Cloud, key: str | None, base_url: str) -> "anthropic.AsyncAnthropicBedrock":
    import anthropic  # noqa: PLC0415

    client = anthropic.AsyncAnthropicBedrock(
        api_key=key,
        aws_region=cloud.region,
        base_url=base_url,
        max_retries=0,
        default_headers=_headers(anthropic.Omit()),
    )
    client.api_key = key  # without one the SDK takes that of the environment, and signs nothing
    return client


def _mantle(cloud: Cloud, key: str | None, base_url: str) -> "anthropic.AsyncAnthropicBedrockMantle":
    import anthropic  # noqa: PLC0415

    client = anthropic.AsyncAnthropicBedrockMantle(
        api_key=key,
        aws_region=cloud.region,
        base_url=base_url,
        max_retries=0,
        default_headers=left_out(anthropic.Omit(), key or "", *ANTHROPIC),
    )
    client.api_key, client._use_sigv4 = key, key is None  # noqa: SLF001  as above
    return client


def _vertex(cloud: Cloud, key: str | None, base_url: str) -> "anthropic.AsyncAnthropicVertex":
    import anthropic  # noqa: PLC0415

    return anthropic.AsyncAnthropicVertex(
        region=cloud.region,
        project_id=cloud.project,
        access_token=key,
        base_url=base_url,
        max_retries=0,
        default_headers=_headers(anthropic.Omit()),
    )


def _azure(cloud: Cloud, key: str | None, base_url: str) -> "openai.AsyncAzureOpenAI":
    import openai  # noqa: PLC0415

    return openai.AsyncAzureOpenAI(
        api_key=key,
        azure_ad_token_provider=None if key is not None else _azure_token(cloud.provider),
        api_version=cloud.api_version or _UNDATED,
        base_url=f"{base_url.rstrip('/')}/openai{'' if cloud.api_version else f'/{_UNDATED}'}",
        max_retries=0,
        default_headers=left_out(openai.Omit(), "", *OPENAI),
    )


def _azure_token(provider: str) -> Callable[[], Awaitable[str]]:
    """Asked for each request: the library keeps a token as long as it is good."""
    from azure.identity import DefaultAzureCredential, get_bearer_token_provider  # noqa: PLC0415

    provided = get_bearer_token_provider(DefaultAzureCredential(), _AUDIENCES.get(provider, _AUDIENCE))

    async def token() -> str:
        return await asyncio.to_thread(provided)

    return token


def _headers(omit: object) -> dict[str, Any]:
    """What the environment says of the account at Anthropic goes to Anthropic alone."""
    return left_out(omit, "", *ANTHROPIC)
