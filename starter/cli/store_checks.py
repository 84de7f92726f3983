"""What `longhaul doctor` looks at where sessions are written down: the state store and the blobs."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from activities.blobs.blobs import BlobsUnavailable, session_prefix
from activities.stores.opening import open_store, why_not_shared
from activities.stores.store import BadStoreSetting, StoreError
from starter.cli.checks import Check, why_not_writable
from starter.connection import Unreachable, blobs_of
from starter.settings import Settings

NOBODY = "longhaul doctor"
"""A user and a session that nobody has: asking for them shows whether there are answers."""
WANTED = {"maxmemory-policy": "noeviction", "appendonly": "yes"}


async def on_the_stores(settings: Settings) -> AsyncIterator[Check]:
    """Whether both can be used, and keep what they are given."""
    yield await store(settings)
    yield await blobs(settings)
    for name, setting in (("store keeps", settings.store), ("blobs keep", settings.blobs)):
        if _scheme(setting).partition("+")[0] in ("redis", "rediss"):
            yield await durable(name, setting)


async def store(settings: Settings) -> Check:
    """The same that a worker opens, asked for a user that nobody is."""
    mend = "mend LONGHAUL_STORE, here and for the workers, or start what it names"
    try:
        if settings.shared and (alone := why_not_shared(settings.store)):
            return Check("store", ok=False, detail=alone, mend=mend)
        opened = open_store(settings.store, data_dir=settings.data_dir)
        try:
            await opened.list_sessions(NOBODY)
        finally:
            await opened.close()
    except (BadStoreSetting, StoreError) as error:
        return Check("store", ok=False, detail=str(error), mend=mend)
    kind = _scheme(settings.store)
    wrong = why_not_writable(Path(unquote(urlsplit(settings.store).path))) if kind == "file" else ""
    return Check("store", not wrong, wrong or f"{kind or settings.store} answers", mend)


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
        return Check("blobs", ok=False, detail=str(error), mend=mend)
    is_folder = _scheme(settings.blobs) in ("", "file")
    wrong = why_not_writable(Path(opened.place)) if is_folder else ""
    return Check("blobs", not wrong, wrong or opened.place, mend)


async def durable(name: str, url: str) -> Check:
    """Whether a Redis neither forgets what it holds when memory is short, nor with its process."""
    from redis.exceptions import RedisError  # noqa: PLC0415  only who uses Redis waits for it

    from activities.stores.redis_connection import connect, target_of  # noqa: PLC0415

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
