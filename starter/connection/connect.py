"""One way to reach Temporal, for everybody who does.

Its settings are `TEMPORAL_…` variables and Temporal's own file. The server knows sessions and users by their names,
or by hashes that only a key's owner can make.
"""

import atexit
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache

from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.client import Client, GrpcCompression
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from longhaul.agent.plain.errors import BadSetup, Unavailable
from longhaul.agent.plain.ids import hub_workflow_id, opaque, opaque_workflow_id, workflow_id
from longhaul.starter.connection.query_retries import AsksAgain
from longhaul.starter.connection.storage_places import TheirBlobs, why_other_blobs
from longhaul.starter.settings import Settings
from longhaul.starter.telemetry.switches import client_interceptors, runtime_of_clients, send_traces
from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import BadBlobsSetting, BlobStore
from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.open_keyring import open_keyring
from longhaul.stores.loading import found_at
from longhaul.workflows.contract import SessionConverter, converter_with, keys_in, stored_in


class BadConnection(BadSetup):
    """A `TEMPORAL_…` variable or Temporal's configuration file can't be used. The sentence names it."""


def connection_settings() -> ClientConnectConfig:
    """As the SDK reads them. Raises BadConnection."""
    try:
        return ClientConfig.load_client_connect_config()
    except OSError as error:
        named = [name for name, value in os.environ.items() if name.startswith("TEMPORAL_") and value == error.filename]
        where = named[0] if named else "Temporal's configuration file"
        raise BadConnection(f"{where}: {str(error.filename)!r} can't be read: {error.strerror}") from error
    except RuntimeError as error:  # the SDK's ConfigError, of a module that can't be imported by name
        raise bad_connection(error) from error


def bad_connection(error: Exception) -> BadConnection:
    """What the SDK says of settings that it can't use."""
    sentence = " ".join(str(error).split()).removeprefix("Configuration loading error: ")
    if "Profile" in sentence and "not found" in sentence:
        said = f"{sentence} in Temporal's configuration file; see TEMPORAL_PROFILE and TEMPORAL_CONFIG_FILE"
    elif "client cert and private key" in sentence:
        said = "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH are set together or not at all"
    else:
        said = sentence
    return BadConnection(f"the settings of the connection to Temporal can't be used: {said}")


def why_not_reached(error: Exception, *, tls: bool) -> str:
    """What the transport's nested error means, and what to do about it."""
    told = str(error)
    if "InvalidContentType" in told:
        return "it does not speak TLS there; unset TEMPORAL_TLS, its certificates and TEMPORAL_API_KEY, or the port"
    if found := re.search(r"InvalidCertificate\((\w+)(?:\(OtherError\((\w+)\)\))?", told):
        kind = found[2] or found[1]
        match kind.removesuffix("Context"):
            case "NotValidForName":
                names = " and ".join(re.findall(r'DnsName\(\\"([^"\\]+)', told)) or "another server"
                why = f"it is for {names}; set TEMPORAL_TLS_SERVER_NAME to its name, if that is the right server"
            case "Expired":
                why = "it has expired; have it renewed, or check this machine's clock"
            case "NotValidYet":
                why = "it is not valid yet; check this machine's clock"
            case _:
                why = f"{kind}; name who signed it in TEMPORAL_TLS_SERVER_CA_CERT_PATH"
        return f"its certificate is not trusted here: {why}"
    if "NoCertificatesPresented" in told:
        return "TEMPORAL_TLS_CLIENT_CERT_PATH contains no PEM certificate; name a file that does"
    if not tls and re.search(r"closed|reset|broken pipe", told, re.IGNORECASE):
        return (
            "it closes the connection; set TEMPORAL_TLS=true if it needs TLS, or TEMPORAL_ADDRESS to a Temporal server"
        )
    hung_up = r"CertificateRequired|HandshakeFailure|UnexpectedEof|BrokenPipe|ConnectionReset|connection closed"
    if tls and re.search(hung_up, told):
        return (
            "it closes the connection after the handshake; if it needs a certificate, set "
            "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH, else TEMPORAL_API_KEY"
        )
    quoted = re.findall(r'"([^"]+)"', told)
    cause = quoted[-1] if quoted else told[:200]
    return f"{cause}; start one with `longhaul dev`, or set TEMPORAL_ADDRESS"


SHORTEST_KEY = 16


class BadIdKey(BadSetup, ValueError):
    """LONGHAUL_OPAQUE_IDS is on, and there is no key that would keep anything to itself."""


class Naming:
    """Raises BadIdKey where hashes are wanted and the key is missing or short."""

    def __init__(self, settings: Settings) -> None:
        self._key = settings.id_key.get_secret_value() if settings.opaque_ids else ""
        if settings.opaque_ids and len(self._key) < SHORTEST_KEY:
            raise BadIdKey(
                f"LONGHAUL_ID_KEY: with LONGHAUL_OPAQUE_IDS a key of at least {SHORTEST_KEY} characters is needed, the "
                "same for all clients"
            )

    @property
    def is_opaque(self) -> bool:
        return bool(self._key)

    def workflow_id(self, agent: str, user: str | None, session: str) -> str:
        if self._key:
            return opaque_workflow_id(self._key, agent, user, session)
        return workflow_id(agent, user, session)

    def hub_id(self, user: str | None, hub: str) -> str:
        """The workflow id of a hub."""
        return f"longhaul-hub/##{opaque(self._key, user, hub)}" if self._key else hub_workflow_id(user, hub)

    def indexed(self, name: str) -> str:
        """A user or a session, as a search attribute has it."""
        return opaque(self._key, name) if self._key else name


DEFAULT_ADDRESS = "127.0.0.1:7233"


SETTLING_SECONDS = 0.1


class Unreachable(Unavailable):
    """No Temporal server answers, or no blob store has that name. The sentence says where Longhaul looked, and what to
    do."""


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
    keys, around = (None, pydantic_data_converter) if settings is None else (keyring_of(settings), around_of(settings))
    converter = converter_with(blobs, keys=keys, around=around)
    squeezed = settings is not None and settings.grpc_compression == "gzip"
    config = connection_settings()
    if address is not None:
        config["target_host"] = address
    if namespace is not None:
        config["namespace"] = namespace
    interceptors = [*client_interceptors(), AsksAgain()]
    settle_before_exit()
    where = config.setdefault("target_host", DEFAULT_ADDRESS)
    try:
        client = await Client.connect(
            **config,
            data_converter=converter,
            interceptors=interceptors,
            runtime=runtime or runtime_of_clients(),
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


def over_connection(client: Client, settings: Settings) -> Client:
    """A client of ours over the connection of another one, with its interceptors, and with our converter within its
    own, so that its codec and failure converter stay. Call `let_go` at the end. Raises Unreachable, BadKeysSetting."""
    blobs = TheirBlobs(blobs_of(settings))
    theirs = client.config(active_config=True)["interceptors"]
    known = {type(each) for each in theirs}
    own = Client(
        client.service_client,
        namespace=client.namespace,
        data_converter=converter_with(blobs, keys=keyring_of(settings), around=client.data_converter),
        interceptors=[*theirs, *(each for each in (*client_interceptors(), AsksAgain()) if type(each) not in known)],
    )
    blobs.ask_by(lambda: why_other_blobs(own, settings, blobs))
    return own


@asynccontextmanager
async def joined(client: Client, settings: Settings) -> AsyncIterator[Client]:
    """A client of the caller's that sends what sessions can read: by the same connection, with our converter within
    theirs, so that their codec and failure converter stay. The caller's own stays as it was. Raises Unreachable,
    BadKeysSetting."""
    if isinstance(client.data_converter, SessionConverter):
        yield client
        return
    made = over_connection(client, settings)
    settle_before_exit()
    try:
        yield made
    finally:
        await let_go(made)


def around_of(settings: Settings) -> DataConverter:
    """The converter that ours is put into. Raises BadConnection."""
    if not settings.codec:
        return pydantic_data_converter
    found = found_at(settings.codec, "codec", BadConnection, setting="LONGHAUL_CODEC")
    if isinstance(found, PayloadCodec):
        return replace(pydantic_data_converter, payload_codec=found)
    if isinstance(found, DataConverter):
        return found
    raise BadConnection(
        f"LONGHAUL_CODEC: {settings.codec!r} is a {type(found).__name__}; name a PayloadCodec or a DataConverter of "
        "Temporal's SDK"
    )


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
def settle_before_exit() -> None:
    """Have the interpreter wait a moment before it ends: a thread of the SDK lets go of an answer after we have it, and
    aborts the process when the interpreter is gone by then."""
    atexit.register(time.sleep, SETTLING_SECONDS)
