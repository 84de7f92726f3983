"""Payloads encrypted, each with the key of the session that it belongs to: the SDK's codec over a keyring.

It runs outside of workflow code, in the client and beside the worker's tasks. What can't be decrypted for good is no
error here, for one would fail the workflow task before our code could refuse the letter: it becomes a payload that
says so, as a blob that is gone does. A key store that is away is one: then the task is tried again.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, Self, cast

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    ActivitySerializationContext,
    DefaultFailureConverter,
    PayloadCodec,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from longhaul.activities.contract import BAD_START, REFUSED
from longhaul.agent.plain.errors import Damaged, Unavailable
from longhaul.stores.blobs.blobs import BlobsUnavailable, session_prefix
from longhaul.workflows.payloads.large_payloads import BLOBS_AWAY, KEY, MISSING, WITH_KEY

ENCRYPTED = b"longhaul/aes"
"""Encoding of an encrypted payload."""
KEY_ID = "key"
"""Its metadata: the id of the key."""
SHARED = "shared"
_OF_NO_SESSION = re.compile(r"longhaul\.schedule\.|longhaul-doctor-")
_JSON: Mapping[str, bytes] = {"encoding": b"json/plain"}
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
        key although his was deleted: a new life of a session begins with what its client sends."""
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
        return [await self._encoded(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Raises BlobsUnavailable."""
        if not any(is_encrypted(payload) for payload in payloads):
            return cast(list[Payload], payloads)  # the same object, which the SDK need not copy back
        return [await self._decoded(payload) if is_encrypted(payload) else payload for payload in payloads]

    async def _encoded(self, payload: Payload) -> Payload:
        owner, begins = (SHARED, True) if self._owner is None else (self._owner, self._begins)
        try:
            key_id, data = await self.keys.encrypt(owner, _spelt(payload), begins=begins)
        except Unavailable as error:
            raise BlobsUnavailable(f"{BLOBS_AWAY}: {error}") from error
        return Payload(metadata={"encoding": ENCRYPTED, KEY_ID: key_id.encode()}, data=data)

    async def _decoded(self, payload: Payload) -> Payload:
        key_id = payload.metadata.get(KEY_ID, b"").decode("ascii", "replace")
        blob = payload.metadata.get(KEY)
        try:
            plain = _read(await self.keys.decrypt(self._owner, key_id, payload.data))
        except Unavailable as error:
            raise BlobsUnavailable(f"{BLOBS_AWAY}: {error}") from error
        except (Damaged, DecodeError, LookupError) as error:
            return Payload(metadata={"encoding": MISSING, KEY: WITH_KEY + key_id.encode()}, data=str(error).encode())
        if blob is not None:
            plain.metadata[KEY] = blob
        return plain


class EncryptedFailures(DefaultFailureConverter, WithSerializationContext):
    """Has message and stack encrypted of what an activity failed with, for a provider may quote what it was sent, and
    of why a letter or a start was refused, for that quotes a bit of it.

    What the session itself says, when a task or a query of it fails, is in sentences of our own: the server shows them
    to whoever asks why nothing goes on, and that must not need a key.
    """

    def with_context(self, context: SerializationContext) -> Self:
        return cast(Self, _ALL_ENCRYPTED) if isinstance(context, ActivitySerializationContext) else self

    def to_failure(self, exception: BaseException, payload_converter: PayloadConverter, failure: Failure) -> None:
        quotes = isinstance(exception, ApplicationError) and exception.type in (REFUSED, BAD_START)
        convert = _ALL_ENCRYPTED.to_failure if quotes else super().to_failure
        convert(exception, payload_converter, failure)


_ALL_ENCRYPTED = DefaultFailureConverter(encode_common_attributes=True)


def owner_of(namespace: str, workflow_id: str) -> str:
    """Whose key encrypts the payloads of a workflow: the name of its place among the blobs, which tells no names."""
    return SHARED if _OF_NO_SESSION.match(workflow_id) else session_prefix(namespace, workflow_id)


def is_encrypted(payload: Payload) -> bool:
    return payload.metadata.get("encoding") == ENCRYPTED


def _spelt(payload: Payload) -> bytes:
    if payload.metadata == _JSON and not payload.external_payloads:
        return _AS_JSON + payload.data
    return _AS_PAYLOAD + payload.SerializeToString(deterministic=True)


def _read(data: bytes) -> Payload:
    """Raises DecodeError, LookupError."""
    if data[:1] == _AS_JSON:
        return Payload(metadata=_JSON, data=data[1:])
    if data[:1] != _AS_PAYLOAD:
        raise LookupError("it was encrypted by a later release, in a way that is not known here")
    return Payload.FromString(data[1:])
