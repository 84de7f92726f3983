"""What the SDK does with the payloads of a workflow task is left out where it would do nothing, and nowhere else."""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.bridge import worker as bridge
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter, PayloadCodec, WorkflowSerializationContext

from longhaul.stores.blobs.blob_directory import DirectoryBlobs
from longhaul.stores.blobs.blobs import key_of, session_prefix
from longhaul.workflows.payload_converter import (
    DATA_CONVERTER,
    KEY,
    MISSING,
    REFERENCE,
    converter_with,
)
from longhaul.workflows.payload_passes import leave_out_needless

OURS = WorkflowSerializationContext(namespace="shop", workflow_id="orders")
PLAIN = Payload(metadata={"encoding": b"json/plain"}, data=b'"seven red tins"')
CLAIMED = Payload(metadata={"encoding": b"json/plain", KEY: b"anybody's"}, data=b'"paid"')


def reference(key: str) -> Payload:
    data = f'{{"driverName":"longhaul","claimData":{{"key":"{key}"}}}}'.encode()
    return Payload(metadata={"encoding": b"json/protobuf", "messageType": REFERENCE}, data=data)


def task(payload: Payload) -> WorkflowActivation:
    made = WorkflowActivation(run_id="r")
    made.jobs.add().signal_workflow.input.append(payload)
    made.jobs.add().resolve_activity.result.completed.result.CopyFrom(payload)
    return made


def answer(payload: Payload) -> WorkflowActivationCompletion:
    made = WorkflowActivationCompletion(run_id="r")
    made.successful.commands.add().complete_workflow_execution.result.CopyFrom(payload)
    return made


class Reversed(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata=dict(each.metadata), data=each.data[::-1]) for each in payloads]

    decode = encode


@pytest.fixture
def ours(tmp_path: Path) -> DataConverter:
    return converter_with(DirectoryBlobs(tmp_path), from_bytes=1_000).with_context(OURS)


@pytest.fixture(autouse=True)
def left_out() -> None:
    leave_out_needless()
    leave_out_needless()


def passes(name: str) -> Any:
    """The SDK's own, as it is when nothing is left out."""
    return inspect.unwrap(getattr(bridge, name))


async def decoded(made: WorkflowActivation, converter: DataConverter, how: Callable[..., Any]) -> WorkflowActivation:
    await how(made, converter, decode_headers=False, storage_concurrency_limit=1)
    return made


async def encoded(
    made: WorkflowActivationCompletion, converter: DataConverter, how: Callable[..., Any]
) -> WorkflowActivationCompletion:
    await how(made, converter, encode_headers=False, storage_concurrency_limit=1)
    return made


BROUGHT = {"plain": PLAIN, "claims to be stored": CLAIMED, "by reference": reference("nobody/abc"), "empty": Payload()}


@pytest.mark.parametrize("payload", BROUGHT.values(), ids=BROUGHT)
async def test_a_task_brings_what_the_sdk_would_have_made_of_it(payload: Payload, ours: DataConverter) -> None:
    for converter in (ours, DATA_CONVERTER):
        as_ever = await decoded(task(payload), converter, passes("decode_activation"))
        assert await decoded(task(payload), converter, bridge.decode_activation) == as_ever


async def test_what_came_by_reference_is_still_fetched_and_what_only_says_so_is_not_believed(
    ours: DataConverter, tmp_path: Path
) -> None:
    text = Payload(metadata={"encoding": b"json/plain"}, data=b'"a long story"').SerializeToString(deterministic=True)
    key = key_of(session_prefix("shop", "orders"), text)
    await DirectoryBlobs(tmp_path).put(key, text)
    found = await decoded(task(reference(key)), ours, bridge.decode_activation)
    assert [job.signal_workflow.input[0].data for job in found.jobs[:1]] == [b'"a long story"']
    lost = await decoded(task(reference("nobody/abc")), ours, bridge.decode_activation)
    assert lost.jobs[0].signal_workflow.input[0].metadata["encoding"] == MISSING
    claimed = await decoded(task(CLAIMED), ours, bridge.decode_activation)
    assert KEY not in claimed.jobs[0].signal_workflow.input[0].metadata


async def test_what_is_large_is_still_stored_outside(ours: DataConverter) -> None:
    for size in (10, 900, 1_100):
        payload = Payload(metadata={"encoding": b"json/plain"}, data=b"7" * size)
        as_ever = await encoded(answer(payload), ours, passes("encode_completion"))
        now = await encoded(answer(payload), ours, bridge.encode_completion)
        assert now == as_ever
        stored = now.successful.commands[0].complete_workflow_execution.result
        assert (stored.metadata.get("messageType") == REFERENCE) is (size == 1_100)


async def test_a_codec_and_a_converter_of_somebody_else_are_asked_as_ever() -> None:
    coded = DataConverter(payload_codec=Reversed())
    assert (await encoded(answer(PLAIN), coded, bridge.encode_completion)) != answer(PLAIN)
    assert (await decoded(task(PLAIN), coded, bridge.decode_activation)) != task(PLAIN)
    with pytest.raises(RuntimeError, match="TMPRL1105"):
        await decoded(task(reference("nobody/abc")), pydantic_data_converter, bridge.decode_activation)


def test_the_sdk_makes_no_other_passes_than_those_that_are_left_out() -> None:
    """A release of the SDK that does more there must be looked at."""
    known = {
        "decode_activation": ("_decode_reference_payload", "_external_retrieve_payload", "_decode_payload"),
        "encode_completion": ("_encode_payload", "_external_store_payload", "_encode_reference_payload"),
    }
    for name, each in known.items():
        text = inspect.getsource(passes(name))
        assert text.count(".visit(") == len(each) == text.count("data_converter.")
        assert all(f"data_converter.{one}_sequence" in text for one in each)
