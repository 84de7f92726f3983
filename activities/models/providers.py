"""Where a model's name leads: which provider, at which address, with which of the worker's keys."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never
from urllib.parse import urlsplit

from activities.models.failures import SetupError
from activities.models.model import Delta, Model, ModelReply, ModelRequest
from agent.settings import ModelConfig


@dataclass(frozen=True, slots=True)
class Provider:
    api: Literal["messages", "responses", "chat", "script"]
    key_env: str = ""
    base_url_env: str = ""
    base_url: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("messages", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Provider("responses", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openai-chat": Provider("chat", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "qwen": Provider(
        "chat", "DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL", "https://dashscope.aliyuncs.com/compatible-mode/v1"
    ),
    "scripted": Provider("script"),
}
"""By prefix of the model's name."""

ALLOWED_ENV = "LONGHAUL_BASE_URLS"
"""Addresses, comma-separated, that agents may name as their base_url; loopback and the provider's own always count."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")

_EXAMPLES = "anthropic:NAME, openai:NAME (Responses), openai-chat:NAME (Chat Completions), qwen:NAME or scripted:FILE"


@dataclass(frozen=True, slots=True)
class ModelName:
    provider: str
    name: str
    """The provider's own name of the model; for `scripted` the path of the file."""


def parse_model_name(full_model_name: str) -> ModelName:
    """Split `anthropic:claude-x`. Raises SetupError for a name without a known prefix or without a rest."""
    prefix, _, name = full_model_name.partition(":")
    if prefix not in PROVIDERS or not name.strip():
        raise SetupError(f"Model {full_model_name!r} is unknown: write {_EXAMPLES}.")
    return ModelName(prefix, name.strip())


class Providers:
    """Calls models by their full names. One client per provider, address and key, made on first use."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._models: dict[tuple[str, str, str], Model] = {}
        self._making = asyncio.Lock()

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """One call; `request.model` is replaced by the provider's own name.

        Raises the SDKs' errors and `activities.models.failures`, all of which `activities.models.verdicts.judge`
        knows, and TimeoutError after `call_timeout_seconds`. Cancelling closes the connection.
        """
        name = parse_model_name(full_model_name)
        model = await self._find_model(name.provider, request.config)
        async with asyncio.timeout(request.config.call_timeout_seconds):
            return await model.call(replace(request, model=name.name), on_delta)

    async def warm(self) -> None:
        """Make the clients of the providers whose keys are here: else the first session after a start would wait for
        their SDKs to be imported."""
        for name, provider in PROVIDERS.items():
            if self._environ.get(provider.key_env):
                with contextlib.suppress(Exception):  # the session that asks for it is told
                    await self._find_model(name, ModelConfig())

    async def close(self) -> None:
        """Close all clients; calls that still run fail."""
        models = list(self._models.values())
        self._models.clear()
        for model in models:
            await model.close()

    async def _find_model(self, provider_name: str, config: ModelConfig) -> Model:
        provider = PROVIDERS[provider_name]
        base_url = config.base_url or self._environ.get(provider.base_url_env) or provider.base_url
        key_env = config.api_key_env or provider.key_env
        wanted = (provider_name, base_url, key_env)
        async with self._making:
            if wanted not in self._models:
                api_key = self._read_key(provider, base_url, key_env, chosen=config.api_key_env is not None)
                # In a thread: importing an SDK takes a second or two, which the event loop must not stand still for.
                self._models[wanted] = await asyncio.to_thread(_make_model, provider_name, api_key, base_url)
            return self._models[wanted]

    def _read_key(self, provider: Provider, base_url: str, key_env: str, *, chosen: bool) -> str:
        if provider.api == "script":
            return ""
        if not base_url.startswith(("https://", "http://")):
            raise SetupError(f"The base_url {base_url!r} is no address: it has to begin with https:// or http://.")
        if not self._may_send_keys_to(provider, base_url):
            raise SetupError(
                f"This worker does not send keys to {base_url!r}: name that address in {ALLOWED_ENV} on the worker."
            )
        key = self._environ.get(key_env, "").strip()
        if not key and provider.api == "chat" and base_url != provider.base_url and not chosen:
            # Servers of one's own rarely want a key, but the SDK insists on one.
            return "none"
        if not key:
            raise SetupError(
                f"The environment variable {key_env} is not set on the worker; it has to hold the API key."
            )
        if not (key.isascii() and key.isprintable()):
            raise SetupError(f"The environment variable {key_env} on the worker does not hold a key: odd characters.")
        return key

    def _may_send_keys_to(self, provider: Provider, base_url: str) -> bool:
        """Whoever starts a session chooses the address, and must not choose where the worker's keys go."""
        allowed = [provider.base_url, self._environ.get(provider.base_url_env, "")]
        allowed += self._environ.get(ALLOWED_ENV, "").split(",")
        return base_url in [url.strip() for url in allowed] or urlsplit(base_url).hostname in _LOOPBACK


def _make_model(provider_name: str, api_key: str, base_url: str) -> Model:
    """Import what the provider needs, and nothing for the others: a worker has to start within a second."""
    api = PROVIDERS[provider_name].api
    match api:
        case "messages":
            from activities.models.anthropic import AnthropicModel  # noqa: PLC0415  see the docstring

            return AnthropicModel(api_key, base_url)
        case "responses":
            from activities.models.openai_responses import OpenAIResponsesModel  # noqa: PLC0415

            return OpenAIResponsesModel(api_key, base_url)
        case "chat":
            from activities.models.openai_chat import OpenAIChatModel  # noqa: PLC0415

            return OpenAIChatModel(api_key, base_url, dashscope=provider_name == "qwen")
        case "script":
            from activities.models.scripted import ScriptedModel  # noqa: PLC0415

            return ScriptedModel()
        case _ as never:
            assert_never(never)
