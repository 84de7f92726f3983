"""Requirements that are checked before a worker starts: stores that all hosts share, and search attributes that the
server knows.
"""

import logging

from temporalio.client import Client
from temporalio.service import RPCError

from longhaul.agent.plain.errors import BadSetup
from longhaul.starter.dev_server.search_attributes import compare, register
from longhaul.starter.settings import Settings
from longhaul.stores.keys.keyring import Keyring, KeysUnavailable, WrongMaster
from longhaul.stores.state.open_store import why_not_shared
from longhaul.stores.state.store import BadStoreSetting
from longhaul.workflows.contract import SEARCH_ATTRIBUTES

log = logging.getLogger(__name__)


class Refusal(BadSetup):
    """Why this worker does not start, and the line that fixes it."""


async def check_lasting(settings: Settings) -> None:
    """Raise Refusal for a Redis that evicts, as store, blobs or keys: without a blob or its key a session can't be
    replayed, and without its record users' deny rules are gone. One that does not answer now is not waited for."""
    places = (("LONGHAUL_STORE", settings.store), ("LONGHAUL_BLOBS", settings.blobs), ("LONGHAUL_KEYS", settings.keys))
    for variable, setting in places:
        if setting.partition("://")[0].partition("+")[0] not in ("redis", "rediss"):
            continue
        from longhaul.stores.state.redis_connection import why_forgetful  # noqa: PLC0415  only who uses Redis loads it

        try:
            why = await why_forgetful(setting)
        except BadStoreSetting:
            continue  # whoever opens it says what is wrong
        if why:
            raise Refusal(
                f"{variable}: this Redis evicts data when memory is short ({why}), and sessions would be "
                "lost; run `redis-cli CONFIG SET maxmemory-policy noeviction` there, or set another address"
            )


async def check_keys(keys: Keyring | None) -> None:
    """Raise WrongMaster where the master key is not the one that was used before: nothing could be read, and half of it
    would be written. A key store that does not answer now is waited for by whatever needs it."""
    try:
        if keys is not None:
            await keys.check()
    except WrongMaster:
        raise
    except KeysUnavailable as error:
        log.warning("%s", error)


def check_shared(settings: Settings) -> None:
    """Raise Refusal for a store or blobs of this host alone, where LONGHAUL_SHARED says that several hosts work."""
    if not settings.shared:
        return
    if why := why_not_shared(settings.store):
        raise Refusal(why)
    if not settings.blobs:
        raise Refusal(
            "LONGHAUL_BLOBS is not set, so that large values would lie in the data directory of each host, but "
            "LONGHAUL_SHARED says that several hosts work: set redis://…, or a directory that all of them mount"
        )
    if settings.master_key.get_secret_value() and not settings.keys.startswith("redis"):
        raise Refusal(
            "LONGHAUL_KEYS leads to a file, so that each host would have keys of its own, but LONGHAUL_SHARED says "
            "that several hosts work: set redis://…"
        )


class NotRegistered(BadSetup):
    """Sessions could not be indexed here, and the line that fixes it."""


async def register_search_attributes(client: Client) -> None:
    """Make sure that the server knows our attributes: an unknown one, or one of another type, fails a workflow task for
    ever. Raises NotRegistered."""
    try:
        compared = await compare(client, SEARCH_ATTRIBUTES)
        if not compared.others and compared.missing:
            await register(client, compared.missing)
    except RPCError as error:
        flags = " ".join(f"--name {name} --type {kind}" for name, kind in SEARCH_ATTRIBUTES.items())
        raise NotRegistered(
            f"the search attributes could not be checked or registered ({error}); run\n"
            f"  temporal operator search-attribute create {flags}\n"
            "or set LONGHAUL_SEARCH_ATTRIBUTES=off for worker and clients"
        ) from error
    if compared.others:
        wrong = "; ".join(map(str, compared.others))
        raise NotRegistered(
            f"sessions could not start in the namespace {client.namespace!r}, whose search attribute {wrong}: "
            f"{compared.remedy}"
        )
