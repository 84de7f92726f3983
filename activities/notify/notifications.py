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
from longhaul.activities.notify.channels import Channel, Command, Maildir, NoticeMessage, NotTold
from longhaul.agent.decisions.deadline_steps import still_true
from longhaul.agent.entries import SHOWN_ARGUMENT_CHARS, SHOWN_OF_MORE_CHARS, Given, Notice, shown_arguments
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.measures import iso
from longhaul.agent.plain.text import visible

SECONDS = 10.0
"""For all of it: a checkpoint has half a minute."""
NAME_CHARS = 300
REASON_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class Told:
    """What came of it, as `entries.Checkpointed` has it."""

    notified: tuple[Given, ...] = ()
    error: str = ""


class Notifying:
    def __init__(self, channels: Sequence[Channel], masker: Masker) -> None:
        self._channels = channels
        self._masker = masker

    async def tell(self, ledger: Ledger, session_key: str) -> Told:
        """Never raises. `session_key` is unique among all sessions. Side by side: no channel waits for another."""
        told = _Telling()
        for key, notice in ledger.notices.unsent.items():
            told.given[key] = list(notice.given)
            if self._channels and (left := still_true(ledger, notice)) is not None:
                told.messages[key] = message_of(ledger, left, f"{session_key}\n{key}", self._masker)
        await asyncio.gather(*(_told_by(channel, told) for channel in self._channels))
        given = (
            Given(
                key=key,
                channels=tuple(names),
                done=key not in told.messages or all(channel.name in names for channel in self._channels),
            )
            for key, names in told.given.items()
        )
        return Told(tuple(given), "; ".join(dict.fromkeys(told.trouble))[:500])


@dataclass(frozen=True, slots=True)
class _Telling:
    """By the keys of notices: what is to be told, and by whom it has been told, also where time runs out."""

    messages: dict[str, NoticeMessage] = field(default_factory=dict[str, NoticeMessage])
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
                except NotTold as error:
                    told.trouble.append(str(error))
                except Exception as error:  # noqa: BLE001  a checkpoint must not be lost for want of a listener
                    told.trouble.append(f"{channel.name} failed: {type(error).__name__}")
                else:
                    told.given[key].append(channel.name)
    except TimeoutError:
        told.trouble.append(f"{channel.name} did not accept everything within {SECONDS:g} s")


def message_of(
    ledger: Ledger, notice: Notice, key: str, masker: Masker, chars: int = SHOWN_ARGUMENT_CHARS
) -> NoticeMessage:
    """Of a notice that is still true. Nothing in it moves a cursor, hides, or is longer than it must be. `key` is what
    the notice is called among those of all sessions."""
    call = ledger.reply.calls.get(notice.call_id) if ledger.reply else None
    arguments = notice.shown or (shown_arguments(call.input, chars) if call else "")
    state = ledger.state
    return NoticeMessage(
        key=hashlib.sha256(key.encode()).hexdigest()[:40],
        event=notice.event,
        session=_line(state.session_id),
        user=None if state.user_id is None else _line(state.user_id),
        agent=_line(ledger.spec.name),
        team=_line(ledger.spec.team),
        call_id=_line(notice.call_id),
        tool=_line(notice.tool),
        waits_for=notice.waits_for,
        arguments=masker.masked(arguments),
        reason=_line(masker.masked(notice.reason), REASON_CHARS),
        asked_at=iso(notice.asked_at),
        at=iso(notice.at),
        expires_at=iso(notice.expires_at) if notice.expires_at else "",
        escalated_to=_line(notice.to),
        closed=notice.closed,
        answers=() if notice.closed else _answers(ledger, notice),
        more=tuple(message_of(ledger, each, f"{key}\n{each.key}", masker, SHOWN_OF_MORE_CHARS) for each in notice.more),
    )


def _answers(ledger: Ledger, notice: Notice) -> tuple[str, ...]:
    state = ledger.state
    named = [*(["--user", state.user_id] if state.user_id else []), "--agent", ledger.spec.name]
    words: dict[str, tuple[list[str], ...]] = {
        "person": (["approve"], ["deny", "--reason", "TEXT"]),
        "outside": (["result", "--output", "TEXT"],),
    }
    lines = ([word, state.session_id, notice.call_id, *rest, *named] for word, *rest in words[notice.waits_for])
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
