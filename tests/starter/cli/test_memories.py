"""`longhaul memory` and `longhaul knowledge`, in this process: what they change, show and refuse."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.cli.commands import knowledge, memory
from longhaul.starter.cli.commands.knowledge import NoDocument, documents_in, passages_of, read_document
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.stores.memories.memories import MemoryOwner, NewMemory
from longhaul.stores.memories.open_memories import open_knowledge
from longhaul.stores.memories.sqlite_memories import SqliteMemories

pytestmark = pytest.mark.usefixtures("data")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGHAUL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def harbour(folder: Path) -> Path:
    pages = {
        "harbour/tides.md": "# Tides\n\nHigh water is at six.",
        "harbour/ferries.html": "<h1>Ferries</h1><script>let no = 1</script><p>The ferry&nbsp;leaves at noon.</p>",
        "harbour/deep/fees.txt": "Berth 14 costs 9 a night.",
        "harbour/.git/config": "secret",
    }
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "harbour" / "map.png").write_bytes(b"\x89PNG\0\0")
    return folder / "harbour"


async def test_a_folder_is_put_in_and_what_has_not_changed_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, screen = harbour(tmp_path), Screen(as_json=True)

    assert await knowledge.add(screen, "harbour", [folder]) == Exit.TROUBLE
    added = told(capsys)
    (folder / "tides.md").write_text("# Tides\n\nHigh water is at seven.")
    await knowledge.add(screen, "harbour", [folder])
    again = told(capsys)

    names = ["harbour/ferries.html", "harbour/tides.md", "harbour/deep/fees.txt"]
    assert (added["added"], list(added["left_out"])) == (names, ["harbour/map.png"])
    assert "no text in UTF-8" in added["left_out"]["harbour/map.png"]
    assert (again["added"], again["unchanged"]) == (["harbour/tides.md"], 2)


async def test_files_of_two_folders_of_one_name_do_not_replace_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, (x, y) = Screen(as_json=True), (tmp_path / "x" / "docs", tmp_path / "y" / "docs")
    for folder, text in ((x, "High water is at six."), (y, "High water is at nine.")):
        folder.mkdir(parents=True)
        (folder / "tides.md").write_text(text)

    async def put(*paths: Path, called: str | None = None) -> list[str]:
        await knowledge.add(screen, "harbour", [*paths], called=called)
        return [*told(capsys)["added"]]

    with pytest.raises(Misuse, match=r"two files would be the document 'docs/tides\.md'"):
        await put(x, y)
    assert await put(x) == ["docs/tides.md"]
    with pytest.raises(Misuse, match=r"'docs/tides\.md' is there, of a file in another place; `--as NAME`"):
        await put(y)
    assert await put(y, called="pilot/") == ["pilot/tides.md"]
    (x / "tides.md").write_text("High water is at seven.")
    assert await put(x) == ["docs/tides.md"]
    assert await put(y / "tides.md", called="neap.md") == ["neap.md"]
    assert (await put(y, called="pilot"), await put(y, called="docs")) == ([], ["docs/tides.md"])
    await knowledge.list_documents(screen)

    assert [each["name"] for each in told(capsys)["documents"]] == ["docs/tides.md", "neap.md", "pilot/tides.md"]
    for refused in ([x, y], [x]):
        with pytest.raises(Misuse, match="--as: it is the name of one file or folder"):
            await knowledge.add(screen, "harbour", refused, called="/" if len(refused) == 1 else "docs")


async def test_a_document_of_an_older_release_is_replaced_by_the_file_of_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, text = Screen(as_json=True), "High water is at six."
    (tmp_path / "tides.md").write_text(text)
    kept = open_knowledge("sqlite", tmp_path / "data")
    await kept.put("harbour", "tides.md", hashlib.sha256(text.encode()).hexdigest(), [text])

    await knowledge.add(screen, "harbour", [tmp_path / "tides.md"])
    same = told(capsys)
    (tmp_path / "tides.md").write_text("High water is at seven.")
    await knowledge.add(screen, "harbour", [tmp_path / "tides.md"])

    assert (same["added"], same["unchanged"]) == ([], 1)
    assert told(capsys)["added"] == ["tides.md"]
    assert [each.name for each in await kept.list_documents(None)] == ["tides.md"]


async def test_what_was_put_in_is_searched_listed_and_taken_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen(as_json=True)
    await knowledge.add(screen, "harbour", [harbour(tmp_path)])
    capsys.readouterr()

    await knowledge.search(screen, "harbour", "When does the ferry leave?", limit=5)
    (passage,) = told(capsys)["passages"]
    await knowledge.delete(screen, "harbour", ["harbour/tides.md"], every=False)
    deleted = told(capsys)
    await knowledge.list_documents(screen)

    assert passage["document"] == "harbour/ferries.html"
    assert passage["text"].split() == ["Ferries", "The", "ferry", "leaves", "at", "noon."]
    assert deleted == {"deleted": 1}
    assert [each["name"] for each in told(capsys)["documents"]] == ["harbour/deep/fees.txt", "harbour/ferries.html"]


async def test_memories_are_listed_and_deleted_for_one_user(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    kept = SqliteMemories(data / "memory.db")
    for user in ("ana", "ben"):
        new = [NewMemory(f"{user}{number}", f"{user} {number}\x1b[2J", "s1") for number in range(3)]
        await kept.record(MemoryOwner(user, "lamp"), new)
    screen = Screen(as_json=True)

    await memory.list_memories(screen, user="ana", limit=2)
    newest, other = told(capsys)["memories"]
    assert await memory.delete(screen, [newest["id"], "4711"], user="ana") == Exit.TROUBLE
    assert await memory.delete(screen, [other["id"]], user="ben") == Exit.TROUBLE
    capsys.readouterr()
    await memory.delete(screen, every=True, user="ben", agent="lamp")

    assert told(capsys) == {"deleted": 3}
    left = await kept.list_memories(MemoryOwner("ana", None), 9)
    assert [each.text.partition("\x1b")[0] for each in left] == ["ana 1", "ana 0"]
    await memory.list_memories(Screen(), user="ana")
    assert "\x1b" not in capsys.readouterr().out


async def test_what_can_not_be_meant_is_refused_with_a_sentence(tmp_path: Path) -> None:
    screen = Screen(as_json=True)
    with pytest.raises(Misuse, match="there is no file and no folder"):
        await knowledge.add(screen, "harbour", [tmp_path / "nowhere"])
    with pytest.raises(Misuse, match="can't be the name of a knowledge base"):
        await knowledge.add(screen, "../harbour", [tmp_path])
    with pytest.raises(Misuse, match="there is no knowledge base 'harbor'; there are: none"):
        await knowledge.search(screen, "harbor", "tides")
    with pytest.raises(Misuse, match="or say --all"):
        await knowledge.delete(screen, "harbour", [], every=False)
    with pytest.raises(Misuse, match="or say --all"):
        await memory.delete(screen, ["1"], every=True, user="ana")


def test_files_that_are_no_documents_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "LARGEST_BYTES", 1_000_000)
    wrong = {"big.txt": b"x" * 1_000_001, "empty.md": b" \n", "odd.txt": b"\xff\xfe"}
    why = {}
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NoDocument) as refused:
            read_document(tmp_path / name)
        why[name] = str(refused.value)

    assert why == {
        "big.txt": "it has more than 1 MB; cut it up",
        "empty.md": "it has no text",
        "odd.txt": "it is no text in UTF-8; make a text file of it",
    }


def test_links_and_hidden_files_of_a_folder_are_left_out(tmp_path: Path) -> None:
    folder = harbour(tmp_path)
    (tmp_path / "outside.txt").write_text("outside")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "loop").symlink_to(folder)

    assert "harbour/link.txt" not in documents_in([folder])
    assert len(documents_in([folder])) == 4


@pytest.mark.parametrize("text", ["a" * 10_000, "word " * 3_000, "Short.\n\n" * 900, "Two\n\nparts", ""])
def test_passages_are_short_and_lose_no_word(text: str) -> None:
    passages = passages_of(text)

    assert all(0 < len(passage) <= knowledge.PASSAGE_CHARS for passage in passages)
    assert "".join("".join(passages).split()) == "".join(text.split())
