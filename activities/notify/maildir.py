"""Tells by a message in a Maildir, for whatever sends or shows mail there."""

import asyncio
import os
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from pathlib import Path

from longhaul.activities.notify.channel import NoticeMessage, NotTold
from longhaul.agent.plain.values import digest_of


class Maildir:
    """One file for each message, named by its key: a second try finds it there, or where a reader has moved it."""

    def __init__(self, folder: Path, to: str, sender: str) -> None:
        self._folder, self._to, self._sender = folder, to, sender
        self.name = f"maildir:{digest_of(str(folder))[:8]}"

    async def tell(self, message: NoticeMessage) -> None:
        try:
            await asyncio.to_thread(self._drop, message)
        except OSError as error:
            raise NotTold(f"the maildir {self._folder} can't be written: {error.strerror}") from error

    def _drop(self, message: NoticeMessage) -> None:
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

    def _mail(self, message: NoticeMessage) -> EmailMessage:
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self._sender, self._to
        if "@" in message.escalated_to and not set(message.escalated_to) & set(' ,;<>"()\\'):
            mail["Cc"] = message.escalated_to
        mail["Subject"] = message.headline
        mail["Date"] = format_datetime(datetime.fromisoformat(message.at))
        mail["Message-ID"] = f"<{message.key}@longhaul>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(_text(message))
        return mail


def _text(message: NoticeMessage) -> str:
    return "\n".join(map(_of_one_call, (message, *message.more)))


def _of_one_call(message: NoticeMessage) -> str:
    facts = {
        "session": message.session,
        "user": message.user or "",
        "agent": message.agent,
        "call": message.call_id,
        "why": message.reason,
        "asked": message.asked_at,
        "deadline": message.expires_at,
        "escalated to": message.escalated_to,
    }
    head = "\n".join(f"{name}: {value}" for name, value in facts.items() if value)
    ending = "It has expired: nothing was run." if message.closed and message.waits_for == "person" else ""
    ending = "It has expired: nobody knows its outcome." if message.closed and not ending else ending
    return f"{message.headline}.\n\n{head}\n\n{message.arguments}\n\n{ending or chr(10).join(message.answers)}\n"
