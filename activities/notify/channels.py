"""A channel tells people of a call that waits: by a program of the operator's, which gets JSON on its stdin and none
of the worker's keys, or by a message in a Maildir.
"""

import asyncio
import contextlib
import os
import signal
import tempfile
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path
from typing import IO, Any, Protocol

from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.agent.plain.text import visible
from longhaul.agent.plain.values import Value, digest_of, sparse


class NotificationMessage(Value):
    """One event of one wait. What stands in it is made visible and short already."""

    key: str
    """The same for each try, and for nothing else: who has seen it has been told."""
    event: str
    """waits, reminded, escalated or expired."""
    session: str
    user: str | None = None
    agent: str
    team: str = ""
    call_id: str
    tool: str
    waits_for: str
    """`person` or `outside`."""
    arguments: str
    """As the inbox shows them; of what is long the beginning and the end."""
    reason: str = ""
    asked_at: str
    at: str
    expires_at: str = ""
    escalated_to: str = ""
    closed: bool = False
    """It has expired and can't be answered any more."""
    answers: tuple[str, ...] = sparse(())
    """Commands that answer it."""
    more: "tuple[NotificationMessage, ...]" = sparse(())
    """The other calls of the same list, each as it would be told alone; none of them has more."""

    @property
    def headline(self) -> str:
        """One line for people."""
        what = {"waits": "waits", "reminded": "still waits", "escalated": "was escalated", "expired": "has expired"}
        others = f", with {len(self.more)} more call{'s' if len(self.more) > 1 else ''}" if self.more else ""
        return f"{self.tool} in {self.session} {what[self.event]}{others}"

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


class NotNotified(Exception):
    """This try came to nothing; the sentence says why. It is tried again later."""


class Channel(Protocol):
    """One way. `name` tells it from the others and says nothing that is secret."""

    name: str

    async def tell(self, message: NotificationMessage) -> None:
        """Raises NotNotified. The same message may come twice: its key says so."""
        ...


SECONDS = 5.0
TAIL_CHARS = 200


class Command:
    """Exit status 0 means that it is told."""

    def __init__(self, argv: list[str], seconds: float = SECONDS) -> None:
        self._argv, self._seconds = argv, seconds
        self.name = f"command:{digest_of(argv)[:8]}"

    async def tell(self, message: NotificationMessage) -> None:
        with await asyncio.to_thread(_as_file, message.model_dump_json().encode() + b"\n") as told:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._argv,
                    stdin=told,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    env=scrubbed(os.environ),
                    start_new_session=True,
                )
            except OSError as error:
                raise NotNotified(f"the command {self._argv[0]!r} can't be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(self._seconds):
                said, _ = await process.communicate()
        except TimeoutError:
            raise NotNotified(f"the command {self._argv[0]!r} did not end within {self._seconds:g} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if process.returncode:
            tail = visible(said.decode("utf-8", "replace").strip()[-TAIL_CHARS:])
            raise NotNotified(f"the command {self._argv[0]!r} ended with {process.returncode}: {tail}")


def _as_file(text: bytes) -> IO[bytes]:
    """For a program that may end without reading it: a pipe that breaks is an error of the event loop's own."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  its reader closes it
    file.write(text)
    file.seek(0)
    return file


class Maildir:
    """One file for each message, named by its key: a second try finds it there, or where a reader has moved it."""

    def __init__(self, folder: Path, to: str, sender: str) -> None:
        self._folder, self._to, self._sender = folder, to, sender
        self.name = f"maildir:{digest_of(str(folder))[:8]}"

    async def tell(self, message: NotificationMessage) -> None:
        try:
            await asyncio.to_thread(self._drop, message)
        except OSError as error:
            raise NotNotified(f"the maildir {self._folder} can't be written: {error.strerror}") from error

    def _drop(self, message: NotificationMessage) -> None:
        name = f"{message.key}.longhaul"
        folders = {part: self._folder / part for part in ("tmp", "new", "cur")}
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        for folder in (self._folder, *folders.values()):
            folder.mkdir(mode=0o700, exist_ok=True)
        if (folders["new"] / name).exists() or any(folders["cur"].glob(f"{name}*")):
            return
        written = folders["tmp"] / f"{name}.{os.getpid()}"
        with written.open("wb") as file:
            file.write(self._mail(message).as_bytes())
            file.flush()
            os.fsync(file.fileno())
        written.replace(folders["new"] / name)

    def _mail(self, message: NotificationMessage) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self._sender, self._to
        if "@" in message.escalated_to and not set(message.escalated_to) & set(' ,;<>"()\\'):
            mail["Cc"] = message.escalated_to
        mail["Subject"] = message.headline
        mail["Date"] = format_datetime(datetime.fromisoformat(message.at))
        mail["Message-ID"] = f"<{message.key}@longhaul>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("\n".join(map(_of_one_call, (message, *message.more))))
        return mail


def _of_one_call(message: NotificationMessage) -> str:
    analysis = {
        "session": message.session,
        "user": message.user or "",
        "agent": message.agent,
        "call": message.call_id,
        "why": message.reason,
        "asked": message.asked_at,
        "deadline": message.expires_at,
        "escalated to": message.escalated_to,
    }
    head = "\n".join(f"{name}: {value}" for name, value in analysis.items() if value)
    ending = "It has expired: nothing was run." if message.closed and message.waits_for == "person" else ""
    ending = "It has expired: nobody knows its outcome." if message.closed and not ending else ending
    return f"{message.headline}.\n\n{head}\n\n{message.arguments}\n\n{ending or chr(10).join(message.answers)}\n"
