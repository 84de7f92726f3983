"""Whole outputs among the blobs of a session: encrypted where it is, read back by their digits, and by nobody else."""

import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import TextBlock
from longhaul.stores.blobs.blob_directory import open_blobs
from longhaul.stores.blobs.blobs import BlobStore, NoBlob, key_of, session_prefix
from longhaul.stores.keys.keyring import Keyring, Masters
from longhaul.stores.keys.open_keyring import open_keys
from longhaul.stores.offload.session_blobs import POINTER, SessionBlobs
from tests.stores.offload.samples import PIXEL, PIXEL_NAME, picture, result, said

MINE, ANOTHERS = session_prefix("default", "kettle"), session_prefix("default", "stove")
WORD = "Zinnober7731"


@pytest.fixture
async def blobs(tmp_path: Path) -> AsyncIterator[BlobStore]:
    opened = open_blobs("", data_dir=tmp_path)
    yield opened
    await opened.close()


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
async def keys(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Keyring | None]:
    if not request.param:
        yield None
        return
    made = Keyring(open_keys("", data_dir=tmp_path), Masters(f"first:{base64.b64encode(os.urandom(32)).decode()}"))
    yield made
    await made.close()


def digits(reference: str) -> str:
    assert reference.startswith(POINTER)
    return reference.removeprefix(POINTER)


async def test_an_output_is_read_back_whole_and_the_same_again_is_the_same(
    blobs: BlobStore, keys: Keyring | None
) -> None:
    kept = SessionBlobs(blobs, keys, MINE)
    whole = f"line\r\n\t{WORD} 漢字\n" * 9_000

    reference = await kept.offload_tool_result("kettle", result("call_1", whole))

    assert await kept.offload_tool_result("kettle", result("call_1", whole)) == reference
    assert await kept.read(digits(reference)) == ("", whole.encode())
    assert len(await blobs.keys(MINE)) == 1
    lies_open = WORD.encode() in await blobs.get(f"{MINE}/{digits(reference)}")
    assert lies_open is (keys is None)


async def test_an_attachment_of_an_output_is_read_back_by_itself(blobs: BlobStore, keys: Keyring | None) -> None:
    kept = SessionBlobs(blobs, keys, MINE)

    reference = await kept.offload_tool_result("kettle", result("call_1", [picture()]))

    name, text = await kept.read(digits(reference))
    assert (name, text.decode().startswith("[image/png 'pixel.png': recall output=")) == ("", True)
    assert await kept.read(digits(text.decode().removesuffix("]").split(": ")[1])) == (PIXEL_NAME, PIXEL)


async def test_dropped_messages_are_left_to_the_record(blobs: BlobStore, keys: Keyring | None) -> None:
    assert not await SessionBlobs(blobs, keys, MINE).offload_context("kettle", [said(1)], batch="epoch-1")
    assert await blobs.keys(MINE) == []


async def test_what_is_no_output_of_this_session_is_not_read(blobs: BlobStore, keys: Keyring | None) -> None:
    another = await SessionBlobs(blobs, keys, ANOTHERS).offload_tool_result("stove", result("call_1", WORD))
    segment = key_of(MINE, b'{"kind":"boundary"}\n')
    await blobs.put(segment, b'{"kind":"boundary"}\n')
    mine = SessionBlobs(blobs, keys, MINE)

    for asked in (digits(another), segment.rpartition("/")[2], "0" * 64, f"../{'0' * 61}"):
        with pytest.raises(NoBlob, match="this session keeps no output"):
            await mine.read(asked)


async def test_nobody_reads_an_output_whose_key_is_deleted(blobs: BlobStore, tmp_path: Path) -> None:
    keys = Keyring(open_keys("", data_dir=tmp_path), Masters(f"first:{base64.b64encode(os.urandom(32)).decode()}"))
    kept = SessionBlobs(blobs, keys, MINE)
    reference = await kept.offload_tool_result("kettle", result("call_1", WORD))

    await keys.delete(MINE)

    with pytest.raises(NoBlob, match="its key was deleted"):
        await kept.read(digits(reference))
    await keys.close()


async def test_what_is_taken_over_is_read_with_its_attachments_when_the_first_is_gone(
    blobs: BlobStore, keys: Keyring | None
) -> None:
    first, copy = SessionBlobs(blobs, keys, MINE), SessionBlobs(blobs, keys, ANOTHERS)
    quoted = await first.offload_tool_result("kettle", result("call_0", WORD))
    reference = await first.offload_tool_result(
        "kettle", result("call_1", [TextBlock(text=f"{quoted} is quoted"), picture()])
    )

    taken = await copy.take_over(first, reference.removeprefix(POINTER))
    again = await copy.take_over(first, reference.removeprefix(POINTER))
    await blobs.delete_prefix(MINE)
    _, text = await copy.read(taken.removeprefix(POINTER))
    said, line = text.decode().split("\n")
    name, content = await copy.read(line.rpartition(POINTER)[2].removesuffix("]"))

    assert said == f"{quoted} is quoted"
    assert (name, content) == (PIXEL_NAME, PIXEL)
    assert taken == again
    assert (taken == reference) is (keys is None)
    with pytest.raises(NoBlob):
        await first.read(reference.removeprefix(POINTER))
