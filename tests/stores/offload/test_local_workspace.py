"""LocalWorkspace: the seed's layout, each message once, and nothing written where a link leads."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import AssistantMsg, HintBlock, Msg, TextBlock, URLSource, UserMsg
from longhaul.stores.offload.local_workspace import LocalWorkspace
from longhaul.stores.offload.shared_folders import locked, opened_folder
from tests.limits import SURE_SECONDS
from tests.stores.offload.samples import PIXEL, PIXEL_NAME, content_of, names_in, picture, result, said, texts_in


@pytest.fixture
def workspace(tmp_path: Path) -> LocalWorkspace:
    return LocalWorkspace(tmp_path / "work")


@pytest.mark.proves("B5")
async def test_the_layout_is_the_seeds(workspace: LocalWorkspace) -> None:
    await workspace.initialize()

    context = await workspace.offload_context("kettle", [said(1), UserMsg("ana", [picture()])])
    text = await workspace.offload_tool_result("kettle", result("call_7", "all of it"))

    assert sorted(path.name for path in workspace.workdir.iterdir()) == ["data", "sessions", "skills"]
    assert context == str(workspace.workdir / "sessions/kettle/context.jsonl")
    assert text == str(workspace.workdir / "sessions/kettle/tool_result-call_7.txt")
    assert content_of(text) == "all of it"
    assert (workspace.workdir / "data" / PIXEL_NAME).read_bytes() == PIXEL


async def test_messages_are_appended_in_order_one_to_a_line(workspace: LocalWorkspace) -> None:
    await workspace.offload_context("kettle", [said(1), said(2)], batch="epoch-2")
    path = await workspace.offload_context("kettle", [said(3)], batch="epoch-3")

    assert texts_in(path) == ["message 1", "message 2", "message 3"]


async def test_a_repeated_call_writes_no_line_twice(workspace: LocalWorkspace) -> None:
    twins = [said(1), UserMsg("ana", "yes"), UserMsg("ana", "yes")]

    paths = [await workspace.offload_context("kettle", twins, batch="epoch-2") for _ in range(3)]

    assert texts_in(paths[0]) == ["message 1", "yes", "yes"]


async def test_an_attempt_that_drops_other_messages_adds_only_what_is_new(workspace: LocalWorkspace) -> None:
    await workspace.offload_context("kettle", [said(1), said(2), said(4)], batch="epoch-2")

    path = await workspace.offload_context("kettle", [said(1), said(3), said(4)], batch="epoch-2")

    assert texts_in(path) == ["message 1", "message 2", "message 4", "message 3"]


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts what a process writes")
async def test_what_a_compression_writes_does_not_grow_with_what_is_there(tmp_path: Path) -> None:
    workspace = LocalWorkspace(tmp_path / "work", part_bytes=50_000)
    batches = [[said(number * 10 + step, 1_000) for step in range(10)] for number in range(60)]
    costs, paths = [], []
    for number, batch in enumerate(batches):
        before = written_bytes()
        paths.append(await workspace.offload_context("kettle", batch, batch=f"epoch-{number}"))
        costs.append(written_bytes() - before)

    before = written_bytes()
    again = await workspace.offload_context("kettle", batches[7], batch="epoch-7")

    assert max(costs) < 50_000 + 1_000
    assert sum(path.stat().st_size for path in Path(again).parent.iterdir()) > 600_000
    assert again == paths[7]
    assert written_bytes() - before < 100  # what the loop's own threads write to wake it
    parts = list(dict.fromkeys(paths))
    assert [Path(part).name for part in parts[:3]] == ["context.jsonl", "context(1).jsonl", "context(2).jsonl"]
    texts = [text for part in parts for text in texts_in(part)]
    assert texts == [message.get_text_content() for batch in batches for message in batch]


def written_bytes() -> int:
    """By this process, whatever the file."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


async def test_the_same_words_in_another_batch_are_another_message(workspace: LocalWorkspace) -> None:
    await workspace.offload_context("kettle", [UserMsg("ana", "yes")], batch="epoch-2")

    path = await workspace.offload_context("kettle", [UserMsg("ana", "yes")], batch="epoch-3")

    assert texts_in(path) == ["yes", "yes"]


async def test_without_a_batch_the_same_call_again_is_the_same_call(workspace: LocalWorkspace) -> None:
    await workspace.offload_context("kettle", [UserMsg("ana", "yes")])
    await workspace.offload_context("kettle", [UserMsg("ana", "yes")])

    path = await workspace.offload_context("kettle", [UserMsg("ana", "yes"), said(2)])

    assert texts_in(path) == ["yes", "yes", "message 2"]


async def test_an_attempt_on_a_worker_that_knows_no_ids_is_the_same_attempt(workspace: LocalWorkspace) -> None:
    await workspace.offload_context("kettle", [said(1)], batch="epoch-2")

    path = await workspace.offload_context("kettle", [said(1).model_copy(update={"id": ""})], batch="epoch-2")

    assert texts_in(path) == ["message 1"]


async def test_a_line_holds_any_text_and_stays_one_line(workspace: LocalWorkspace) -> None:
    odd = 'line\nbreak\r\u2028\u2029\x85 "quoted" \0 café \ud800 ,"offloaded_as":"x"}'

    path = await workspace.offload_context("kettle", [UserMsg("ana", odd)])

    content = content_of(path)
    assert len(content.splitlines()) == 1
    assert json.loads(content)["content"][0]["text"] == odd


async def test_attachments_are_referenced_wherever_they_stand(workspace: LocalWorkspace) -> None:
    answer = result("call_7", (TextBlock(text="see"), picture()))
    hint = HintBlock(hint=(picture(),))

    path = await workspace.offload_context("kettle", [AssistantMsg("lamp", [picture(), answer, hint])])

    content = content_of(path)
    (message,) = [Msg.model_validate_json(line) for line in content.splitlines()]
    image = message.content[0]
    assert image.type == "data"
    assert image.source == URLSource(url=str(workspace.workdir / "data" / PIXEL_NAME), media_type="image/png")
    assert content.count(PIXEL_NAME) == 3
    assert "base64" not in content
    assert names_in(workspace.workdir / "data") == [".lock", PIXEL_NAME]


async def test_attachments_of_odd_types_and_broken_base64_are_kept_as_they_are(workspace: LocalWorkspace) -> None:
    broken = picture().model_copy(
        update={"source": picture().source.model_copy(update={"media_type": "../../x", "data": "not base64!"})}
    )

    await workspace.offload_context("kettle", [UserMsg("ana", [broken])])

    (name,) = [path for path in (workspace.workdir / "data").iterdir() if path.suffix]
    assert (name.suffix, name.read_text()) == (".x", "not base64!")


async def test_a_result_of_the_same_id_gets_a_name_of_its_own_unless_it_is_the_same(workspace: LocalWorkspace) -> None:
    outputs = ["first", "second", "first", "second", "third"]

    paths = [await workspace.offload_tool_result("kettle", result("call_7", output)) for output in outputs]

    assert [Path(path).name for path in paths] == [
        "tool_result-call_7.txt",
        "tool_result-call_7(1).txt",
        "tool_result-call_7.txt",
        "tool_result-call_7(1).txt",
        "tool_result-call_7(2).txt",
    ]
    assert [content_of(path) for path in paths] == outputs


async def test_the_attachments_of_a_result_are_named_in_its_text(workspace: LocalWorkspace) -> None:
    path = await workspace.offload_tool_result("kettle", result("call_7", (TextBlock(text="before"), picture())))

    where = workspace.workdir / "data" / PIXEL_NAME
    assert content_of(path) == f"before\n[image/png 'pixel.png': {where}]"


@pytest.mark.parametrize("name", ["../../up", "/etc/cron.d/x", "a\0b", "..", "", "x" * 10_000, "\ud800é\n"])
async def test_hostile_ids_stay_below_the_workdir(workspace: LocalWorkspace, name: str) -> None:
    context = await workspace.offload_context(name, [said(1)])
    text = await workspace.offload_tool_result(name, result(name, "kept"))

    for path in (Path(context), Path(text)):
        assert path.parent.parent == workspace.workdir / "sessions"
        assert path.resolve() == path
    assert names_in(workspace.workdir.parent) == ["work"]


def tear(path: str) -> None:
    """As a power cut may on a file system that keeps no order."""
    whole = Path(path).read_bytes()
    Path(path).write_bytes(whole[:-20])


async def test_a_torn_tail_is_repaired_with_the_next_message(workspace: LocalWorkspace) -> None:
    path = await workspace.offload_context("kettle", [said(1), said(2)], batch="epoch-2")
    tear(path)

    await workspace.offload_context("kettle", [said(1), said(2), said(3)], batch="epoch-2")

    assert texts_in(path) == ["message 1", "message 2", "message 3"]


async def test_many_attempts_at_once_write_each_message_once(tmp_path: Path) -> None:
    batches = {f"epoch-{number}": [said(number * 10 + step) for step in range(10)] for number in range(4)}
    attempts = [
        LocalWorkspace(tmp_path).offload_context("kettle", msgs, batch=batch)
        for batch, msgs in batches.items()
        for _ in range(6)
    ]

    path, *_ = await asyncio.gather(*attempts)

    texts = texts_in(path)
    assert sorted(texts) == sorted(msg.get_text_content() for msgs in batches.values() for msg in msgs)
    for msgs in batches.values():
        start = texts.index(msgs[0].get_text_content())
        assert texts[start : start + 10] == [msg.get_text_content() for msg in msgs]


async def test_a_lock_that_is_held_too_long_is_an_error_and_no_wait_for_ever(
    workspace: LocalWorkspace,
) -> None:
    path = await workspace.offload_context("kettle", [said(1)])
    impatient = LocalWorkspace(workspace.workdir, lock_seconds=0.05)

    with opened_folder(Path(path).parent) as folder, locked(folder, 1), pytest.raises(TimeoutError):
        await impatient.offload_context("kettle", [said(2)])

    assert texts_in(path) == ["message 1"]


@pytest.mark.parametrize("linked", ["sessions", "sessions/kettle", "data"])
async def test_a_folder_that_became_a_link_is_not_written_through(workspace: LocalWorkspace, linked: str) -> None:
    elsewhere = workspace.workdir.parent / "elsewhere"
    elsewhere.mkdir()
    (workspace.workdir / linked).parent.mkdir(parents=True, exist_ok=True)
    (workspace.workdir / linked).symlink_to(elsewhere)

    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        await workspace.offload_context("kettle", [UserMsg("ana", [picture()])])

    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["context.jsonl", ".lock", ".draft", "tool_result-call_7.txt"])
@pytest.mark.parametrize("hard", [False, True])
async def test_a_file_that_became_a_link_is_replaced_and_neither_read_nor_written(
    workspace: LocalWorkspace, name: str, hard: bool
) -> None:
    secret = workspace.workdir.parent / "secret"
    secret.write_text("marmalade\n")
    folder = workspace.workdir / "sessions" / "kettle"
    folder.mkdir(parents=True)
    if hard:
        (folder / name).hardlink_to(secret)
    else:
        (folder / name).symlink_to(secret)

    context = await workspace.offload_context("kettle", [said(1)])
    text = await workspace.offload_tool_result("kettle", result("call_7", "kept"))

    assert texts_in(context) == ["message 1"]
    assert content_of(text) == "kept"
    assert secret.read_text() == "marmalade\n"


@pytest.mark.parametrize("name", ["context.jsonl", ".lock", "tool_result-call_7.txt"])
async def test_a_pipe_in_the_way_holds_nobody_up(workspace: LocalWorkspace, name: str) -> None:
    folder = workspace.workdir / "sessions" / "kettle"
    folder.mkdir(parents=True)
    os.mkfifo(folder / name)

    async with asyncio.timeout(SURE_SECONDS):
        context = await workspace.offload_context("kettle", [said(1)])
        text = await workspace.offload_tool_result("kettle", result("call_7", "kept"))

    assert texts_in(context) == ["message 1"]
    assert content_of(text) == "kept"


async def test_a_folder_in_the_way_is_an_error_and_leaves_no_descriptor_open(workspace: LocalWorkspace) -> None:
    (workspace.workdir / "sessions" / "kettle" / "context.jsonl").mkdir(parents=True)
    before = len(names_in("/proc/self/fd"))

    for _ in range(20):
        with pytest.raises(OSError, match="directory"):
            await workspace.offload_context("kettle", [said(1)])

    assert len(names_in("/proc/self/fd")) < before + 10
