"""Reads the profiles of models that a worker's operator has written, and puts what a profile says into requests.

Decides which of the worker's keys may go to which address. Whoever starts a session names both, and must not choose
the pair: it is in the operator's list, or the provider's own.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from longhaul.activities.models.model import ModelRequest, scrub_json
from longhaul.activities.models.requests.model_parameters import is_reasoning_model
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.agent.plain.errors import BadSetup, what_is_wrong
from longhaul.agent.plain.text import LONGEST_NAME, did_you_mean, nearest
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import EXAMPLES
from longhaul.agent.values.spec.profiles import IDENTITY, Api, ModelProfile, check_names

KEYS_SETTING = "LONGHAUL_MODEL_KEYS"
NO_KEY = "none"
"""Stands for a key in the list, and is what a server of one's own is sent: SDKs insist on something."""
NO_VARIABLES = (NO_KEY, IDENTITY)
"""What may stand in the place of a variable's name."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORTS = {"https": 443, "http": 80}


class BadKeyPlaces(BadSetup):
    """The operator's list can't be read; the sentence says which part, and what to write."""


@dataclass(frozen=True, slots=True)
class KeyPlace:
    key_env: str
    """Name of the worker's variable, `none` or `identity`."""
    base_url: str

    def covers(self, key_env: str, base_url: str) -> bool:
        """Whether that key may go to that address: this one, or one below it on the same server."""
        return key_env == self.key_env and is_within(base_url, self.base_url)


def read_key_places(setting: str) -> tuple[KeyPlace, ...]:
    """From `TEAM_KEY=https://models.example/v1, none=http://127.0.0.1:8000/v1`. Raises BadKeyPlaces."""
    return tuple(_places(setting))


def _places(setting: str) -> Iterator[KeyPlace]:
    for part in filter(None, (part.strip() for part in setting.split(","))):
        name, _, address = (half.strip() for half in part.partition("="))
        if not _NAME.fullmatch(name) or _server(address) is None:
            raise BadKeyPlaces(
                f"{KEYS_SETTING}: {part!r} is no pair of a variable and an address; write NAME=https://HOST/PATH, or "
                f"{NO_KEY}=http://HOST:PORT/PATH for a server that wants no key"
            )
        yield KeyPlace(name, address)


def is_within(address: str, place: str) -> bool:
    """Whether an address is that place or lies below it: same scheme, host and port, and a path that begins alike."""
    server = _server(address)
    if server is None or server != _server(place):
        return False
    path, root = (urlsplit(url).path.rstrip("/") for url in (address, place))
    return path == root or path.startswith(f"{root}/")


def is_among(key_env: str, base_url: str, places: Sequence[KeyPlace]) -> bool:
    return any(place.covers(key_env, base_url) for place in places)


def _server(address: str) -> tuple[str, str, int] | None:
    """Scheme, host and port; None for what is no plain address: names, queries and dots could lead elsewhere."""
    if not address.isascii() or not address.isprintable() or re.search(r"[\s\\@?#%]|/\.{1,2}(/|$)", address):
        return None
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


PROFILES_SETTING = "LONGHAUL_MODELS"
BETA = "anthropic-beta"
_LIST = TypeAdapter(dict[str, ModelProfile])

_BODY: Mapping[Api, Mapping[str, str]] = {
    "messages": {"top_p": "top_p", "stop": "stop_sequences", "service_tier": "service_tier"},
    "responses": {"top_p": "top_p", "service_tier": "service_tier"},
    "chat": {name: name for name in ("top_p", "seed", "stop", "verbosity", "service_tier")},
    "script": {},
}
"""What a profile says, by the API's own name of it."""
_LIMITS = ("max_tokens", "max_completion_tokens")


class BadProfiles(BadSetup):
    """The operator's profiles can't be read; the sentence says which one, and what to write."""


def read_profiles(given: Mapping[str, Any] | str) -> dict[str, ModelProfile]:
    """From tables `[models.NAME]` of `longhaul.toml`, or the same as JSON in LONGHAUL_MODELS. Raises BadProfiles."""
    try:
        tables = json.loads(given.strip() or "{}") if isinstance(given, str) else given
        profiles = _LIST.validate_python(tables)
        check_names(profiles)
    except ValidationError as error:
        raise BadProfiles(f"{PROFILES_SETTING}: models.{what_is_wrong(error)}") from None
    except (ValueError, RecursionError) as error:
        raise BadProfiles(
            f"{PROFILES_SETTING}: {error}; write [models.NAME] into longhaul.toml, or the same as JSON"
        ) from None
    return profiles


def keys_of(profiles: Mapping[str, ModelProfile]) -> list[KeyPlace]:
    """Where the operator's profiles send which key, as far as they name both."""
    return [
        KeyPlace(profile.api_key_env or NO_KEY, profile.base_url or "")
        for profile in profiles.values()
        if profile.api_key_env or profile.base_url
    ]


_PREFIXES = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "ai:google",
    "x-ai": "xai",
    "qwen": "qwen",
    "deepseek": "ai:deepseek",
    "moonshotai": "ai:moonshotai",
    "zai": "ai:zai",
    "mistral": "ai:mistral",
}
"""By the makers of models that are known."""


def no_profile(name: str, known: Iterable[str]) -> str:
    """The sentence about a name that stands for nothing here, without its full stop."""
    prefix = _PREFIXES.get(rules_of(name).maker)
    if prefix is not None and not nearest(name, known):
        return (
            f"no model is named {name[:LONGEST_NAME]!r} here without its provider: "
            f"did you mean {f'{prefix}:{name}'[:LONGEST_NAME]!r}?"
        )
    return (
        f"no model is named {name[:LONGEST_NAME]!r} in the agent's [models] nor in those of the workers that were "
        f"asked ({PROFILES_SETTING}); {did_you_mean(name, known)}; without a profile write {EXAMPLES}"
    )


def config_with(profile: ModelProfile, config: ModelConfig) -> ModelConfig:
    """The profile's word counts before the agent's, which is for all of its models. Of two limits the lower one."""
    return config.model_copy(
        update={
            "base_url": profile.base_url,
            "api_key_env": profile.api_key_env,
            "reasoning_effort": profile.effort or config.reasoning_effort,
            "temperature": config.temperature if profile.temperature is None else profile.temperature,
            "context_length": profile.context_length or config.context_length,
            "max_output_tokens": min(config.max_output_tokens, profile.max_output_tokens or config.max_output_tokens),
            "profiles": {},
        }
    )


def tells_family(profile: ModelProfile) -> bool:
    """Whether it is known by which rules the model is asked, or the profile says that there are none. What is called
    through pydantic-ai, the library knows."""
    return profile.api in ("ai", "script") or profile.family == "other" or rules_of(profile.told_by).is_known


def is_told_to_reason(request: ModelRequest) -> bool:
    """Whether a profile says so: then a compatible server takes what OpenAI's own takes."""
    told = request.profile.family if request.profile is not None else None
    return told is not None and is_reasoning_model(told)


def profiled(
    payload: dict[str, Any],
    request: ModelRequest,
    headers: Mapping[str, object] | None = None,
    *,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """The SDK's arguments for the request with what its profile adds. `headers`: the client's, for betas that stand
    there: a header of the request takes the place of the client's. `without`: what of the profile its model refuses."""
    profile = request.profile
    if profile is None:
        return payload
    said = {**payload, "model": profile.model}
    body = _body(profile, without)
    if body:
        said["extra_body"] = {**payload.get("extra_body", {}), **body}
    if added := _headers(profile, payload.get("extra_headers", {}), headers or {}):
        said["extra_headers"] = added
    if profile.cache_ttl is not None:
        said = {name: _kept_for(value, profile.cache_ttl) if name in _MARKED else value for name, value in said.items()}
    if profile.token_field is not None:
        limit = next(said.pop(name) for name in _LIMITS if name in said)
        said[profile.token_field] = limit
    return said


def _body(profile: ModelProfile, without: Collection[str]) -> dict[str, Any]:
    """In the SDKs' `extra_body`, whatever their versions have arguments for."""
    stated = {field: getattr(profile, name) for name, field in _BODY[profile.api].items() if name not in without}
    body = {field: list(value) if isinstance(value, tuple) else value for field, value in stated.items()}
    if profile.api == "responses" and profile.verbosity is not None:
        body["text"] = {"verbosity": profile.verbosity}
    kept = {field: value for field, value in body.items() if value not in (None, [])}
    return {**kept, **scrub_json(profile.extra_body)}


def _headers(profile: ModelProfile, of_request: Mapping[str, str], of_client: Mapping[str, object]) -> dict[str, str]:
    headers = {**of_request, **profile.headers}
    if profile.betas:
        headers[BETA] = with_betas(of_request.get(BETA) or of_client.get(BETA), profile.betas)
    return headers


def with_betas(before: object, betas: Iterable[str]) -> str:
    """The header with these behind those that stood there, if any: one of the request takes the client's place."""
    named = before.split(",") if isinstance(before, str) else []
    return ",".join(dict.fromkeys([*filter(None, named), *betas]))


_MARKED = ("system", "tools", "messages")
"""Where `activities.models.apis.anthropic` sets marks for the cache."""


def _kept_for(parts: list[dict[str, Any]], ttl: str) -> list[dict[str, Any]]:
    marked: list[dict[str, Any]] = []
    for part in parts:
        if "cache_control" in part:
            marked.append({**part, "cache_control": {**part["cache_control"], "ttl": ttl}})
        elif part.get("role") and isinstance(part.get("content"), list):
            marked.append({**part, "content": _kept_for(part["content"], ttl)})
        else:
            marked.append(part)
    return marked
