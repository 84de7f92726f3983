"""One way to reach Temporal, for everybody who does."""

import atexit
import re
import time
from functools import cache

from temporalio.client import Client, GrpcCompression
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from activities.blobs.blobs import BadBlobsSetting, BlobStore
from activities.blobs.opening import open_blobs
from starter.settings import Settings
from starter.telemetry import client_interceptors, send_traces
from workflows.contract import converter_with, stored_in

DEFAULT_ADDRESS = "127.0.0.1:7233"


SETTLING_SECONDS = 0.1


class Unreachable(Exception):
    """No Temporal server answers, or no blob store has that name; the sentence says where it was looked for, and what
    to do."""


async def connect(
    address: str | None = None,
    namespace: str | None = None,
    *,
    settings: Settings | None = None,
    runtime: Runtime | None = None,
) -> Client:
    """A client by flags, `TEMPORAL_…` variables or Temporal's configuration file. Raises Unreachable.

    With settings, large values go by reference through the blob store that they name, which is touched when the first
    one comes: call `let_go` at the end. Without, small values only. Raises BadTelemetrySetting where traces are wanted
    in a way that is not known here.
    """
    converter = converter_with(None if settings is None else blobs_of(settings))
    squeezed = settings is not None and settings.grpc_compression == "gzip"
    config = ClientConfig.load_client_connect_config()
    if address is not None:
        config["target_host"] = address
    if namespace is not None:
        config["namespace"] = namespace
    interceptors = client_interceptors()
    _settle_before_exit()
    where = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        return await Client.connect(
            **config,
            data_converter=converter,
            interceptors=interceptors,
            runtime=runtime,
            grpc_compression=GrpcCompression.GZIP if squeezed else GrpcCompression.NONE,
        )
    except (RPCError, RuntimeError) as error:
        raise Unreachable(
            f"no Temporal server answers at {where!r} ({_cause(error)}); start one with `longhaul dev`, or set "
            "TEMPORAL_ADDRESS"
        ) from error


def blobs_of(settings: Settings) -> BlobStore:
    """Where large values lie. Raises Unreachable."""
    try:
        return open_blobs(settings.blobs, data_dir=settings.data_dir)
    except BadBlobsSetting as error:
        raise Unreachable(str(error)) from None


async def let_go(client: Client) -> None:
    """Close what `connect` has opened beside the client; the client itself needs no closing."""
    await send_traces()
    blobs = stored_in(client.data_converter)
    if blobs is not None:
        await blobs.close()


@cache
def _settle_before_exit() -> None:
    """Have the interpreter wait a moment before it ends: a thread of the SDK lets go of an answer after we have it, and
    aborts the process when the interpreter is gone by then."""
    atexit.register(time.sleep, SETTLING_SECONDS)


def _cause(error: Exception) -> str:
    """The last, plainest part of the transport's nested error."""
    quoted = re.findall(r'"([^"]+)"', str(error))
    return quoted[-1] if quoted else str(error)[:200]
