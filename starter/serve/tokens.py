"""Tokens say who may ask: bearer tokens, of which only hashes are kept, each with its user and what it is good for.

A line of the file is `sha256-of-the-token user [scopes [further-users]]`: the hash in hex, users percent-encoded where
the name has spaces, commas or other odd characters, scopes and further users joined by commas. Empty lines and those
that begin with `#` are passed over.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote, unquote

from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.plain.ids import check_name

Scope = Literal["read", "answer", "approve", "edit", "steer", "admin"]
"""Look; talk; decide about calls; put other arguments into a call; change how a session works and what it may do
unasked; and mean the sessions of all users."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
USUAL: tuple[Scope, ...] = ("read", "answer", "approve")
"""Of a line that names none: what was asked may be answered, and nothing be changed beyond it."""
PREFIX = "lh_"
LONGEST_TOKEN_CHARS = 200
Stamp = tuple[int, ...]
UNREAD: Stamp = ()
GONE: Stamp = (0,)
_HASH = re.compile(r"[0-9a-f]{64}")


class BadTokens(BadSetup):
    """Tokens that can't be used; the sentence names the file, the line and what to do."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks."""

    user: str | None
    """Whose sessions are meant; None: those that have no user."""
    name: str
    """Who decides, for the record."""
    scopes: frozenset[Scope]
    others: frozenset[str] = frozenset()
    """Further users, whose sessions are as the caller's own: those of a team, for its lead."""

    @property
    def users(self) -> frozenset[str]:
        """All whose sessions the caller sees, as far as they have a user."""
        return self.others if self.user is None else self.others | {self.user}


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One line."""

    digest: str
    caller: Caller


class Tokens:
    """Those that are known now. With a file: as it is now, so that a line taken out counts at once."""

    def __init__(self, entries: Sequence[TokenLine], path: Path | None = None, *, awaited: bool = False) -> None:
        self._entries = tuple(entries)
        self.path = path
        self._read_as: Stamp = UNREAD
        self._awaited = awaited

    @classmethod
    def of(cls, setting: str) -> "Tokens | None":
        """From LONGHAUL_SERVE_TOKENS: a file, or its lines, which `;` may part. None when it is empty."""
        if not setting.strip():
            return None
        if _HASH.match(setting.strip()):
            return cls(parsed(setting.replace(";", "\n"), "LONGHAUL_SERVE_TOKENS"))
        tokens = cls((), Path(setting).expanduser())
        tokens._refresh()
        return tokens

    @classmethod
    def made_later(cls, path: Path) -> "Tokens":
        """Of a file that may not be there yet. Raises BadTokens for one that is there and can't be used."""
        tokens = cls((), path, awaited=True)
        if not tokens.are_awaited():
            tokens._refresh()
        return tokens

    def are_awaited(self) -> bool:
        """Whether nobody has made one so far: then there is nothing by which to let people in. Once there was a file,
        also an empty one, it is not asked again: whoever takes the file away lets nobody in. One that can't be looked
        at is there."""
        if self._awaited and self.path is not None:
            try:
                self.path.stat()
                self._awaited = False
            except FileNotFoundError:
                pass
            except OSError:
                self._awaited = False
        return self._awaited

    def caller_of(self, token: str) -> Caller | None:
        """Raises BadTokens when the file has become unusable: then nobody is admitted."""
        self._refresh()
        if not token or len(token) > LONGEST_TOKEN_CHARS:
            return None
        digest = digest_of(token)
        found: Caller | None = None
        for entry in self._entries:  # all of them each time: how long it takes says nothing
            if hmac.compare_digest(entry.digest, digest):
                found = entry.caller
        return found

    def _refresh(self) -> None:
        if self.path is None or (now := _stamp(self.path)) == self._read_as:
            return
        self._entries, self._read_as = (), UNREAD
        self._entries = read(self.path)
        self._read_as = now


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read(path: Path) -> tuple[TokenLine, ...]:
    """Raises BadTokens, also for a file that others than its owner may read."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadTokens(
            f"LONGHAUL_SERVE_TOKENS: {str(path)!r} can't be read ({error}); create it with `longhaul serve token`"
        ) from error
    if mode & 0o077:
        raise BadTokens(
            f"LONGHAUL_SERVE_TOKENS: {str(path)!r} has mode {mode & 0o777:04o}, so others reach it; "
            "set it to 0600 by `chmod 600`"
        )
    return parsed(text, str(path))


def parsed(text: str, where: str) -> tuple[TokenLine, ...]:
    """Raises BadTokens."""
    entries = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if words and not words[0].startswith("#"):
            entries.append(_entry(words, f"{where}: line {number}"))
    return tuple(entries)


def _entry(words: Sequence[str], where: str) -> TokenLine:
    if not 2 <= len(words) <= 4 or not _HASH.fullmatch(words[0]):
        raise BadTokens(
            f"{where} is not `sha256-of-the-token user [scopes [further-users]]`; create it with `longhaul serve token`"
        )
    user = _user_in(words[1], where)
    scopes = scopes_of(words[2], where) if len(words) > 2 else frozenset(USUAL)
    others = frozenset(_user_in(word, where) for word in words[3].split(",")) if len(words) > 3 else frozenset[str]()
    return TokenLine(words[0], Caller(user, user, scopes, others))


def _user_in(word: str, where: str) -> str:
    try:
        user = unquote(word, errors="strict")
        check_name("user", user)
    except ValueError as error:
        raise BadTokens(f"{where}: user: {word!r} can't be used ({error})") from error
    if not user:
        raise BadTokens(f"{where}: user: {word!r} can't be used (it is empty)")
    return user


def scopes_of(text: str, where: str) -> frozenset[Scope]:
    """Raises BadTokens."""
    given = text.split(",")
    if unknown := [word for word in given if word not in SCOPES]:
        raise BadTokens(f"{where}: there is no scope {unknown[0]!r}; there are: {', '.join(SCOPES)}")
    return frozenset(scope for scope in SCOPES if scope in given)


def issue(path: Path, user: str, scopes: str, others: Sequence[str] = ()) -> str:
    """A new token, of which the hash is added to the file. It can't be shown again. Raises BadTokens."""
    chosen = scopes_of(scopes, "--scopes")
    path = path.expanduser()
    for option, name in (("--user", user), *(("--also", other) for other in others)):
        try:
            check_name("user", name)
        except ValueError as error:
            raise BadTokens(f"{option}: {error}") from error
        if not name:
            raise BadTokens(f"{option}: '' is no name; give the name of a user")
    if path.exists():
        read(path)
    token = PREFIX + secrets.token_urlsafe(32)
    users = [quote(name, safe="@.+-_") for name in (user, *dict.fromkeys(others))]
    entry = (digest_of(token), users[0], ",".join(scope for scope in SCOPES if scope in chosen), ",".join(users[1:]))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            text = path.read_bytes()
            ends_a_line = not text or text.endswith(b"\n")
            file.write(f"{'' if ends_a_line else chr(10)}{' '.join(filter(None, entry))}\n".encode())
    except OSError as error:
        raise BadTokens(
            f"{str(path)!r} can't be written ({error}); name another file in LONGHAUL_SERVE_TOKENS"
        ) from error
    return token


def _stamp(path: Path) -> Stamp:
    """Changes when the file does."""
    try:
        found = path.stat()
    except OSError:
        return GONE
    return (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode)
