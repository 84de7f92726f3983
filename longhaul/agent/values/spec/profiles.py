"""A profile is a model under a name of one's own: where it is, by which key it is called, and what its requests hold.

They stand under `[models.NAME]`: in the workers' `longhaul.toml`, which their operator writes, and in an agent.
"""

import json
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.plain.values import Many, Value, sparse
from longhaul.agent.values.budget import Price
from longhaul.agent.values.spec.known_names import CLOUDS, PROVIDERS, EffortName, is_profile_name

Api = Literal["messages", "responses", "chat", "script", "ai"]

APIS: Mapping[str, Api] = {
    "anthropic": "messages",
    "openai": "responses",
    "openai-chat": "chat",
    "qwen": "chat",
    "xai": "responses",
    "scripted": "script",
    **{name: "ai" for name in (*PROVIDERS, *CLOUDS) if name.startswith("ai:")},
    "azure": "responses",
    "azure-chat": "chat",
    **{name: "messages" for name in CLOUDS if not name.startswith(("ai:", "azure"))},
}
"""By provider: `activities.models.providers` has their addresses."""

OF_APIS: Mapping[Api, frozenset[str]] = {
    "messages": frozenset(
        {"headers", "betas", "extra_body", "effort", "temperature", "top_p", "stop", "service_tier", "cache_ttl"}
    ),
    "responses": frozenset(
        {"headers", "extra_body", "effort", "temperature", "top_p", "verbosity", "service_tier", "background"}
    ),
    "chat": frozenset(
        {
            *("headers", "extra_body", "effort", "temperature", "top_p", "seed", "stop", "verbosity", "service_tier"),
            "token_field",
        }
    ),
    "script": frozenset(),
    "ai": frozenset({"headers", "extra_body", "effort", "temperature", "top_p", "seed", "stop"}),
}
"""What a profile may say of requests, by the API that has a field for it."""
_LACKED: Mapping[str, frozenset[str]] = {
    "ai:cohere": frozenset({"extra_body", "headers"}),
    "ai:google": frozenset({"extra_body"}),
    "ai:google-vertex": frozenset({"extra_body"}),
    "ai:mistral": frozenset({"extra_body", "headers"}),
}
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "azure": ("base_url",),
    "azure-chat": ("base_url",),
    "bedrock": ("region",),
    "bedrock-mantle": ("region",),
    "foundry": ("base_url",),
    "vertex": ("region", "project"),
    "ai:bedrock": ("region",),
    "ai:google-vertex": ("region", "project"),
}
"""Of clouds."""
_OF_CLOUDS: Mapping[str, tuple[str, ...]] = {
    "region": ("bedrock", "bedrock-mantle", "vertex", "ai:bedrock", "ai:google-vertex"),
    "project": ("vertex", "ai:google-vertex"),
    "api_version": ("azure", "azure-chat"),
}
_OF_REQUESTS = frozenset[str]().union(*OF_APIS.values())
_OF_SERVERS = frozenset({"base_url", "api_key_env", "family"})
_API_NAMES: Mapping[Api, str] = {
    "messages": "Anthropic's Messages API",
    "responses": "OpenAI's Responses API",
    "chat": "the Chat Completions API",
    "script": "a script",
    "ai": "what is called through pydantic-ai",
}
_OPENAI_TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
_TIERS = {"messages": ("auto", "standard_only"), "responses": _OPENAI_TIERS, "chat": _OPENAI_TIERS}
_MOST_STOPS = 4
"""More than these no server of Chat Completions has to take."""

_OURS = frozenset(
    {
        *("model", "messages", "input", "system", "instructions", "tools", "tool_choice", "stream", "stream_options"),
        *("store", "max_tokens", "max_completion_tokens", "max_output_tokens", "previous_response_id", "conversation"),
    }
)
"""Of a request's body: through another value the session would be sent otherwise than it is recorded."""
_SAID_ELSEWHERE: Mapping[str, str] = {
    **{name: name for name in ("temperature", "top_p", "seed", "stop", "verbosity", "service_tier")},
    "stop_sequences": "stop",
    "reasoning_effort": "effort",
    "output_config": "effort",
    "text": "verbosity",
}
_CREDENTIALS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"})
_OF_THE_CONNECTION = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "content-encoding", "transfer-encoding", "te"),
        *("upgrade", "trailer", "keep-alive", "expect", "accept", "accept-encoding"),
    }
)

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(/[^\s?#@%\\]*)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$&'*+.^_`|~-]{1,100}")
_BETA = re.compile(r"[A-Za-z0-9._-]{1,100}")
_FAMILY = re.compile(r"[A-Za-z](?=\S*\d)[A-Za-z0-9._/-]*|other")
"""Which of them are known, the rules that ship with the activities say."""
_PLACE = re.compile(r"[a-z][a-z0-9-]{0,62}")
"""Of a region it becomes a part of the host's name: without dots it leads to no other server."""
_API_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}")
_LONGEST_BODY = 20_000
"""Characters of JSON: it goes with each request, and an agent's is recorded."""
_OWN = "LONGHAUL_"
IDENTITY = "identity"
"""In the place of a key's name: the worker signs in as what it runs as."""


class ModelProfile(Value):
    """A model under a name of your own. Its settings take precedence over `[model_config]`, which is for all models of
    an agent."""

    provider: str
    """Which API the model has and how a worker signs in: `anthropic`, `openai`, `openai-chat`, `qwen`, `xai`,
    `ai:VENDOR`, `scripted`, or a cloud."""
    model: str = Field(min_length=1, max_length=500)
    """Name of the model at the server."""
    base_url: str | None = sparse(None, max_length=1_000)
    """Address of the server. None = the provider's environment variable or address."""
    api_key_env: str | None = sparse(None, max_length=200)
    """Name of the worker's variable with the key, `none`, or for clouds `identity`: the worker signs in as the account
    that it runs as. None = the provider's usual variable, at the provider's own address. For an agent's profile, the
    workers' operator must list the pair of key and address."""
    region: str | None = sparse(None, max_length=63)
    """Region of AWS, such as `us-east-1`, or of Google Cloud, such as `us-east5` or `global`."""
    project: str | None = sparse(None, max_length=63)
    """Project of Google Cloud."""
    api_version: str | None = sparse(None, max_length=63)
    """Version of Azure's API, such as `2025-04-01-preview`. None = the undated API, `/openai/v1`."""
    family: str | None = sparse(None, max_length=200)
    """The maker's name of the model, if `model` is a gateway's name or your own: `claude-opus-4-8`, `gpt-5.1`; `other`
    for an unknown model. None = `model` says it."""
    headers: dict[str, str] = sparse({}, max_length=20)
    betas: Many[str] = sparse((), max_length=20)
    """Values for the header `anthropic-beta`, besides those that Longhaul needs."""
    extra_body: dict[str, JsonValue] = sparse({}, max_length=50)
    """Further fields of the request's body."""
    effort: EffortName | None = sparse(None)
    """As `reasoning_effort` in `[model_config]`."""
    temperature: float | None = sparse(None, ge=0, le=2)
    top_p: float | None = sparse(None, ge=0, le=1)
    seed: int | None = sparse(None, ge=-(2**63), lt=2**63)
    stop: Many[str] = sparse((), max_length=_MOST_STOPS)
    verbosity: Literal["low", "medium", "high"] | None = sparse(None)
    service_tier: str | None = sparse(None)
    background: bool | None = sparse(None)
    """OpenAI produces the answer even if the worker stops listening, and stores it for some minutes. After a crash
    another worker fetches it. Not for accounts that store nothing."""
    cache_ttl: Literal["5m", "1h"] | None = sparse(None)
    """How long Anthropic caches what it has read. One hour costs 2 instead of 1.25 times the input price, but the cache
    survives an approval that takes more than five minutes."""
    token_field: Literal["max_tokens", "max_completion_tokens"] | None = sparse(None)
    """The server's name for the limit of output tokens. None = `max_completion_tokens` at OpenAI's own address."""
    max_output_tokens: int | None = sparse(None, ge=1, le=10**15)
    """Limit of output tokens for one answer, if the agent's limit is higher."""
    context_length: int | None = sparse(None, ge=1_000, le=10**15)
    """Size of the window in tokens. None = known from the family."""
    prices: Price | None = sparse(None)
    """Prices for the metric of costs. Only in the workers' `longhaul.toml`."""

    @field_validator("provider")
    @classmethod
    def _is_known(cls, provider: str) -> str:
        if provider not in APIS:
            raise ValueError(f"there is no provider {provider!r}; {did_you_mean(provider, APIS)}")
        return provider

    @field_validator("model")
    @classmethod
    def _is_a_name(cls, model: str) -> str:
        if not model.strip() or not model.isprintable():
            raise ValueError("it has to be the server's own name of the model")
        return model.strip()

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, base_url: str | None) -> str | None:
        if base_url is not None and not (base_url.isascii() and _ADDRESS.fullmatch(base_url)):
            raise ValueError("it has to be a plain address: https://HOST/PATH or http://HOST:PORT/PATH")
        return base_url

    @field_validator("api_key_env")
    @classmethod
    def _is_a_variable(cls, name: str | None) -> str | None:
        if name is not None and not _VARIABLE.fullmatch(name):
            raise ValueError("it has to be the name of a variable of the worker, or none; the key itself stands there")
        if name is not None and name.upper().startswith(_OWN):
            raise ValueError(f"the {_OWN}… variables are the worker's own, and hold no key of a model's provider")
        return name

    @field_validator("region", "project")
    @classmethod
    def _is_a_place(cls, name: str | None) -> str | None:
        if name is not None and not _PLACE.fullmatch(name):
            raise ValueError("it has to be of small letters, digits and dashes, as us-east-1 or my-project")
        return name

    @field_validator("api_version")
    @classmethod
    def _is_a_version(cls, version: str | None) -> str | None:
        if version is not None and not _API_VERSION.fullmatch(version):
            raise ValueError("it has to be a version of Azure's API, as 2025-04-01-preview")
        return version

    @field_validator("family")
    @classmethod
    def _is_a_family(cls, family: str | None) -> str | None:
        if family is None:
            return None
        if not _FAMILY.fullmatch(family):
            raise ValueError("write the maker's own name with its version: claude-opus-4-8, gpt-5.1; or other")
        return family.replace(".", "-") if family.startswith("claude-") else family

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not _HEADER.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a header")
            if name.lower() in _CREDENTIALS:
                raise ValueError(f"{name} holds a credential: name the variable with the key in api_key_env")
            if name.lower() == "anthropic-beta":
                raise ValueError(f"{name}: write it into betas")
            if name.lower() in _OF_THE_CONNECTION:
                raise ValueError(f"{name} is made with each request; leave it out")
            if not (value.isascii() and value.isprintable()) or len(value) > 1_000:
                raise ValueError(f"{name}: a value has at most 1,000 characters of plain text")
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a header stands there twice")
        return headers

    @field_validator("betas")
    @classmethod
    def _are_betas(cls, betas: tuple[str, ...]) -> tuple[str, ...]:
        for beta in betas:
            if not _BETA.fullmatch(beta):
                raise ValueError(f"{beta!r} is no name of a beta, as in context-1m-2025-08-07")
        return betas

    @field_validator("extra_body")
    @classmethod
    def _is_beside_ours(cls, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for name in body:
            if name in _OURS:
                raise ValueError(f"{name} is made from the session; leave it out")
            if name in _SAID_ELSEWHERE:
                raise ValueError(f"{name}: write it as {_SAID_ELSEWHERE[name]} of the profile")
        if (size := len(json.dumps(body))) > _LONGEST_BODY:
            raise ValueError(f"it has {size} characters of JSON; {_LONGEST_BODY} are allowed")
        return body

    @field_validator("stop")
    @classmethod
    def _are_words(cls, stop: tuple[str, ...]) -> tuple[str, ...]:
        if not all(0 < len(word.strip()) <= len(word) <= 200 for word in stop):
            raise ValueError("each has to have between one and 200 characters that are not all blank")
        return stop

    @model_validator(mode="after")
    def _asks_for_what_its_api_has(self) -> "ModelProfile":
        api = self.api
        for name in ModelProfile.model_fields:
            of_requests = name in _OF_REQUESTS and name not in fields_of(self.provider)
            if (of_requests or (api == "script" and name in _OF_SERVERS)) and self._says(name):
                plain = [provider for provider in PROVIDERS if APIS[provider] != "ai"]
                having = [provider for provider in plain if name in OF_APIS[APIS[provider]]]
                hint = f", {', '.join(having)} {'has' if len(having) == 1 else 'have'} it" if having else ""
                raise ValueError(f"{name}: {_API_NAMES[api]} has no such thing{hint}; leave it out")
        if self.service_tier is not None and self.service_tier not in _TIERS[api]:
            hint = did_you_mean(self.service_tier, _TIERS[api])
            raise ValueError(f"service_tier: {_API_NAMES[api]} has no {self.service_tier!r}; {hint}")
        return self

    @model_validator(mode="after")
    def _says_where_its_cloud_is(self) -> "ModelProfile":
        for name, having in _OF_CLOUDS.items():
            if self.provider not in having and self._says(name):
                raise ValueError(f"{name}: {self.provider} has no such thing, {', '.join(having)} may; leave it out")
        for name in _NEEDED.get(self.provider, ()):
            if not self._says(name):
                raise ValueError(f"{name}: {self.provider} needs one")
        if self.api_key_env == IDENTITY and self.provider not in CLOUDS:
            raise ValueError(f"api_key_env: {IDENTITY} is for {', '.join(CLOUDS)}; name the variable with the key")
        return self

    @property
    def api(self) -> Api:
        return APIS[self.provider]

    @property
    def told_by(self) -> str:
        """The name by which the model's family is told."""
        return self.family or self.model

    def _says(self, name: str) -> bool:
        return getattr(self, name) not in (None, (), {})


def fields_of(provider: str) -> frozenset[str]:
    """What a profile of it may say of requests."""
    return OF_APIS[APIS[provider]] - _LACKED.get(provider, frozenset())


def check_names(profiles: Mapping[str, ModelProfile]) -> None:
    """Raise ValueError for a name that no model could be called by."""
    for name in profiles:
        if not is_profile_name(name):
            raise ValueError(
                f"models: {name[:100]!r} can't be the name of a profile: at most 100 letters, digits, dots, dashes and "
                "underscores, and no provider's name"
            )
