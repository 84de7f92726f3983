"""From the setting LONGHAUL_NOTIFY to channels."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from longhaul.activities.masking.masker import Masker
from longhaul.activities.notify.channel import Channel
from longhaul.activities.notify.command import Command
from longhaul.activities.notify.maildir import Maildir
from longhaul.activities.notify.notifying import Notifying
from longhaul.agent.plain.errors import BadSetup

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
            return _maildir(rest)
        case "command":
            return _command(rest)
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


def _maildir(rest: str) -> Maildir:
    path, _, query = rest.partition("?")
    asked = parse_qs(query)
    if not path.startswith("/") or not asked.get("to") or set(asked) - {"to", "from"}:
        raise BadNotifySetting("LONGHAUL_NOTIFY: write 'maildir:/PATH?to=ADDRESS', with &from=ADDRESS if you like")
    to, sender = asked["to"][-1], asked.get("from", ["longhaul@localhost"])[-1]
    if any(not char.isprintable() for char in to + sender):
        raise BadNotifySetting("LONGHAUL_NOTIFY: the maildir's addresses hold characters that no address has")
    return Maildir(Path(path), to, sender)


def _command(rest: str) -> Command:
    try:
        argv = shlex.split(rest)
    except ValueError as error:
        raise BadNotifySetting(f"LONGHAUL_NOTIFY: the command can't be read: {error}") from error
    found = shutil.which(argv[0]) if argv else None
    if found is None:
        raise BadNotifySetting(f"LONGHAUL_NOTIFY: there is no program {(argv or [''])[0]!r} on this worker")
    return Command([found, *argv[1:]])
