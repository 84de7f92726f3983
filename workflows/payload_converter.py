"""Payloads above a limit go by reference: the SDK's external storage over a blob store, kept apart by session.

Written by whoever sends (a client, a worker), read by whoever receives. A blob that can't be had is no error here, for
one would fail the workflow task, for ever, before our code could refuse the operation: it becomes a payload that says
so.

Payloads encrypted, each with the key of the session that it belongs to: the SDK's codec over a keyring.

It runs outside of workflow code, in the client and beside the worker's tasks. What can't be decrypted for good is no
error here, for one would fail the workflow task before our code could refuse the operation: it becomes a payload that
says so, as a blob that is gone does. A key store that is away is one: then the task is tried again.

Carries values to Temporal and back: pydantic JSON, large ones by reference, and nothing that a stranger sends can
stop a session.

Decides once about what came by reference and can't be had: it is written into the history, and the same at each
replay.

A blob that was absent may come back, and one that was there may be deleted. Neither may change what a session has
decided, or its history would not replay. So the first to miss one leaves a marker in the history; a replay that finds
the marker misses it again, whatever lies there now. A replay that finds no marker, and no blob, stands before a history
whose text is lost, and can't go on: the task fails, and says so, until the blob is put back.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

from google.protobuf.json_format import Parse
from google.protobuf.message import DecodeError
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.api.sdk.v1.external_storage_pb2 import ExternalStorageReference
from temporalio.common import RawValue
from temporalio.contrib.pydantic import PydanticPayloadConverter, pydantic_data_converter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    DefaultFailureConverter,
    ExternalStorage,
    FailureConverter,
    NexusSerializationContext,
    PayloadCodec,
    PayloadConverter,
    SerializationContext,
    StorageDriver,
    StorageDriverClaim,
    StorageDriverRetrieveContext,
    StorageDriverStoreContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ActivityError, ApplicationError

from longhaul.activities.contract import BAD_START, REFUSED
from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.agent.plain.ids import is_target_activity, is_target_workflow
from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, NoBlob, is_key, key_of, session_prefix

DRIVER = "longhaul"
BY_REFERENCE_BYTES = 256 * 1024
"""Payloads from here on go by reference; pages of queries are smaller."""

BLOBS_UNREACHABLE = "what this session stores outside of its history can't be reached"
"""How the sentence begins of a session that needs a blob while its store is away: it goes on by itself."""
MISSING = b"longhaul/blob-missing"
"""Encoding of a payload whose blob can't be had; its data says why."""
KEY = "longhaul-blob"
"""Metadata of what came by reference, had or not: the blob's key, empty for one that no session may have."""

WITH_KEY = b"key:"
"""Before the id of a key, in the same place: of what was encrypted, and can't be decrypted."""


class BlobDriver(StorageDriver):
    """The blobs of one session, by its prefix; those of nobody without one.

    Whose they are follows from the serialization context on both sides, so that what is written is what the reader
    looks for; the SDK's own store context names another reader for what a child session returns.
    """

    def __init__(self, blobs: BlobStore, prefix: str | None = None) -> None:
        self.blobs = blobs
        self._prefix = prefix

    def name(self) -> str:
        return DRIVER

    async def store(self, context: StorageDriverStoreContext, payloads: Sequence[Payload]) -> list[StorageDriverClaim]:
        """Raises BlobsUnavailable."""
        del context
        claims: list[StorageDriverClaim] = []
        for payload in payloads:
            data = payload.SerializeToString(deterministic=True)
            if self._prefix is None:
                raise BlobsUnavailable(f"a value of {len(data) // 1000} kB belongs to no session, and can't be stored")
            key = key_of(self._prefix, data)
            try:
                await self.blobs.put(key, data)
            except ValueError as error:
                raise BlobsUnavailable(str(error)) from error
            claims.append(StorageDriverClaim({"key": key}))
        return claims

    async def retrieve(
        self, context: StorageDriverRetrieveContext, claims: Sequence[StorageDriverClaim]
    ) -> list[Payload]:
        """For what is absent, damaged or somebody else's, a payload of encoding MISSING. Raises BlobsUnavailable only:
        then nobody knows what is there, and the task is tried again."""
        del context
        return list(await asyncio.gather(*(self._get(claim.claim_data.get("key", "")) for claim in claims)))

    async def _get(self, key: str) -> Payload:
        if self._prefix is None or not is_key(key) or not key.startswith(f"{self._prefix}/"):
            return missing("", "it names something that was not stored for this session")
        try:
            payload = Payload.FromString(await self.blobs.get(key))
        except NoBlob as error:
            return missing(key, str(error))
        except BlobsUnavailable as error:
            raise BlobsUnavailable(f"{BLOBS_UNREACHABLE}: {error}") from error
        except DecodeError:
            return missing(key, f"the blob {key} is no value that was sent")
        payload.metadata[KEY] = key.encode()
        return payload


def storage_of(blobs: BlobStore, prefix: str | None = None, from_bytes: int = BY_REFERENCE_BYTES) -> ExternalStorage:
    return ExternalStorage(drivers=[BlobDriver(blobs, prefix)], payload_size_threshold=from_bytes)


def missing(key: str, why: str) -> Payload:
    return Payload(metadata={"encoding": MISSING, KEY: key.encode()}, data=why.encode("utf-8", "replace"))


ENCRYPTED = b"longhaul/aes"
"""Encoding of an encrypted payload."""
KEY_ID = "key"
"""Its metadata: the id of the key."""
SHARED = "shared"
_OF_NO_SESSION = re.compile(r"longhaul\.schedule\.|longhaul-doctor-")
LONGEST_WHY = 300
_JSON: Mapping[str, bytes] = {"encoding": b"json/plain"}
FOR_USER = "longhaul-for-user"
"""Metadata of what a workflow of the user's is to read: it has no key of the session, so we do not encrypt it."""
_AS_JSON, _AS_PAYLOAD = b"j", b"p"
"""First byte of what is encrypted. The short one is for summaries: the server takes 400 bytes of one."""


class SessionKeys(Protocol):
    """A keyring, as `stores.keys.keyring.Keyring` is one."""

    async def encrypt(self, owner: str, data: bytes, *, begins: bool) -> tuple[str, bytes]: ...

    async def decrypt(self, owner: str | None, key_id: str, data: bytes) -> bytes: ...

    def belongs(self, owner: str, parent: str) -> None: ...


class EncryptedPayloads(PayloadCodec, WithSerializationContext):
    """Decrypts what is encrypted, and takes all else as it is: what people send by hand, and older histories."""

    def __init__(self, keys: SessionKeys, owner: str | None = None, *, begins: bool = False) -> None:
        """`owner`: whose payloads these are; None: of nobody that is known here. `begins`: whether he may be given a
        key although his was deleted: a new incarnation of a session begins with what its client sends."""
        self.keys = keys
        self._owner = owner
        self._begins = begins

    def with_context(self, context: SerializationContext) -> Self:
        if not isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return self
        if context.workflow_id is None:
            return self
        whose = owner_of(context.namespace, context.workflow_id)
        return type(self)(self.keys, whose, begins=isinstance(context, WorkflowSerializationContext))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises BlobsUnavailable, and Damaged where the key was deleted."""
        sealed: list[Payload] = []
        for payload in payloads:
            if FOR_USER in payload.metadata:
                sealed.append(payload)
                continue
            owner, begins = (SHARED, True) if self._owner is None else (self._owner, self._begins)
            try:
                if payload.metadata == _JSON and not payload.external_payloads:
                    spelt = _AS_JSON + payload.data
                else:
                    spelt = _AS_PAYLOAD + payload.SerializeToString(deterministic=True)
                key_id, data = await self.keys.encrypt(owner, spelt, begins=begins)
            except Unavailable as error:
                raise BlobsUnavailable(f"{BLOBS_UNREACHABLE}: {error}") from error
            sealed.append(Payload(metadata={"encoding": ENCRYPTED, KEY_ID: key_id.encode()}, data=data))
        return sealed

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises BlobsUnavailable."""
        if not any(is_encrypted(payload) for payload in payloads):
            return cast(list[Payload], payloads)  # the same object, which the SDK need not copy back
        return [await self._decoded(payload) if is_encrypted(payload) else payload for payload in payloads]

    async def _decoded(self, payload: Payload) -> Payload:
        key_id = payload.metadata.get(KEY_ID, b"").decode("ascii", "replace")
        blob = payload.metadata.get(KEY)
        try:
            plain = _read(await self.keys.decrypt(self._owner, key_id, payload.data))
        except Unavailable as error:
            raise BlobsUnavailable(f"{BLOBS_UNREACHABLE}: {error}") from error
        except (Damaged, DecodeError, LookupError) as error:
            return Payload(metadata={"encoding": MISSING, KEY: WITH_KEY + key_id.encode()}, data=str(error).encode())
        if blob is not None:
            plain.metadata[KEY] = blob
        return plain


BY_CODEC = b"codec:"
"""Before nothing, in the place of a key's id: of what the codec around ours can't decode."""


class WithinCodec(PayloadCodec, WithSerializationContext):
    """Ours within the operator's own: what is sent is encrypted by ours first, if keys are set, and encoded by theirs
    last."""

    def __init__(self, outer: PayloadCodec, inner: EncryptedPayloads | None) -> None:
        self.inner = inner
        self.outer = outer

    def with_context(self, context: SerializationContext) -> Self:
        outer = self.outer
        bound = outer.with_context(context) if isinstance(outer, WithSerializationContext) else outer
        return type(self)(bound, None if self.inner is None else self.inner.with_context(context))

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises what theirs does, and what ours does."""
        return await self.outer.encode(payloads if self.inner is None else await self.inner.encode(payloads))

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises BlobsUnavailable while theirs does not work at all. What it can't decode while it works is malformed,
        and is no error: one would fail the workflow task for ever, and anybody could send it."""
        try:
            plain = await self.outer.decode(payloads)
        except Exception:  # noqa: BLE001  code of the operator's, which may raise anything
            plain = [await self._decoded(payload) for payload in payloads]
        for at, payload in enumerate(plain):
            # Theirs may return what it was given, or a whole payload as its sender made it: nobody outside may claim
            # that one came by reference, and what did must not lose the word of it.
            came = payloads[at].metadata.get(KEY) if len(plain) == len(payloads) else None
            if payload.metadata.get(KEY) not in (came, BY_CODEC):
                del payload.metadata[KEY]
            if came is not None:
                payload.metadata[KEY] = came
        return plain if self.inner is None else await self.inner.decode(plain)

    async def _decoded(self, payload: Payload) -> Payload:
        try:
            (plain,) = await self.outer.decode([payload])
        except Exception as error:  # noqa: BLE001  as above
            try:
                await self.outer.decode(await self.outer.encode([Payload(metadata=_JSON, data=b"0")]))
            except Exception:  # noqa: BLE001  as above
                raise BlobsUnavailable(f"{BLOBS_UNREACHABLE}: the codec around it does not work: {error}") from error
            why = f"the codec around it can't decode it: {type(error).__name__}: {error}"
            return Payload(metadata={"encoding": MISSING, KEY: BY_CODEC}, data=why[:LONGEST_WHY].encode())
        return plain


class EncryptedFailures(FailureConverter, WithSerializationContext):
    """Has message and stack encrypted of what an activity failed with, for a provider may quote what it was sent, and
    of why an operation or a start was refused, for that quotes a bit of it.

    What the session itself says, when a task or a query of it fails, is in sentences of our own: the server shows them
    to whoever asks why nothing goes on, and that must not need a key.
    """

    THEIRS: ClassVar[type[FailureConverter]] = DefaultFailureConverter
    """Converts the failures; the operator's own where there is one."""

    def __init__(self, *, of_activity: bool = False) -> None:
        self._theirs = self.THEIRS()
        self._of_activity = of_activity

    def with_context(self, context: SerializationContext) -> Self:
        return type(self)(of_activity=True) if isinstance(context, ActivitySerializationContext) else self

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        self._theirs.to_failure(exception, payload_converter, failure)
        encrypts, each = self._of_activity, failure
        while True:
            encrypts = encrypts or each.application_failure_info.type in (REFUSED, BAD_START)
            if encrypts and not each.HasField("encoded_attributes"):
                told = {"message": each.message, "stack_trace": each.stack_trace}
                each.encoded_attributes.CopyFrom(payload_converter.to_payloads([told])[0])
                each.message, each.stack_trace = "Encoded failure", ""
            if not each.HasField("cause"):
                return
            each = each.cause

    def from_failure(self, failure: Failure, payload_converter: PayloadConverter) -> BaseException:
        return self._theirs.from_failure(failure, payload_converter)


def owner_of(namespace: str, workflow_id: str) -> str:
    """Whose key encrypts the payloads of a workflow: the name of its place among the blobs, which tells no names."""
    return SHARED if _OF_NO_SESSION.match(workflow_id) else session_prefix(namespace, workflow_id)


def is_encrypted(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCRYPTED


def _read(data: bytes) -> Payload:
    """Raises DecodeError, LookupError."""
    if data[:1] == _AS_JSON:
        return Payload(metadata=_JSON, data=data[1:])
    if data[:1] != _AS_PAYLOAD:
        raise LookupError("it was encrypted by a later release, in a way that is not known here")
    return Payload.FromString(data[1:])


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


class SafePayloadConverter(PydanticPayloadConverter):
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
    `operations.decode`, which refuses its encoding. Without a blob store that is every reference.
    """

    _bound: dict[tuple[str, str, str], Self] = field(
        default_factory=dict[tuple[str, str, str], Self], init=False, repr=False, compare=False
    )

    def with_context(self, context: SerializationContext) -> Self:
        """The same for one session. Remembered: the SDK asks for each payload, and a new one takes 20 µs."""
        if not isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return self._of_user if isinstance(context, NexusSerializationContext) else self
        if context.workflow_id is None:
            return self
        if _is_users(context):
            return self._of_user
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
            payload_codec=codec.with_context(context) if isinstance(codec, EncryptedPayloads | WithinCodec) else codec,
        )
        if isinstance(bound.failure_converter, EncryptedFailures):
            object.__setattr__(bound, "failure_converter", bound.failure_converter.with_context(context))
        return bound

    @cached_property
    def _of_user(self) -> Self:
        """For code of the user's that a session starts: its workers have neither the blobs nor the keys of sessions."""
        ours = self.payload_codec if isinstance(self.payload_codec, EncryptedPayloads) else None
        return replace(
            self,
            external_storage=None,
            payload_codec=None if ours else self.payload_codec,
            failure_converter_class=DefaultFailureConverter if ours else self.failure_converter_class,
        )

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
        found: list[Payload] = []
        for payload in payloads:
            # Nobody outside may claim that a payload came by reference: what stands in the history has other limits.
            if KEY not in payload.metadata:
                found.append(payload)
            else:
                plain = Payload()
                plain.CopyFrom(payload)
                del plain.metadata[KEY]
                found.append(plain)
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


def _is_users(context: WorkflowSerializationContext | ActivitySerializationContext) -> bool:
    if isinstance(context, ActivitySerializationContext):
        return is_target_activity(context.activity_id)
    return is_target_workflow(context.workflow_id or "")


def check_had(payload: Payload) -> None:
    """Raise BlobGone for a payload that stands for another one, which is not there."""
    if payload.metadata.get("encoding") == MISSING:
        if payload.metadata.get(KEY, b"").startswith((WITH_KEY, BY_CODEC)):
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


def converter_with(
    blobs: BlobStore | None,
    from_bytes: int = BY_REFERENCE_BYTES,
    keys: SessionKeys | None = None,
    around: DataConverter = pydantic_data_converter,
) -> DataConverter:
    """For a client or worker that reaches the blobs, or does without; with keys, it encrypts.

    `around`: the operator's own, whose codec comes last and whose failure converter stays. Its payload converter is not
    used: values of sessions are in the form of ours.
    """
    given = {each.name: getattr(around, each.name) for each in fields(DataConverter) if each.init}
    given["payload_converter_class"] = SafePayloadConverter
    given["external_storage"] = None if blobs is None else storage_of(blobs, None, from_bytes)
    ours = None if keys is None else EncryptedPayloads(keys)
    given["payload_codec"] = ours if around.payload_codec is None else WithinCodec(around.payload_codec, ours)
    if keys is not None:
        theirs = around.failure_converter_class
        given["failure_converter_class"] = type("EncryptedFailures", (EncryptedFailures,), {"THEIRS": theirs})
    return SessionConverter(**given)


def keys_in(converter: DataConverter) -> SessionKeys | None:
    """The keyring of a converter from `converter_with`; None: it writes in clear text."""
    codec = converter.payload_codec
    ours = codec.inner if isinstance(codec, WithinCodec) else codec
    return ours.keys if isinstance(ours, EncryptedPayloads) else None


def stored_in(converter: DataConverter) -> BlobStore | None:
    """The blob store of a converter from `converter_with`."""
    storage = converter.external_storage
    drivers = [] if storage is None else [each for each in storage.drivers if isinstance(each, BlobDriver)]
    return drivers[0].blobs if drivers else None


DATA_CONVERTER = converter_with(None)
"""Where nothing is stored outside: small values only."""


Answer = TypeVar("Answer")

RESULT_LOST = "ResultLost"
"""Error type of an activity whose result went by reference and was not there."""


def why_missed(payload: Payload) -> str | None:
    """Why the session does without this payload; None for one that it has. Raises BlobGone, at replay only.

    To be asked once for each payload that arrives, in the order of arrival, by code that may schedule commands.
    """
    key = payload.metadata.get(KEY)
    absent = payload.metadata.get("encoding") == MISSING
    if key is None and not absent:
        return None
    if not key:
        # Nobody's, or another session's: that shows by the reference alone, so every replay sees it too.
        return payload.data.decode("utf-8", "replace")[:300]
    marker = f"blob-missed-{workflow.uuid4()}"
    was_absent = workflow.patched(marker) if absent or workflow.unsafe.is_replaying() else False
    if not was_absent:
        _check_still_had(payload)
        return None
    if key == BY_CODEC:
        return "the codec around it could not decode it"
    if key.startswith(WITH_KEY):
        key_id = key.removeprefix(WITH_KEY).decode("ascii", "replace")[:40]
        return f"the key {key_id} that it was encrypted with was not there"
    return f"what was stored for it as blob {key.decode('ascii', 'replace')[-64:]} was not there, or not whole"


def why_start_missed(payload: Payload) -> str | None:
    """The same for the input of a run. What a continue-as-new has carried is the session itself, which nobody could
    forge and nothing can stand in for: the task fails until it is there."""
    if workflow.info().continued_run_id is None:
        return why_missed(payload)
    _check_still_had(payload)
    return None


def result_of(arrived: RawValue, answer: type[Answer]) -> Answer:
    """What an activity has answered. Raises ActivityError for an answer that was lost on its way."""
    why = why_missed(arrived.payload)
    if why is None:
        return workflow.payload_converter().from_payload(arrived.payload, answer)
    lost = ApplicationError(f"It has ended, but {why}: its outcome is lost.", type=RESULT_LOST)
    raise ActivityError(
        "an activity's result is lost",
        scheduled_event_id=0,
        started_event_id=0,
        identity="",
        activity_type="",
        activity_id="",
        retry_state=None,
    ) from lost


def _check_still_had(payload: Payload) -> None:
    try:
        check_had(payload)
    except BlobGone as gone:
        raise BlobGone(f"{HISTORY_LOST}: {gone}") from gone
