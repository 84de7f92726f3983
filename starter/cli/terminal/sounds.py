"""Sound that an agent's tools give: kept as a file, named on the screen, and played where somebody wants that."""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import os
import re
import shlex
import shutil
from pathlib import Path

from rich.text import Text

from longhaul.agent.values.conversation.messages import Base64Source, DataBlock
from longhaul.starter.settings import Settings, SettingsOfTheUser
from longhaul.starter.visible import one_line

FOLDER = "audio"
"""In the data directory."""
PLAYERS = (
    "ffplay -nodisp -autoexit -loglevel quiet",
    "mpv --no-video --really-quiet",
    "pw-play",
    "paplay",
    "aplay -q",
    "afplay",
)
"""Tried in this order where LONGHAUL_PLAYER names none; the file is the last argument."""
LONGEST_SECONDS = 600.0
"""Of one file; a player that has not ended by then is ended."""
_ENDINGS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-flac": "flac", "mp4": "m4a"}


class Sounds:
    """Of one command. Files are played one after another, and nothing ever waits for them but `done`."""

    def __init__(self, *, play: bool = False, settings: Settings | None = None) -> None:
        self._play = play
        self._settings = settings
        self._waiting: asyncio.Queue[Path] = asyncio.Queue()
        self._playing: asyncio.Task[None] | None = None

    def take(self, block: DataBlock) -> Text:
        """The line that names it. One that stands elsewhere is only named: nobody fetches what a tool points to."""
        name = f"{one_line(block.name or 'a sound')} ({one_line(block.source.media_type)})"
        if not isinstance(block.source, Base64Source):
            return Text(f"  ♪ {name} at {one_line(block.source.url)}", "dim")
        try:
            file = self._keep(block.source)
        except (OSError, binascii.Error, ValueError) as error:
            return Text(f"  ♪ {name} can't be kept: {one_line(str(error))}", "yellow")
        line = Text(f"  ♪ {name} is in {one_line(str(file))}", "dim")
        if self._play and (trouble := self._play_later(file)):
            line.append(f"\n    {trouble}", "yellow")
        return line

    async def done(self) -> None:
        """Until all has been played. Whoever is told to leave before ends what is being played."""
        try:
            await self._waiting.join()
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End what is being played, and play nothing more."""
        if self._playing is not None:
            self._playing.cancel()
            await asyncio.gather(self._playing, return_exceptions=True)

    def _settings_of_the_user(self) -> Settings:
        """In the midst of a reply: what the folder says by now is not asked about here, and says nothing of sound."""
        return self._settings or SettingsOfTheUser()

    def _keep(self, source: Base64Source) -> Path:
        """Under the name that follows from its content, for its owner alone."""
        data = base64.b64decode(source.data, validate=True)
        folder = self._settings_of_the_user().data_dir / FOLDER
        file = folder / f"{hashlib.sha256(data).hexdigest()}.{ending_of(source.media_type)}"
        if not file.exists():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            part = folder / f".{file.name}.{os.getpid()}"
            with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as whole:
                whole.write(data)
            part.replace(file)
        return file

    def _play_later(self, file: Path) -> str:
        """Why it can't be played, the first time; else nothing."""
        command = player(self._settings_of_the_user().player)
        if not command:
            self._play = False
            return "no player was found for --play; name one in LONGHAUL_PLAYER"
        self._waiting.put_nowait(file)
        if self._playing is None or self._playing.done():
            self._playing = asyncio.create_task(self._play_all(command))
        return ""

    async def _play_all(self, command: list[str]) -> None:
        while not self._waiting.empty():
            file = self._waiting.get_nowait()
            try:
                await _played(command, file)
            finally:
                self._waiting.task_done()


async def _played(command: list[str], file: Path) -> None:
    """Whatever becomes of it: a player that fails is silent, and no more."""
    with contextlib.suppress(OSError):
        process = await asyncio.create_subprocess_exec(
            *command,
            str(file),
            stdin=asyncio.subprocess.DEVNULL,  # keys that are typed are for us
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), LONGEST_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def player(named: str) -> list[str]:
    """The command that plays a file: the named one, or the first that is on PATH; empty for none."""
    for line in (named,) if named.strip() else PLAYERS:
        words = shlex.split(line)
        if shutil.which(words[0]):
            return words
    return []


def ending_of(media_type: str) -> str:
    """`wav` for `audio/x-wav`: letters and digits, whatever stands there."""
    kind = media_type.partition("/")[2].partition(";")[0].strip().lower()
    return _ENDINGS.get(kind) or re.sub(r"[^a-z0-9]", "", kind)[:8] or "bin"


def sounds_in(parts: list[DataBlock]) -> list[DataBlock]:
    """Of the data of a result."""
    return [part for part in parts if part.source.media_type.lower().startswith("audio/")]
