"""One way to reach Temporal, for everybody who does."""

import atexit
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import Client, GrpcCompression
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from longhaul.agent.plain.errors import Unavailable
from longhaul.starter.reach.connection_settings import bad_connection, connection_settings, why_not_reached
from longhaul.starter.reach.query_retries import AsksAgain
from longhaul.starter.reach.storage_places import why_other_blobs
from longhaul.starter.reach.their_blobs import TheirBlobs
from longhaul.starter.settings import Settings
from longhaul.starter.telemetry.switches import client_interceptors, send_traces
from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import BadBlobsSetting, BlobStore
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.open_keyring import open_keyring
from longhaul.workflows.contract import converter_with, keys_in, stored_in

DEFAULT_ADDRESS = "127.0.0.1:7233"


SETTLING_SECONDS = 0.1


class Unreachable(Unavailable):
    """No Temporal server answers, or no blob store has that name; the sentence says where it was looked for, and what
    to do."""


async def connect(
    address: str | None = None,
    namespace: str | None = None,
    *,
    settings: Settings | None = None,
    runtime: Runtime | None = None,
) -> Client:
    """A client by flags, `TEMPORAL_…` variables or Temporal's configuration file. Raises Unreachable,
    and BadConnection for what they say.

    With settings, large values go by reference through the blob store that they name, which is touched when the first
    one comes: call `let_go` at the end. They are written there only if the workers' are no others. Without, small
    values only, and nothing that is encrypted. Raises BadKeysSetting, and BadTelemetrySetting where traces are wanted
    in a way that is not known here.
    """
    blobs = None if settings is None else TheirBlobs(blobs_of(settings))
    converter = converter_with(blobs, keys=None if settings is None else keyring_of(settings))
    squeezed = settings is not None and settings.grpc_compression == "gzip"
    config = connection_settings()
    if address is not None:
        config["target_host"] = address
    if namespace is not None:
        config["namespace"] = namespace
    interceptors = [*client_interceptors(), AsksAgain()]
    _settle_before_exit()
    where = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        client = await Client.connect(
            **config,
            data_converter=converter,
            interceptors=interceptors,
            runtime=runtime,
            grpc_compression=GrpcCompression.GZIP if squeezed else GrpcCompression.NONE,
        )
    except ValueError as error:
        raise bad_connection(error) from error
    except (RPCError, RuntimeError) as error:
        why = why_not_reached(error, tls=bool(config.get("tls")))
        raise Unreachable(f"no Temporal server answers at {where!r}: {why}") from error
    if settings is not None and blobs is not None:
        blobs.ask_by(lambda: why_other_blobs(client, settings, blobs))
    return client


def no_namespace(client: Client, error: RPCError) -> Unreachable | None:
    """What the server means that has no namespace of that name; None for another error. It has the status of a session
    that is not there."""
    details = error.grpc_status.details
    if not details or not details[0].Is(NamespaceNotFoundFailure.DESCRIPTOR):
        return None
    return Unreachable(
        f"the Temporal server has no namespace {client.namespace!r}: create it there, or name another one in "
        "TEMPORAL_NAMESPACE"
    )


def blobs_of(settings: Settings) -> BlobStore:
    """Where large values lie. Raises Unreachable."""
    try:
        return open_blobs(settings.blobs, data_dir=settings.data_dir)
    except BadBlobsSetting as error:
        raise Unreachable(str(error)) from None


@asynccontextmanager
async def opened_blobs(client: Client, settings: Settings) -> AsyncIterator[BlobStore]:
    """Those of the client; else those of the settings, closed afterwards. Raises Unreachable."""
    shared = stored_in(client.data_converter)
    blobs = blobs_of(settings) if shared is None else shared
    try:
        yield blobs
    finally:
        if shared is None:
            await blobs.close()


def keyring_of(settings: Settings) -> Keyring | None:
    """None where nothing is encrypted. Raises BadKeysSetting, MissingExtra."""
    return open_keyring(settings.keys, settings.master_key.get_secret_value(), data_dir=settings.data_dir)


def keyring_in(client: Client) -> Keyring | None:
    """What a client from `connect` encrypts with; None: it writes in clear text."""
    keys = keys_in(client.data_converter)
    return keys if isinstance(keys, Keyring) else None


async def let_go(client: Client) -> None:
    """Close what `connect` has opened beside the client; the client itself needs no closing."""
    await send_traces()
    blobs = stored_in(client.data_converter)
    if blobs is not None:
        await blobs.close()
    if (keys := keyring_in(client)) is not None:
        await keys.close()


@cache
def _settle_before_exit() -> None:
    """Have the interpreter wait a moment before it ends: a thread of the SDK lets go of an answer after we have it, and
    aborts the process when the interpreter is gone by then."""
    atexit.register(time.sleep, SETTLING_SECONDS)
