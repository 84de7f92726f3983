"""`longhaul doctor` on the operator's profiles of models: can each be read, has it its key, does it lead somewhere."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.profiles import NO_KEY, BadKeyPlaces, BadProfiles, read_key_places, read_profiles
from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile, tells_family
from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.settings import Settings

SECONDS = 5.0
"""Within which an address has to say anything at all."""
_MEND = "mend [models.{name}] in longhaul.toml, or LONGHAUL_MODELS, where workers start"


async def on_the_models(settings: Settings) -> AsyncIterator[Check]:
    """A check for each profile, whatever is wrong with another one; none where there are no profiles."""
    try:
        tables = _tables(settings.models)
        places = read_key_places(settings.model_keys)
    except (BadProfiles, BadKeyPlaces) as error:
        yield Check("models", ok=False, detail=str(error), mend=_MEND.format(name="NAME"))
        return
    checks = [_check(name, table, Providers(os.environ, places, _read(name, table))) for name, table in tables.items()]
    for check in await asyncio.gather(*checks):
        yield check


def _tables(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Raises BadProfiles for what is no list of tables."""
    if not isinstance(given, str):
        return given
    try:
        tables = json.loads(given.strip() or "{}")
    except (ValueError, RecursionError):
        tables = None
    if not isinstance(tables, dict):
        read_profiles(given)  # which says what is wrong
    return tables if isinstance(tables, dict) else {}


def _read(name: str, table: Any) -> dict[str, ModelProfile]:
    try:
        return read_profiles({name: table})
    except BadProfiles:
        return {}


async def _check(name: str, table: Any, providers: Providers) -> Check:
    title, mend = f"model {name}", _MEND.format(name=name)
    try:
        profile = read_profiles({name: table})[name]
        called = providers.look_up(name, ModelConfig())
        address, key_env = providers.way(called) if called is not None else ("", NO_KEY)
    except (BadProfiles, SetupError) as error:
        return Check(title, ok=False, detail=str(error), mend=mend)
    told = f"{profile.provider}:{profile.model}{f' at {address}' if address else ''}"
    if key_env != NO_KEY and not os.environ.get(key_env, "").strip():
        detail = f"{told}: its key is missing, {key_env} is not set here"
        return Check(title, ok=False, detail=detail, mend=f"export {key_env}=… where the worker starts")
    if address and (why := await _silent(address)):
        return Check(title, ok=False, detail=f"{told}: the address does not answer ({why})", mend=mend)
    if not tells_family(profile):
        detail = f"{told}: its family is not known, so its window, thinking and limits are guessed"
        return Check(title, ok=False, detail=detail, mend=f'write family = "…", or "other", into [models.{name}]')
    return Check(title, ok=True, detail=f"{told}, {'no key' if key_env == NO_KEY else f'{key_env} is set'}")


async def _silent(address: str) -> str:
    """Why nothing comes from there; empty when anything does. No key is sent, so a refusal is an answer."""
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            await client.get(address)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return type(error).__name__
    return ""
