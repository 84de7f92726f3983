"""Leaves out the SDK's passes over the payloads of a workflow task where they would find nothing.

The SDK makes three over what a task brings and three over what it answers, in Python, payload by payload: for a codec,
for values that lie outside, and for references to those. Most tasks have none of these, which their size and their
bytes say at once; the passes made an eighth of all calls of functions in a worker. Where there may be something for
them, or the converter is another's, the SDK goes its own way.

For workers alone: the bridge that it is put around loads all of the SDK's worker, which no client needs.
"""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Protocol

from temporalio.bridge import worker as bridge
from temporalio.converter import DataConverter
from temporalio.converter._extstore import StorageOperationMetrics

from longhaul.workflows.payload_converter import KEY, REFERENCE, SessionConverter

Pass = Callable[..., Awaitable[StorageOperationMetrics]]


class TaskMessage(Protocol):
    """Of protobuf."""

    def ByteSize(self) -> int: ...  # noqa: N802  protobuf's name
    def SerializeToString(self) -> bytes: ...  # noqa: N802


def leave_out_needless() -> None:
    """For all workers of this process; once is enough."""
    if not hasattr(bridge.decode_activation, "__wrapped__"):
        bridge.decode_activation = _unless(brings_nothing, bridge.decode_activation)
        bridge.encode_completion = _unless(leaves_nothing, bridge.encode_completion)


def brings_nothing(activation: TaskMessage, converter: DataConverter) -> bool:
    """Whether no payload in it came by reference, nor claims to."""
    if not _is_plain(converter):
        return False
    text = activation.SerializeToString()
    return KEY.encode() not in text and REFERENCE not in text


def leaves_nothing(completion: TaskMessage, converter: DataConverter) -> bool:
    """Whether no payload in it is to be stored outside: none is larger than all of it."""
    storage = converter.external_storage
    return _is_plain(converter) and (storage is None or completion.ByteSize() < storage.payload_size_threshold)


def _is_plain(converter: DataConverter) -> bool:
    """Ours, also where the SDK has put its own around it for a task, and without encryption."""
    ours = getattr(converter, "_ca_context_free_dc", converter)
    return isinstance(ours, SessionConverter) and converter.payload_codec is None


def _unless(needless: Callable[[TaskMessage, DataConverter], bool], passes: Pass) -> Any:
    @wraps(passes)
    async def made(
        message: TaskMessage, data_converter: DataConverter, *more: Any, **named: Any
    ) -> StorageOperationMetrics:
        if needless(message, data_converter):
            return StorageOperationMetrics()
        return await passes(message, data_converter, *more, **named)

    return made
