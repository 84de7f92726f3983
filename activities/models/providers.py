"""Finds the provider of a model's name, its address, and the worker's key for it."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from longhaul.activities.models.adapters import make_model
from longhaul.activities.models.apis.vendors import VENDORS, check_installed
from longhaul.activities.models.clouds import Cloud, check_cloud, cloud_of, make_cloud_model
from longhaul.activities.models.failures.errors import SetupError
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.rate_limits import KeyLimit, key_digest
from longhaul.activities.models.key_places import NO_KEY, NO_VARIABLES, SETTING, KeyPlace, is_among, is_within
from longhaul.activities.models.model import Delta, Model, ModelReply, ModelRequest
from longhaul.activities.models.model_names import Called, ModelName, parse_model_name
from longhaul.activities.models.profiles import config_with, no_profile
from longhaul.activities.models.requests.thinking_origin import OF_MANY_VENDORS, origin_of
from longhaul.activities.models.requests.tool_names import ToolNames
from longhaul.activities.models.tool_limits import KnownToolLimits
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS, is_profile_name
from longhaul.agent.values.spec.profiles import IDENTITY, Api, ModelProfile


@dataclass(frozen=True, slots=True)
class Provider:
    api: Api
    key_env: str = ""
    base_url_env: str = ""
    base_url: str = ""


_AI = {f"ai:{name}": Provider("ai", each.key_env, each.base_url_env, each.base_url) for name, each in VENDORS.items()}
PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("messages", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    "openai": Provider("responses", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "openai-chat": Provider("chat", "OPENAI_API_KEY", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "qwen": Provider(
        "chat", "DASHSCOPE_API_KEY", "DASHSCOPE_BASE_URL", "https://dashscope.aliyuncs.com/compatible-mode/v1"
    ),
    "xai": Provider("responses", "XAI_API_KEY", "XAI_BASE_URL", "https://api.x.ai/v1"),
    "scripted": Provider("script"),
    **{name: each for name, each in _AI.items() if name not in CLOUDS},
    "azure": Provider("responses", "AZURE_OPENAI_API_KEY"),
    "azure-chat": Provider("chat", "AZURE_OPENAI_API_KEY"),
    "bedrock": Provider("messages", "AWS_BEARER_TOKEN_BEDROCK"),
    "bedrock-mantle": Provider("messages", "AWS_BEARER_TOKEN_BEDROCK"),
    "foundry": Provider("messages", "ANTHROPIC_FOUNDRY_API_KEY"),
    "vertex": Provider("messages", IDENTITY),
    **{name: each for name, each in _AI.items() if name in CLOUDS},
}
"""By prefix of the model's name, and for clouds by the profile's provider; clients know them from
`agent.values.spec.known_names`."""


CLOUDS_KEPT = 200
"""Clients of clouds: a project or a version may be any that an agent's own profile says."""


class Providers:
    """Calls models by their full names, or by those of profiles. One client per provider, address and key, made on
    first use.

    `places`: where keys may go beside the providers' own addresses. `profiles`: the operator's.
    """

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        places: Sequence[KeyPlace] = (),
        profiles: Mapping[str, ModelProfile] | None = None,
    ) -> None:
        self._environ = environ
        self._places = places
        self._profiles = profiles or {}
        self._models: dict[tuple[str, str, str, Cloud | None], Model] = {}
        self._limits = dict[str, KeyLimit]()
        """By digest of the key: the agents of one account share what it allows, whatever API and model they call."""
        self._tool_limits = KnownToolLimits()
        self._making = asyncio.Lock()

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """One call; `request.model` and what a profile says are put in here.

        Raises the SDKs' errors and `activities.models.failures.errors`, all of which
        `failures.failure_classification.judge` knows, and TimeoutError after `call_timeout_seconds`. Cancelling closes
        the connection. While the provider limits the key the call waits for its turn first.
        """
        called = self._find(full_model_name, request.config)
        way = self.way(called)
        model = await self._find_model(called, *way)
        name = called.name.name if called.profile is None else called.profile.told_by
        asked = replace(request, model=name, config=called.config, profile=called.profile)
        # A script is written with the tools' own names.
        scripted = PROVIDERS[called.name.provider].api == "script"
        names = ToolNames([] if scripted else [tool.name for tool in request.tools])
        limit = KeyLimit() if scripted else self._limit_of(*way)
        let_in = await limit.enter()
        try:
            async with asyncio.timeout(request.config.call_timeout_seconds):
                reply = await self._tool_limits.asked(
                    called.name.provider, way[0], names.into(asked), lambda fit: model.call(fit, names.heard(on_delta))
                )
                return names.out_of(reply)
        except Exception as error:
            verdict = judge(error)
            if verdict.error_type == "rate_limit" and verdict.kind in ("retry", "retry_after"):
                limit.refused(let_in, verdict.delay_seconds)
            raise

    def _limit_of(self, base_url: str, key_env: str) -> KeyLimit:
        digest = key_digest(self.read_key(key_env), base_url if key_env in NO_VARIABLES else "")
        return self._limits.setdefault(digest, KeyLimit(digest))

    @property
    def profile_names(self) -> tuple[str, ...]:
        """Those that every agent may name."""
        return tuple(self._profiles)

    def look_up(self, model: str, config: ModelConfig) -> Called | None:
        """What the name stands for; None for one that stands for nothing here."""
        try:
            return self._find(model, config)
        except SetupError:
            return None

    def origin(self, model: str, config: ModelConfig) -> str:
        """Who answers for thoughts of this model, as `thinking_origin` has it."""
        called = self.look_up(model, config)
        if called is None:
            return origin_of(model, config)
        named = called.full_name if called.name.provider in OF_MANY_VENDORS else called.told_by
        return origin_of(named, called.config)

    def true_name(self, model: str, config: ModelConfig) -> str:
        """With the provider's prefix, where the name is a profile's."""
        called = self.look_up(model, config)
        return model if called is None else called.full_name

    def check(self, spec: AgentSpec) -> None:
        """Raises SetupError for a model that can never be called here: an unknown one, and one at an address to which
        this worker does not send that key. A key that is only missing is left to the call."""
        for name in spec.named_models:
            self.way(self._find(name, spec.call_config.for_model(name, spec.model)))

    async def warm(self) -> None:
        """Make the clients of the providers whose keys are here: else the first session after a start would wait for
        their SDKs to be imported. pydantic-ai, which is large, is not imported for a key that others use too."""
        here = [name for name, each in PROVIDERS.items() if each.api != "ai" and self._environ.get(each.key_env)]
        called = [Called(ModelName(name, ""), ModelConfig()) for name in here]
        called += [self._find(name, ModelConfig()) for name in self._profiles]
        for each in called:
            with contextlib.suppress(Exception):  # the session that asks for it is told
                await self._find_model(each, *self.way(each))

    async def close(self) -> None:
        """Close all clients; calls that still run fail."""
        models = list(self._models.values())
        self._models.clear()
        for model in models:
            await model.close()

    def _find(self, model: str, config: ModelConfig) -> Called:
        """Raises SetupError. An agent's own profile counts before one of the same name that is the operator's."""
        if not is_profile_name(model):
            return Called(parse_model_name(model), config)
        if (profile := config.profiles.get(model)) is not None:
            return self._of_profile(profile, config, of_operator=False)
        if (profile := self._profiles.get(model)) is not None:
            return self._of_profile(profile, config, of_operator=True)
        raise SetupError(f"{no_profile(model, {**self._profiles, **config.profiles})}.")

    @staticmethod
    def _of_profile(profile: ModelProfile, config: ModelConfig, *, of_operator: bool) -> Called:
        name = ModelName(profile.provider, profile.model)
        return Called(name, config_with(profile, config), profile, of_operator=of_operator)

    async def _find_model(self, called: Called, base_url: str, key_env: str) -> Model:
        provider_name = called.name.provider
        provider = PROVIDERS[provider_name]
        cloud = cloud_of(called.profile)
        wanted = (provider_name, base_url, key_env, cloud)
        async with self._making:
            if wanted not in self._models:
                api_key = self.read_key(key_env)
                if cloud is not None:
                    key = None if key_env == IDENTITY else api_key
                    self._models[wanted] = await asyncio.to_thread(make_cloud_model, cloud, key, base_url)
                    if len(made := [each for each in self._models if each[3]]) > CLOUDS_KEPT:
                        del self._models[made[0]]  # calls that still run keep its client
                    return self._models[wanted]
                # Of another account the SDKs would add what the environment says of the usual one.
                own = key_env == provider.key_env and self._is_own(provider, base_url)
                # In a thread: importing an SDK takes a second or two, which the event loop must not stand still for.
                self._models[wanted] = await asyncio.to_thread(
                    make_model, provider_name, provider.api, api_key, base_url, own=own
                )
            return self._models[wanted]

    def way(self, called: Called) -> tuple[str, str]:
        """Address, and the name of the key's variable or `none`. Raises SetupError for a pair that is nobody's wish but
        the agent's."""
        provider, config = PROVIDERS[called.name.provider], called.config
        if provider.api == "script":
            return "", NO_KEY
        cloud = cloud_of(called.profile)
        own = provider.base_url if cloud is None else cloud.address
        base_url = config.base_url or self._environ.get(provider.base_url_env) or own
        key_env = config.api_key_env or provider.key_env
        if cloud is not None:
            check_cloud(cloud, by_identity=key_env == IDENTITY)
        if provider.api == "ai":
            check_installed(called.name.provider)
        if not base_url.startswith(("https://", "http://")):
            told = (
                f"base_url {base_url!r}" if base_url else f"base_url of {called.name.provider}, which has none itself,"
            )
            raise SetupError(f"The {told} is no address: it has to begin with https:// or http://.")
        if cloud is None and key_env == provider.key_env and self._is_own(provider, base_url):
            return base_url, key_env
        if called.of_operator:
            at_home = cloud is not None and base_url == cloud.address
            return base_url, key_env if at_home else config.api_key_env or NO_KEY
        if is_among(key_env, base_url, self._places):
            return base_url, key_env
        if config.api_key_env is None and is_among(NO_KEY, base_url, self._places):
            return base_url, NO_KEY
        raise SetupError(
            f"This worker does not send {key_env} to {base_url!r}: its operator may list {key_env}={base_url} in "
            f"{SETTING}, or {NO_KEY}={base_url} for a server that wants no key."
        )

    def _is_own(self, provider: Provider, base_url: str) -> bool:
        own = (provider.base_url, self._environ.get(provider.base_url_env, "").strip())
        return base_url in own or any(is_within(base_url, place) for place in own if place)

    def read_key(self, key_env: str) -> str:
        """Raises SetupError where the worker has none."""
        if key_env in NO_VARIABLES:
            return key_env
        key = self._environ.get(key_env, "").strip()
        if not key:
            raise SetupError(
                f"The environment variable {key_env} is not set on the worker; it has to hold the API key."
            )
        if not (key.isascii() and key.isprintable()):
            raise SetupError(f"The environment variable {key_env} on the worker does not hold a key: odd characters.")
        return key
