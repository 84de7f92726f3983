"""Carries values to Temporal and back: pydantic JSON, large ones by reference, and nothing that a stranger sends can
stop a session."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, cast

from google.protobuf.json_format import Parse
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1.external_storage_pb2 import ExternalStorageReference
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    SerializationContext,
    StorageDriverStoreContext,
    WorkflowSerializationContext,
)

from longhaul.agent.plain.errors import Damaged
from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, session_prefix
from longhaul.workflows.encryption import EncryptedFailures, EncryptedPayloads, SessionKeys, is_encrypted
from longhaul.workflows.payloads.large_payloads import (
    BY_REFERENCE_BYTES,
    DRIVER,
    KEY,
    MISSING,
    WITH_KEY,
    BlobDriver,
    storage_of,
)

INLINE_BYTES = 1_500_000
"""What may cross inline where nothing can be stored: the server ends a session for what is above 2 MiB."""

KEPT_CONTEXTS = 2_000

_CONVERTERS = PydanticPayloadConverter().converters
REFERENCE = ExternalStorageReference.DESCRIPTOR.full_name.encode()
"""The type of a payload that stands for another one, as its metadata has it."""

HISTORY_LOST = "this session's history can't be replayed"
"""How the sentence begins of a session that needs a blob that is gone."""


class BlobGone(Damaged, ValueError):
    """What was stored outside can't be had here; the sentence says what, and what to do."""


class PayloadConverter(PydanticPayloadConverter):
    """Says of what can't be had that it can't; whoever takes raw values looks for himself."""

    def __init__(self) -> None:
        """With converters that all of these share: the SDK makes two of these for each activation."""
        self.converters = _CONVERTERS

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        for index, payload in enumerate(payloads):
            raw = type_hints is not None and index < len(type_hints) and type_hints[index] is RawValue
            if not raw:
                check_had(payload)
        return super().from_payloads(payloads, type_hints)


@dataclass(frozen=True)
class SessionConverter(DataConverter):
    """Reads references to blobs of the session that they came to, and takes all other payloads as they are.

    The SDK resolves references before our code runs, and fails the workflow task for ever when it can't: one forged
    signal would stop a session. What no honest sender of ours has made is left as it is, so that it reaches
    `letters.decode`, which refuses its encoding. Without a blob store that is every reference.
    """

    _bound: dict[tuple[str, str, str], Self] = field(
        default_factory=dict[tuple[str, str, str], Self], init=False, repr=False, compare=False
    )

    def with_context(self, context: SerializationContext) -> Self:
        """The same for one session. Remembered: the SDK asks for each payload, and a new one takes 20 µs."""
        if not isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return self
        if context.workflow_id is None:
            return self
        kind = (context.namespace, context.workflow_id, type(context).__name__)
        bound = self._bound.get(kind)
        if bound is None:
            if len(self._bound) >= KEPT_CONTEXTS:
                self._bound.clear()
            bound = self._bound[kind] = self._for_session(context, context.workflow_id)
        return bound

    def _for_session(self, context: WorkflowSerializationContext | ActivitySerializationContext, whose: str) -> Self:
        blobs, codec = stored_in(self), self.payload_codec
        if blobs is None and codec is None:
            return self
        prefix = session_prefix(context.namespace, whose)
        bound = replace(
            self,
            external_storage=None if blobs is None else storage_of(blobs, prefix, self._from_bytes),
            payload_codec=codec.with_context(context) if isinstance(codec, EncryptedPayloads) else codec,
        )
        if isinstance(bound.failure_converter, EncryptedFailures):
            object.__setattr__(bound, "failure_converter", bound.failure_converter.with_context(context))
        return bound

    @property
    def _from_bytes(self) -> int:
        storage = self.external_storage
        return (storage and storage.payload_size_threshold) or BY_REFERENCE_BYTES

    def _with_store_context(self, store_ctx: StorageDriverStoreContext) -> Self:
        """`with_context` has said all that the driver needs."""
        del store_ctx
        return self

    async def _decode_reference_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        return cast(list[Payload], payloads)

    async def _external_retrieve_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        if not any(KEY in payload.metadata or _is_reference(payload) for payload in payloads):
            return cast(list[Payload], payloads)  # the same object, which the SDK need not copy back
        found = [_without_key(payload) for payload in payloads]
        if self.external_storage is not None:
            for index, payload in enumerate(found):
                if _is_ours(payload):
                    found[index : index + 1] = await super()._external_retrieve_payload_sequence([payload])
        return found

    async def _external_store_payload_sequence(self, payloads: Sequence[Payload]) -> list[Payload]:
        try:
            return await super()._external_store_payload_sequence(payloads)
        except BlobsUnavailable:
            # A call that has run must not be lost, or run again, for the want of a place for its result.
            if sum(payload.ByteSize() for payload in payloads) > INLINE_BYTES:
                raise
            return list(payloads)


def check_had(payload: Payload) -> None:
    """Raise BlobGone for a payload that stands for another one, which is not there."""
    if payload.metadata.get("encoding") == MISSING:
        if payload.metadata.get(KEY, b"").startswith(WITH_KEY):
            raise BlobGone(payload.data.decode("utf-8", "replace"))
        raise BlobGone(
            f"a value was stored outside of the history, and can't be had: {payload.data.decode('utf-8', 'replace')}. "
            "Put it back from a backup, and see that LONGHAUL_BLOBS is the same for workers and clients"
        )
    if _is_reference(payload):
        raise BlobGone(
            "a value was stored outside of the history, and this process does not know where: set LONGHAUL_BLOBS as it "
            "is set for the workers"
        )
    if is_encrypted(payload):
        raise BlobGone(
            "a value is encrypted, and this process has no key: set LONGHAUL_MASTER_KEY and LONGHAUL_KEYS as they are "
            "set for the workers"
        )


def _is_reference(payload: Payload) -> bool:
    return payload.metadata.get("messageType") == REFERENCE and payload.metadata.get("encoding") == b"json/protobuf"


def _is_ours(payload: Payload) -> bool:
    """Whether the SDK can read the reference, and knows its driver: it raises for others."""
    if not _is_reference(payload):
        return False
    try:
        return Parse(payload.data, ExternalStorageReference()).driver_name == DRIVER
    except Exception:  # noqa: BLE001  a stranger's bytes; whatever the parser thinks of them, the task must not fail
        return False


def _without_key(payload: Payload) -> Payload:
    """Nobody outside may claim that a payload came by reference: what stands in the history has other limits."""
    if KEY not in payload.metadata:
        return payload
    plain = Payload()
    plain.CopyFrom(payload)
    del plain.metadata[KEY]
    return plain


def converter_with(
    blobs: BlobStore | None, from_bytes: int = BY_REFERENCE_BYTES, keys: SessionKeys | None = None
) -> DataConverter:
    """For a client or worker that reaches the blobs, or does without; with keys, it encrypts."""
    given = {each.name: getattr(pydantic_data_converter, each.name) for each in fields(DataConverter) if each.init}
    given["payload_converter_class"] = PayloadConverter
    given["external_storage"] = None if blobs is None else storage_of(blobs, None, from_bytes)
    if keys is not None:
        given |= {"payload_codec": EncryptedPayloads(keys), "failure_converter_class": EncryptedFailures}
    return SessionConverter(**given)


def keys_in(converter: DataConverter) -> SessionKeys | None:
    """The keyring of a converter from `converter_with`; None: it writes in clear text."""
    codec = converter.payload_codec
    return codec.keys if isinstance(codec, EncryptedPayloads) else None


def stored_in(converter: DataConverter) -> BlobStore | None:
    """The blob store of a converter from `converter_with`."""
    storage = converter.external_storage
    drivers = [] if storage is None else [each for each in storage.drivers if isinstance(each, BlobDriver)]
    return drivers[0].blobs if drivers else None


DATA_CONVERTER = converter_with(None)
"""Where nothing is stored outside: small values only."""
