"""Finds the provider of a model's name, its address, and the worker's key for it.

Holds back the calls of one worker with a key that its provider has just limited, and lets them in one after another.

Nothing is held back before a provider says 429. Then no call with that key begins until the time that it asks for is
over, and behind it they begin a gap apart. Each refusal of a call that was let in makes the gap longer, and it shrinks
by itself: so the worker feels its way to what the account allows, which no provider tells in full.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, assert_never

from longhaul.activities.models.apis.vendors import ANTHROPIC, OPENAI, VENDORS, Hosted, check_installed, left_out
from longhaul.activities.models.clouds import Cloud, check_cloud, cloud_of, make_cloud_model
from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import HeldBack, SetupError
from longhaul.activities.models.model import Delta, Model, ModelReply, ModelRequest
from longhaul.activities.models.model_limits import Called, KnownToolLimits, ModelName, parse_model_name
from longhaul.activities.models.profiles import (
    KEYS_SETTING,
    NO_KEY,
    NO_VARIABLES,
    KeyPlace,
    config_with,
    is_among,
    is_within,
    no_profile,
)
from longhaul.activities.models.requests.late_tools import LATE_TOOLS, placed, takes_late_tools
from longhaul.activities.models.requests.refused_parameters import RefusedParameters
from longhaul.activities.models.requests.thinking_origin import OF_MANY_VENDORS, origin_of
from longhaul.activities.models.requests.tool_definitions import ToolNames, called_directly
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.values.spec.known_names import CLOUDS, is_profile_name
from longhaul.agent.values.spec.profiles import IDENTITY, Api, ModelProfile
from longhaul.agent.values.tool_index import head_of

if TYPE_CHECKING:
    import anthropic
    import openai


def make_model(provider_name: str, api: Api, api_key: str, base_url: str, *, own: bool) -> Model:
    """Import what the provider needs, and nothing for the others: a worker has to start within a second."""
    match api:
        case "messages":
            from longhaul.activities.models.apis.anthropic import AnthropicModel  # noqa: PLC0415  see the docstring

            return AnthropicModel(_anthropic(api_key, base_url, own=own))
        case "responses":
            from longhaul.activities.models.apis.openai_responses import OpenAIResponsesModel  # noqa: PLC0415

            return OpenAIResponsesModel(_openai(api_key, base_url, own=own and provider_name == "openai"))
        case "chat":
            from longhaul.activities.models.apis.openai_chat import OpenAIChatModel  # noqa: PLC0415

            client = _openai(api_key, base_url, own=own and provider_name == "openai-chat")
            return OpenAIChatModel(client, dashscope=provider_name == "qwen")
        case "ai":
            from longhaul.activities.models.apis.vendor_model import VendorModel  # noqa: PLC0415

            return VendorModel(provider_name, api_key, Hosted(base_url))
        case "script":
            from longhaul.activities.models.scripted_model import ScriptedModel  # noqa: PLC0415

            return ScriptedModel()
        case _ as never:
            assert_never(never)


def _anthropic(api_key: str, base_url: str, *, own: bool) -> "anthropic.AsyncAnthropic":
    import anthropic  # noqa: PLC0415

    from longhaul.activities.models.apis.answer_bytes import bound  # noqa: PLC0415  it imports an HTTP client

    headers = None if own else left_out(anthropic.Omit(), api_key, *ANTHROPIC)
    http = anthropic.DefaultAsyncHttpxClient(event_hooks={"response": [bound]})
    return anthropic.AsyncAnthropic(
        api_key=api_key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
    )


def _openai(api_key: str, base_url: str, *, own: bool) -> "openai.AsyncOpenAI":
    import openai  # noqa: PLC0415

    from longhaul.activities.models.apis.answer_bytes import bound  # noqa: PLC0415

    headers = None if own else left_out(openai.Omit(), api_key, *OPENAI)
    http = openai.DefaultAsyncHttpxClient(event_hooks={"response": [bound]})
    return openai.AsyncOpenAI(
        api_key=api_key, base_url=base_url, max_retries=0, default_headers=headers, http_client=http
    )


log = logging.getLogger(__name__)

FIRST_GAP_SECONDS = 0.1
LONGEST_GAP_SECONDS = 5.0
SMALLEST_GAP_SECONDS = 0.01
"""A shorter one is none."""
HALF_LIFE_SECONDS = 10.0
"""Of a gap. A gap that shrank faster would find the limit again each few seconds, at the price of a refusal."""
CLOSED_SECONDS = 60.0
"""At most, for calls that were not refused themselves: often the limit is that of one model, and a mistaken hour must
not stop every session of the worker. Then one of them finds out."""
HELD_SECONDS = 10.0
"""A call that would wait longer is given back to the server: it holds no place on the worker then, and the session
is told what it waits for."""


class KeyLimit:
    """Of one key in one worker process. For its event loop alone: nothing here awaits but `enter`."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        """For logs: a digest, never the key."""
        self._opens_at = 0.0
        self._next_turn = 0.0
        self._gap = 0.0
        self._round = 0
        """How often a call was refused that was let in behind the refusal before."""

    async def enter(self) -> int:
        """Wait for a turn; the round in which the call is let in, for `refused`. Raises HeldBack."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + HELD_SECONDS
        while True:
            turn, drawn_in = self._draw(loop.time(), latest), self._round
            if (wait := turn - loop.time()) <= 0:
                return drawn_in
            await asyncio.sleep(wait)
            if drawn_in == self._round and turn >= self._opens_at:
                return drawn_in

    def refused(self, let_in: int, told_seconds: float | None) -> None:
        """The provider has limited a call that was let in then, and asks for so long a pause, if it says one."""
        now = asyncio.get_running_loop().time()
        if let_in == self._round:  # else it was under way when another one was refused, and says nothing new
            self._gap = min(max(2 * self._gap_at(now), FIRST_GAP_SECONDS), LONGEST_GAP_SECONDS)
            self._round += 1
        opens_at = now + min(max(told_seconds or 0.0, self._gap), CLOSED_SECONDS)
        if opens_at > self._opens_at:
            self._opens_at = opens_at
            self._next_turn = opens_at + random.uniform(0.0, self._gap)  # noqa: S311  no secret hangs on it
            log.info(
                "calls with the key %s wait for %.1f s, because the provider limits their rate",
                self._name,
                opens_at - now,
            )

    def _draw(self, now: float, latest: float) -> float:
        """The moment of the next turn, which is taken with it."""
        turn = max(now, self._next_turn)
        if turn > latest:
            raise HeldBack(turn - now)
        if gap := self._gap_at(turn):
            self._next_turn = turn + gap * random.uniform(0.5, 1.5)  # noqa: S311
        return turn

    def _gap_at(self, moment: float) -> float:
        gap = self._gap * 0.5 ** (max(0.0, moment - self._opens_at) / HALF_LIFE_SECONDS)
        return gap if gap >= SMALLEST_GAP_SECONDS else 0.0


def key_digest(key: str, base_url: str) -> str:
    """Names a key in logs. `base_url` stands for a server that wants none."""
    return hashlib.sha256(f"{base_url}\n{key}".encode()).hexdigest()[:12]


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
        self._refused = RefusedParameters()
        self._making = asyncio.Lock()

    async def call(self, full_model_name: str, request: ModelRequest, on_delta: Callable[[Delta], None]) -> ModelReply:
        """One call; `request.model` and what a profile says are put in here.

        Raises the SDKs' errors and `activities.models.failures.status_table`, all of which
        `failures.failure_classification.judge` knows, and TimeoutError after `call_timeout_seconds`. Cancelling closes
        the connection. While the provider limits the key the call waits for its turn first.
        """
        called = self._find(full_model_name, request.config)
        way = self.way(called)
        model = await self._find_model(called, *way)
        name = called.name.name if called.profile is None else called.profile.told_by
        # Of many tools the head of the request has names alone.
        head = head_of(request.tools)
        asked = replace(request, model=name, tools=head, config=called.config, profile=called.profile)
        # A script is written with the tools' own names.
        scripted = PROVIDERS[called.name.provider].api == "script"
        names = ToolNames([] if scripted else [tool.name for tool in head])
        native = takes_late_tools(PROVIDERS[called.name.provider].api, way[0], name)

        async def ask(left: ModelRequest) -> ModelReply:
            late = native and LATE_TOOLS not in left.refused
            told = left if scripted else placed(left, head, native=late)
            return await model.call(told, names.heard(on_delta))

        limit = KeyLimit() if scripted else self._limit_of(*way)
        let_in = await limit.enter()
        try:
            async with asyncio.timeout(request.config.call_timeout_seconds):
                reply = await self._tool_limits.asked(
                    called.name.provider,
                    way[0],
                    names.into(asked),
                    lambda fit: self._refused.asked(way[0], fit, ask),
                )
                return called_directly(names.out_of(reply), request.tools)
        except Exception as error:
            action = judge(error)
            if action.error_type == "rate_limit" and action.kind in ("retry", "retry_after"):
                limit.refused(let_in, action.delay_seconds)
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
            f"{KEYS_SETTING}, or {NO_KEY}={base_url} for a server that wants no key."
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
