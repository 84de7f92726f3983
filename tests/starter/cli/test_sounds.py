"""Sound among results: kept once, named, and played by a program of one's own that nobody waits for."""

import asyncio
import base64
import stat
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, URLSource
from longhaul.starter.cli.terminal.sounds import Sounds, ending_of, player, sounds_in
from longhaul.starter.settings import Settings
from tests.limits import SURE_SECONDS

SONG = b"RIFF....WAVEfmt la la la"


def song(name: str | None = "song.wav", data: bytes = SONG, media_type: str = "audio/wav") -> DataBlock:
    return DataBlock(source=Base64Source(data=base64.b64encode(data).decode(), media_type=media_type), name=name)


def fake_player(folder: Path, more: str = "") -> str:
    """A program that writes down what it was to play, in `played`; returns the setting that names it."""
    program = folder / "fake player"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\necho "$1 $(cat "$last")" >> "{folder}/played"\n{more}\n')
    program.chmod(0o755)
    return f"'{program}' --softly"


def content(file: Path) -> str:
    return file.read_text() if file.exists() else ""


async def text_of(file: Path) -> str:
    """Once there is some."""
    async with asyncio.timeout(SURE_SECONDS):
        while True:
            if text := content(file):
                return text
            await asyncio.sleep(0.01)


def test_a_sound_is_kept_once_under_a_name_that_follows_from_it(tmp_path: Path) -> None:
    sounds = Sounds(settings=Settings(data_dir=tmp_path))

    lines = [sounds.take(block).plain for block in (song(), song(name=None), song(data=b"other"))]

    kept = sorted((tmp_path / "audio").iterdir())
    assert sorted(file.read_bytes() for file in kept) == [SONG, b"other"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}
    assert lines[0] == f"  ♪ song.wav (audio/wav) is in {next(file for file in kept if file.read_bytes() == SONG)}"
    assert lines[1].startswith("  ♪ a sound (audio/wav) is in ")


def test_what_can_not_be_kept_or_stands_elsewhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    malformed_input = DataBlock(source=Base64Source(data="no base64!", media_type="audio/wav"), name="a\x1b]0;b")
    far = DataBlock(source=URLSource(url="https://pier.example/x.wav", media_type="audio/wav"))

    unread = Sounds(settings=Settings(data_dir=tmp_path)).take(malformed_input).plain
    unkept = Sounds(settings=Settings(data_dir=tmp_path / "taken")).take(song()).plain
    named = Sounds(settings=Settings(data_dir=tmp_path)).take(far).plain

    assert "a\\x1b]0;b (audio/wav) can't be kept: " in unread
    assert "can't be kept: " in unkept
    assert named == "  ♪ a sound (audio/wav) at https://pier.example/x.wav"
    assert not (tmp_path / "audio").exists()


@pytest.mark.parametrize(
    ("media_type", "ending"),
    [
        ("audio/wav", "wav"),
        ("audio/mpeg", "mp3"),
        ("audio/x-wav; rate=8", "wav"),
        ("audio/../../etc", "etc"),
        ("x", "bin"),
    ],
)
def test_no_kind_of_sound_leads_out_of_the_folder(media_type: str, ending: str) -> None:
    assert ending_of(media_type) == ending


async def test_sounds_are_played_one_after_another_and_nobody_waits(tmp_path: Path) -> None:
    named = fake_player(tmp_path, f'test -e "{tmp_path}/go" || while [ ! -e "{tmp_path}/go" ]; do sleep 0.02; done')
    sounds = Sounds(play=True, settings=Settings(data_dir=tmp_path, player=named))

    for data in (b"do", b"re", b"mi"):
        sounds.take(song(data=data))
    first = await text_of(tmp_path / "played")
    (tmp_path / "go").touch()
    async with asyncio.timeout(SURE_SECONDS):
        await sounds.done()

    assert first == "--softly do\n", "the next one waits, and we don't"
    assert (tmp_path / "played").read_text().split("\n") == ["--softly do", "--softly re", "--softly mi", ""]


async def test_a_player_that_never_ends_dies_with_the_command(tmp_path: Path) -> None:
    named = fake_player(tmp_path, f'echo $$ > "{tmp_path}/pid"; exec sleep 60')
    sounds = Sounds(play=True, settings=Settings(data_dir=tmp_path, player=named))
    sounds.take(song())
    waiting = asyncio.create_task(sounds.done())
    process = Path("/proc") / (await text_of(tmp_path / "pid")).strip() / "cmdline"

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert not process.exists() or not process.read_bytes()


async def test_a_player_that_fails_or_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    failing = Sounds(play=True, settings=Settings(data_dir=tmp_path, player=fake_player(tmp_path, "exit 3")))
    missing = Sounds(play=True, settings=Settings(data_dir=tmp_path, player="no-such-player --softly"))

    assert "LONGHAUL_PLAYER" not in failing.take(song()).plain
    first, second = missing.take(song()).plain, missing.take(song()).plain
    async with asyncio.timeout(SURE_SECONDS):
        await failing.done()
        await missing.done()

    assert "no player was found for --play; name one in LONGHAUL_PLAYER" in first
    assert "LONGHAUL_PLAYER" not in second, "said once"


def test_a_player_is_found_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "aplay"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert player("") == ["aplay", "-q"]
    assert player("mpv --loop") == []


def test_only_sound_is_taken_out_of_a_result() -> None:
    picture = DataBlock(source=Base64Source(data="AAAA", media_type="image/png"))

    assert sounds_in([picture, song()]) == [song()]
    assert sounds_in([]) == []
