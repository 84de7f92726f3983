"""`longhaul doctor` on what workers would have for sessions: profiles of models, MCP servers, live streams,
notifications and analyzers.
"""

import asyncio
import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from longhaul.activities.mcp.allowed_servers import BadMCPSetting
from longhaul.activities.mcp.survey import Surveyed, surveying
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.profiles import (
    NO_KEY,
    BadKeyPlaces,
    BadProfiles,
    read_key_places,
    read_profiles,
    tells_family,
)
from longhaul.activities.models.providers import Providers
from longhaul.activities.notify.notifications import BadNotifySetting, open_channels
from longhaul.activities.risk_analysis import AnalyzerSetupError, load_analyzers
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.profiles import ModelProfile
from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.secret_values import BadSecrets, read_secrets
from longhaul.stores.streams.open_streams import open_streams, reach
from longhaul.stores.streams.streams import BadStreamsSetting, Streams, StreamsUnavailable

SECONDS = 5.0
"""Within which an address has to say anything at all."""
_FIX_MODEL = "fix [models.{name}] in longhaul.toml, or LONGHAUL_MODELS, where workers start"


async def on_the_models(settings: Settings) -> AsyncIterator[Check]:
    """A check for each profile, whatever is wrong with another one; none where there are no profiles."""
    try:
        tables = _tables(settings.models)
        places = read_key_places(settings.model_keys)
    except (BadProfiles, BadKeyPlaces) as error:
        yield Check("models", ok=False, detail=str(error), fix=_FIX_MODEL.format(name="NAME"))
        return
    checks = [
        _check_model(name, table, Providers(os.environ, places, _read(name, table))) for name, table in tables.items()
    ]
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


async def _check_model(name: str, table: Any, providers: Providers) -> Check:
    title, fix = f"model {name}", _FIX_MODEL.format(name=name)
    try:
        profile = read_profiles({name: table})[name]
        called = providers.look_up(name, ModelConfig())
        address, key_env = providers.way(called) if called is not None else ("", NO_KEY)
    except (BadProfiles, SetupError) as error:
        return Check(title, ok=False, detail=str(error), fix=fix)
    told = f"{profile.provider}:{profile.model}{f' at {address}' if address else ''}"
    if key_env != NO_KEY and not os.environ.get(key_env, "").strip():
        detail = f"{told}: its key is missing, {key_env} is not set here"
        return Check(title, ok=False, detail=detail, fix=f"export {key_env}=… where the worker starts")
    if address and (why := await _silent(address)):
        return Check(title, ok=False, detail=f"{told}: the address does not answer ({why})", fix=fix)
    if not tells_family(profile):
        detail = f"{told}: its family is unknown, so its window, thinking and limits are guessed"
        return Check(title, ok=False, detail=detail, fix=f'write family = "…", or "other", into [models.{name}]')
    return Check(title, ok=True, detail=f"{told}, {'no key' if key_env == NO_KEY else f'{key_env} is set'}")


async def _silent(address: str) -> str:
    """Why nothing comes from there; empty when anything does. No key is sent, so a refusal is an answer."""
    try:
        async with httpx.AsyncClient(timeout=SECONDS) as client:
            await client.get(address)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return type(error).__name__
    return ""


_FIX_SERVER = "fix [mcp.{name}] in longhaul.toml, or LONGHAUL_MCP, where workers start; or start the server"


async def on_the_mcp_servers(settings: Settings) -> AsyncIterator[Check]:
    """None where there are no servers."""
    try:
        secrets = read_secrets(settings)
    except BadSecrets:
        secrets = {}  # said by the check of the secrets
    try:
        folder, hidden = settings.data_dir / "mcp", settings.own_places
        async with surveying(settings.mcp, settings.mcp_allow, secrets, folder, hidden) as survey:
            for found in await asyncio.gather(*map(survey.ask, survey.operators)):
                yield _check_server(found)
    except BadMCPSetting as error:
        yield Check("mcp", ok=False, detail=str(error), fix=_FIX_SERVER.format(name="NAME"))


def _check_server(server: Surveyed) -> Check:
    name, fix = f"mcp {server.name}", _FIX_SERVER.format(name=server.name)
    if server.toolbox is None:
        return Check(name, ok=False, detail=server.told[0], fix=fix)
    about = server.toolbox.descriptors(server.toolbox.names)
    effects = Counter(one.effect.value for one in about)
    shown = ", ".join(f"{count} {effect}" for effect, count in sorted(effects.items()))
    detail = f"{len(about)} tools{f' ({shown})' if shown else ''} at {server.address}"
    return Check(
        name, ok=not server.told, detail=f"{detail}; {'; '.join(server.told)}" if server.told else detail, fix=fix
    )


PROBE = "longhaul doctor"
"""The key of a stream that no session has."""


async def on_the_wiring(settings: Settings) -> AsyncIterator[Check]:
    """What is not set is left out, but for the streams, which every worker has."""
    yield await streams(settings)
    if settings.notify:
        yield notify(settings)
    if settings.analyzers:
        yield analyzers(settings)


async def streams(settings: Settings) -> Check:
    """Written to as a worker does, and read from as a client does, at the address that sessions tell."""
    what = "LONGHAUL_REDIS_URL" if settings.redis_url else "LONGHAUL_DATA_DIR"
    fix = f"start what {what} names, or fix it; until then replies appear when they are complete"
    try:
        opened = open_streams(settings.redis_url, data_dir=settings.data_dir)
        try:
            await _written_and_read(opened, settings)
        finally:
            await opened.close()
    except (BadStreamsSetting, StreamsUnavailable) as error:
        return Check("live streams", ok=False, detail=str(error), fix=fix)
    place = "Redis" if settings.redis_url else "the data directory, for clients on this machine"
    return Check("live streams", ok=True, detail=f"written and read in {place}")


async def _written_and_read(opened: Streams, settings: Settings) -> None:
    await opened.append(PROBE, b"{}\n")
    try:
        seen = await reach(opened.address, redis_url=settings.redis_url)
        reader = seen.reader(PROBE)
        try:
            if not await reader.read(1.0):
                raise StreamsUnavailable("what a worker writes there can't be read by a client")
        finally:
            await reader.close()
            await seen.close()
    finally:
        await opened.delete(PROBE)


def notify(settings: Settings) -> Check:
    """Whether the targets can be used as they are written; nobody is told anything."""
    try:
        found = open_channels(settings.notify)
    except BadNotifySetting as error:
        return Check("notify", ok=False, detail=str(error), fix="fix LONGHAUL_NOTIFY where workers start")
    return Check("notify", ok=True, detail=f"{len(found)} target{'' if len(found) == 1 else 's'}")


def analyzers(settings: Settings) -> Check:
    """Loaded as a worker loads them."""
    try:
        found = load_analyzers(settings.analyzers)
    except AnalyzerSetupError as error:
        return Check("analyzers", ok=False, detail=str(error), fix="fix LONGHAUL_ANALYZERS where workers start")
    return Check("analyzers", ok=True, detail=", ".join(found))
