"""`longhaul doctor` on the places where sessions are written down: the state store and the blobs."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from temporalio.client import Client

from longhaul.agent.plain.errors import MissingExtra
from longhaul.starter.cli.doctor.local_checks import Check, why_not_writable
from longhaul.starter.reach.connection import Unreachable, blobs_of, keyring_of
from longhaul.starter.reach.storage_places import why_another_store, why_other_blobs
from longhaul.starter.settings import Settings
from longhaul.stores.blobs.blobs import BlobsUnavailable, session_prefix
from longhaul.stores.keys.keyring import BadKeysSetting, KeysUnavailable
from longhaul.stores.state.open_store import open_store, why_not_shared
from longhaul.stores.state.store import BadStoreSetting, StoreError

NOBODY = "longhaul doctor"
"""A user and a session that nobody has: asking for them shows whether there are answers."""
WANTED = {"maxmemory-policy": "noeviction", "appendonly": "yes"}


async def on_the_stores(settings: Settings) -> AsyncIterator[Check]:
    """Whether both can be used, and keep what they are given."""
    yield await store(settings)
    yield await blobs(settings)
    if (encryption := await keys(settings)) is not None:
        yield encryption
    for name, setting in (
        ("store keeps", settings.store),
        ("blobs keep", settings.blobs),
        ("keys keep", settings.keys),
    ):
        if _scheme(setting).partition("+")[0] in ("redis", "rediss"):
            yield await durable(name, setting)


async def store(settings: Settings) -> Check:
    """The same that a worker opens, asked for a user that nobody is."""
    mend = "mend LONGHAUL_STORE, here and for the workers, or start what it names"
    try:
        if settings.shared and (alone := why_not_shared(settings.store)):
            return Check("store", ok=False, detail=alone, mend=mend, essential=True)
        opened = open_store(settings.store, data_dir=settings.data_dir)
        try:
            await opened.list_sessions(NOBODY)
        finally:
            await opened.close()
    except (BadStoreSetting, StoreError) as error:
        return Check("store", ok=False, detail=str(error), mend=mend, essential=True)
    kind = _scheme(settings.store)
    wrong = why_not_writable(Path(unquote(urlsplit(settings.store).path))) if kind == "file" else ""
    return Check("store", not wrong, wrong or f"{kind or settings.store} answers", mend, essential=True)


async def blobs(settings: Settings) -> Check:
    """Asked for the blobs of a session that nobody has."""
    mend = "mend LONGHAUL_BLOBS, here and for the workers, or start what it names"
    try:
        opened = blobs_of(settings)
        try:
            await opened.keys(session_prefix(NOBODY, NOBODY))
        finally:
            await opened.close()
    except (Unreachable, BlobsUnavailable) as error:
        return Check("blobs", ok=False, detail=str(error), mend=mend, essential=True)
    is_folder = _scheme(settings.blobs) in ("", "file")
    wrong = why_not_writable(Path(opened.place)) if is_folder else ""
    return Check("blobs", not wrong, wrong or opened.place, mend, essential=True)


async def keys(settings: Settings) -> Check | None:
    """With which keys sessions are encrypted; None where they are not."""
    mend = "mend LONGHAUL_MASTER_KEY and LONGHAUL_KEYS, here and for the workers, or start what they name"
    try:
        opened = keyring_of(settings)
        if opened is None:
            return None
        try:
            await opened.check()
        finally:
            await opened.close()
    except (BadKeysSetting, KeysUnavailable, MissingExtra) as error:
        return Check("encryption", ok=False, detail=str(error), mend=mend, essential=True)
    return Check("encryption", ok=True, detail=f"on, with keys in {opened.place}", essential=True)


async def same_places(client: Client, settings: Settings) -> AsyncIterator[Check]:
    """Whether the workers that poll now keep sessions and large values where these settings lead."""
    try:
        async with open_store(settings.store, data_dir=settings.data_dir) as store:
            yield _same("workers' store", await why_another_store(client, settings, store))
        large = blobs_of(settings)
        try:
            yield _same("workers' blobs", await why_other_blobs(client, settings, large))
        finally:
            await large.close()
    except (BadStoreSetting, StoreError, Unreachable, BlobsUnavailable):
        return  # said by the checks of the places themselves


def _same(name: str, why: str) -> Check:
    detail, _, mend = why.partition(": set ")
    return Check(name, not why, detail or "no worker has another", f"set {mend}")


async def durable(name: str, url: str) -> Check:
    """Whether a Redis neither forgets what it holds when memory is short, nor with its process."""
    from redis.exceptions import RedisError  # noqa: PLC0415  only who uses Redis waits for it

    from longhaul.stores.state.redis_connection import connect, target_of  # noqa: PLC0415

    try:
        client, sentinels = connect(target_of(url)[0])
    except BadStoreSetting as error:
        return Check(name, ok=False, detail=str(error), mend="mend the address")
    try:
        found = await client.config_get(*WANTED)
    except (RedisError, OSError) as error:
        # Many that are rented out let nobody ask.
        return Check(name, ok=True, detail=f"can't be told: {type(error).__name__}")
    finally:
        for opened in (client, *sentinels):
            await opened.aclose()
    read = {_text(key): _text(value) for key, value in found.items()}
    wrong = [f"{key} {value}" for key, value in WANTED.items() if read.get(key, value) != value]
    shown = ", ".join(f"{key} is {read.get(key, 'not told')}" for key in WANTED)
    return Check(name, not wrong, shown, " and ".join(f"redis-cli CONFIG SET {each}" for each in wrong))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _scheme(setting: str) -> str:
    """Empty for what is no URL."""
    scheme, found, _ = setting.partition("://")
    return scheme if found else ""
