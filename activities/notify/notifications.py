"""Tells what a session has recorded of its waiting calls, on all channels of the setting LONGHAUL_NOTIFY; what fails
is left for another time.
"""

import asyncio
import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from longhaul.activities.masker import Masker
from longhaul.activities.notify.channels import Channel, Command, Maildir, NotificationMessage, NotNotified
from longhaul.agent.decisions.deadline_steps import still_true
from longhaul.agent.entries import SHOWN_ARGUMENT_CHARS, SHOWN_OF_MORE_CHARS, Given, Notification, shown_arguments
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.text import visible
from longhaul.agent.reducer.session_state import SessionState

SECONDS = 10.0
"""For all of it: a checkpoint has half a minute."""
NAME_CHARS = 300
REASON_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of it, as `entries.Checkpointed` has it."""

    notified: tuple[Given, ...] = ()
    error: str = ""


class Notifying:
    def __init__(self, channels: Sequence[Channel], masker: Masker) -> None:
        self._channels = channels
        self._masker = masker

    async def tell(self, session: SessionState, session_key: str) -> Delivered:
        """Never raises. `session_key` is unique among all sessions. Side by side: no channel waits for another."""
        told = _Telling()
        for key, notification in session.notifications.unsent.items():
            told.given[key] = list(notification.given)
            if self._channels and (left := still_true(session, notification)) is not None:
                told.messages[key] = message_of(session, left, f"{session_key}\n{key}", self._masker)
        await asyncio.gather(*(_told_by(channel, told) for channel in self._channels))
        given = (
            Given(
                key=key,
                channels=tuple(names),
                done=key not in told.messages or all(channel.name in names for channel in self._channels),
            )
            for key, names in told.given.items()
        )
        return Delivered(tuple(given), "; ".join(dict.fromkeys(told.trouble))[:500])


@dataclass(frozen=True, slots=True)
class _Telling:
    """By the keys of notifications: what is to be told, and by whom it has been told, also where time runs out."""

    messages: dict[str, NotificationMessage] = field(default_factory=dict[str, NotificationMessage])
    given: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    trouble: list[str] = field(default_factory=list[str])


async def _told_by(channel: Channel, told: _Telling) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            for key, message in told.messages.items():
                if channel.name in told.given[key]:
                    continue
                try:
                    await channel.tell(message)
                except NotNotified as error:
                    told.trouble.append(str(error))
                except Exception as error:  # noqa: BLE001  a checkpoint must not be lost for want of a listener
                    told.trouble.append(f"{channel.name} failed: {type(error).__name__}")
                else:
                    told.given[key].append(channel.name)
    except TimeoutError:
        told.trouble.append(f"{channel.name} did not accept everything within {SECONDS:g} s")


def message_of(
    session: SessionState, notification: Notification, key: str, masker: Masker, chars: int = SHOWN_ARGUMENT_CHARS
) -> NotificationMessage:
    """Of a notification that is still true. Nothing in it moves a cursor, hides, or is longer than it must be. `key` is
    what the notification is called among those of all sessions."""
    call = session.reply.calls.get(notification.call_id) if session.reply else None
    arguments = notification.shown or (shown_arguments(call.input, chars) if call else "")
    state = session.state
    return NotificationMessage(
        key=hashlib.sha256(key.encode()).hexdigest()[:40],
        event=notification.event,
        session=_line(state.session_id),
        user=None if state.user_id is None else _line(state.user_id),
        agent=_line(session.spec.name),
        team=_line(session.spec.team),
        call_id=_line(notification.call_id),
        tool=_line(notification.tool),
        waits_for=notification.waits_for,
        arguments=masker.masked(arguments),
        reason=_line(masker.masked(notification.reason), REASON_CHARS),
        asked_at=iso(notification.asked_at),
        at=iso(notification.at),
        expires_at=iso(notification.expires_at) if notification.expires_at else "",
        escalated_to=_line(notification.to),
        closed=notification.closed,
        answers=() if notification.closed else _answers(session, notification),
        more=tuple(
            message_of(session, each, f"{key}\n{each.key}", masker, SHOWN_OF_MORE_CHARS) for each in notification.more
        ),
    )


def _answers(session: SessionState, notification: Notification) -> tuple[str, ...]:
    state = session.state
    named = [*(["--user", state.user_id] if state.user_id else []), "--agent", session.spec.name]
    words: dict[str, tuple[list[str], ...]] = {
        "person": (["approve"], ["deny", "--reason", "TEXT"]),
        "outside": (["result", "--output", "TEXT"],),
    }
    lines = (
        [word, state.session_id, notification.call_id, *rest, *named] for word, *rest in words[notification.waits_for]
    )
    return tuple(_line(shlex.join(["longhaul", *line])) for line in lines)


def _line(text: str, chars: int = NAME_CHARS) -> str:
    shown = " ".join(visible(text).split())
    return shown if len(shown) <= chars else f"{shown[: chars - 1]}…"


KEY = "LONGHAUL_NOTIFY_KEY"
SHORTEST_KEY = 16
FORMS = "'https://…', 'maildir:/PATH?to=ADDRESS' or 'command:PROGRAM ARGUMENTS'"


class BadNotifySetting(BadSetup):
    """LONGHAUL_NOTIFY can't be used, and what to do about it."""


def open_notifying(targets: str | Sequence[str], masker: Masker) -> Notifying:
    """What tells people on this worker. Raises BadNotifySetting."""
    return Notifying(open_channels(targets), masker)


def open_channels(targets: str | Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Channel]:
    """Raises BadNotifySetting with a sentence for one that can't be used."""
    given = [targets] if isinstance(targets, str) else list(targets)
    return [_channel(target.strip(), environment) for target in given if target.strip()]


def _channel(target: str, environment: Mapping[str, str]) -> Channel:
    kind, _, rest = target.partition(":")
    match kind:
        case "http" | "https":
            return _webhook(target, environment.get(KEY, ""))
        case "maildir":
            path, _, query = rest.partition("?")
            asked = parse_qs(query)
            if not path.startswith("/") or not asked.get("to") or set(asked) - {"to", "from"}:
                raise BadNotifySetting(
                    "LONGHAUL_NOTIFY: write 'maildir:/PATH?to=ADDRESS', with &from=ADDRESS if you like"
                )
            to, sender = asked["to"][-1], asked.get("from", ["longhaul@localhost"])[-1]
            if any(not char.isprintable() for char in to + sender):
                raise BadNotifySetting("LONGHAUL_NOTIFY: the maildir's addresses hold characters that no address has")
            return Maildir(Path(path), to, sender)
        case "command":
            try:
                argv = shlex.split(rest)
            except ValueError as error:
                raise BadNotifySetting(f"LONGHAUL_NOTIFY: the command can't be read: {error}") from error
            found = shutil.which(argv[0]) if argv else None
            if found is None:
                raise BadNotifySetting(f"LONGHAUL_NOTIFY: there is no program {(argv or [''])[0]!r} on this worker")
            return Command([found, *argv[1:]])
        case _:
            raise BadNotifySetting(f"LONGHAUL_NOTIFY: {kind[:40]!r} is no way to notify; write {FORMS}, or a JSON list")


def _webhook(url: str, key: str) -> Channel:
    from longhaul.activities.notify.webhook import Webhook  # noqa: PLC0415  loads httpx, which few workers need

    parts = urlsplit(url)
    if not parts.hostname or parts.username or parts.password:
        raise BadNotifySetting("LONGHAUL_NOTIFY: a webhook needs a host, and no user or password in its address")
    if len(key) < SHORTEST_KEY:
        raise BadNotifySetting(
            f"{KEY}: webhooks are signed with it; set at least {SHORTEST_KEY} characters, the same for all workers"
        )
    return Webhook(url, key)
