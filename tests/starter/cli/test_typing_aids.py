"""What helps with typing in a chat: completion at Tab, and pictures that are named."""

import base64
import os
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg
from longhaul.starter.cli.terminal.conversation import MOST_BYTES, with_pictures
from longhaul.starter.cli.terminal.live_chat import Completions
from longhaul.starter.cli.terminal.slash_commands import HELP, NAMES
from longhaul.starter.client.updates import MEDIA_TYPES
from longhaul.starter.client.wire import Refused


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shore").mkdir()
    (tmp_path / "shore" / "a boat.png").write_bytes(b"boat")
    (tmp_path / "shore.md").write_text("sand")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("typed", "ends"),
    [
        ("/und", ["/undo"]),
        ("/mo", ["/mode", "/model"]),
        ("/mode pl", ["plan"]),
        ("look at @sho", ["re", "re.md"]),
        ("look at @shore/a", [" boat.png"]),
        ("/now look at @shore.", ["md"]),
        ("no command /und", []),
        ("", []),
        ("ana@sho", []),
    ],
)
def test_what_is_typed_is_completed(typed: str, ends: list[str]) -> None:
    found = Completions(NAMES).get_completions(Document(typed, len(typed)), CompleteEvent())

    assert [one.text for one in found] == ends


def test_every_command_is_completed_and_explained() -> None:
    assert {usage.split()[0] for usage in HELP} | {"/help"} == set(NAMES)


def sent(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The text, and of each picture its name, its kind and what is in it."""
    message = with_pictures(text)
    if not isinstance(message, Msg):
        return message, []
    pictures = [block for block in message.content if isinstance(block, DataBlock)]
    sources = [block.source for block in pictures if isinstance(block.source, Base64Source)]
    return message.get_text_content(), [
        (block.name or "", source.media_type, base64.b64decode(source.data).decode())
        for block, source in zip(pictures, sources, strict=True)
    ]


def test_each_picture_that_is_named_goes_along_once(folder: Path) -> None:
    for ending in MEDIA_TYPES:
        (folder / f"tide{ending.upper()}").write_bytes(ending.encode())
    text = 'see @"shore/a boat.png", ' + " ".join(f"@tide{end.upper()}" for end in MEDIA_TYPES) + ", and @tide.PNG."

    told, pictures = sent(text)

    assert told == text
    assert pictures == [
        ("a boat.png", "image/png", "boat"),
        *((f"tide{end.upper()}", kind, end) for end, kind in MEDIA_TYPES.items()),
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", ["see @shore.md", "ask ana@shore.png", "@everybody", "an @ alone"])
def test_what_names_no_picture_is_text(text: str) -> None:
    assert sent(text) == (text, [])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["none.png", "shore/none.pdf"])
def test_a_picture_that_can_not_be_read_is_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(Refused, match=f"@{name}: it can't be read: No such file.*; nothing was"):
        with_pictures(f"see @{name}")


@pytest.mark.usefixtures("folder")
def test_what_has_no_end_or_is_too_large_is_refused_and_a_link_is_read() -> None:
    os.mkfifo("pipe.png")
    Path("device.png").symlink_to("/dev/zero")
    Path("large.png").write_bytes(bytes(MOST_BYTES + 1))
    Path("tide.jpg").write_text("low")
    Path("link.jpg").symlink_to("tide.jpg")

    for name in ("pipe.png", "device.png", "large.png"):
        with pytest.raises(
            Refused, match=f"@{name}: it can't be read: it is no file of at most 20 MB; nothing was sent"
        ):
            with_pictures(f"see @{name}")
    assert sent("see @link.jpg")[1] == [("link.jpg", "image/jpeg", "low")]
