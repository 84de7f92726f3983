"""A key store holds the data keys of sessions, each wrapped by its operator's master key, and of deleted ones that they
were deleted. It is small, and apart from all that the keys are for: whoever copies sessions has no key by that.

Master keys: an operator's, which wrap the data keys of sessions. The first wraps, each of them unwraps.

A keyring encrypts for sessions, each with a key of its own, and decrypts as long as that key is there.

Keys that were read are remembered, and looked at again after RECHECK_SECONDS: so long a deleted one may still be used
by a process that has it. While the key store is away, what is remembered counts on: a call that has run must not be
lost for want of a key that this process has.

An envelope is what is encrypted with the id of its key before it, for places that keep bytes or lines.
"""

import base64
import binascii
import re
import secrets
import time
from collections import OrderedDict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, cast

from longhaul.agent.plain.errors import BadSetup, Damaged, Unavailable, missing
from longhaul.stores.loading import found_at

DELETED = "its key was deleted"
"""Stands in each sentence about a session whose key is gone for good."""


class KeysUnavailable(Unavailable):
    """The key store does not answer, or no master key fits. Nothing is lost; Longhaul tries again."""


class WrongMaster(KeysUnavailable):
    """The master key is not the key with which a data key was wrapped. The sentence names that key."""


class BadKeysSetting(BadSetup, ValueError):
    """The setting names no key store, or no valid master key. The sentence does not contain the key."""


class NoKey(Damaged, ValueError):
    """Encrypted data can't be read: its key was deleted, is unknown here, or belongs to another session."""


class StoredKey(NamedTuple):
    """One data key."""

    id: str
    """16 letters, digits, `-` and `_`, by chance; what is encrypted with it says it."""
    owner: str
    """Whom it was made for: a session's place among the blobs, which tells no name."""
    wrapped: bytes
    """Empty: deleted."""
    master: str
    """Name of the master key that it is wrapped by."""
    deleted_at: str = ""
    """ISO 8601."""


class KeyStore(Protocol):
    """Methods raise KeysUnavailable within seconds, and each changes all that it changes in one step."""

    @property
    def place(self) -> str:
        """For sentences; without passwords."""
        ...

    async def get(self, key_id: str) -> StoredKey | None: ...

    async def key_of(self, owner: str) -> StoredKey | None:
        """The key that this session's values are encrypted with, deleted or not; None where it never had one."""
        ...

    async def add(self, key: StoredKey) -> StoredKey:
        """Give its owner this key, unless he has one that is not deleted. Returns the one that counts."""
        ...

    async def share(self, owner: str, key_id: str) -> StoredKey | None:
        """Give somebody a key that there is, as `add` does. Returns the one that counts."""
        ...

    async def delete(self, key_id: str, at: str) -> bool:
        """Forget the key itself for good, and remember that it was deleted. Whether it was there."""
        ...

    async def every(self) -> list[StoredKey]:
        """All that are not deleted."""
        ...

    async def rewrap(self, key: StoredKey, wrapped: bytes, master: str) -> bool:
        """Wrap it again, unless it was changed since it was read as `key`; False then."""
        ...

    async def close(self) -> None: ...


KEY_BYTES = 32
HOW = (
    "set NAME:KEY, made by `longhaul keys new`, aws-kms:KEY, vault:KEY, provider:module:Class, or file:/PATH of a file "
    "that holds it"
)
_NONCE = bytes(12)
"""Always the same: this cipher (AES-256-GCM-SIV, RFC 8452) needs no other. The same bytes under the same key come to
the same bytes, so that what is written twice lies in one place."""


class Cipher(Protocol):
    """What encrypts with one key."""

    def encrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...

    def decrypt(self, nonce: bytes, data: bytes, associated_data: bytes | None) -> bytes: ...


def cipher_of(key: bytes) -> Cipher:
    """Raises MissingExtra."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV  # noqa: PLC0415  only who encrypts loads it
    except ModuleNotFoundError as error:
        raise missing(error) from error
    return AESGCMSIV(key)


def encrypted(cipher: Cipher, data: bytes, about: str) -> bytes:
    """16 bytes longer. `about` is needed again to decrypt, and not in it."""
    return cipher.encrypt(_NONCE, data, about.encode())


def decrypted(cipher: Cipher, data: bytes, about: str) -> bytes:
    """Raises ValueError for what is not whole, was encrypted with another key, or is about something else."""
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415  only who encrypts loads it

    try:
        return cipher.decrypt(_NONCE, data, about.encode())
    except InvalidTag:
        raise ValueError("it is not whole, or another key's") from None


class MasterKey(Protocol):
    """One master key. An operator's own is a class that takes no arguments; `provider:module:Class` names it.

    Both methods raise KeysUnavailable within seconds, also where the key may not be used now.
    """

    @property
    def name(self) -> str:
        """Always the same for the same key: it is stored with each key that was wrapped by it."""
        ...

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        """32 bytes encrypted, so that they can be decrypted with this id alone."""
        ...

    async def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Raises WrongMaster for what this key has not wrapped for this id."""
        ...


class LocalKey:
    """A master key of 32 bytes that this process has."""

    def __init__(self, name: str, key: bytes) -> None:
        self.name = name
        self._cipher = cipher_of(key)

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        return encrypted(self._cipher, data_key, key_id)

    async def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Raises WrongMaster."""
        try:
            return decrypted(self._cipher, wrapped, key_id)
        except ValueError:
            raise WrongMaster(
                f"LONGHAUL_MASTER_KEY: the key named {self.name!r} is another than the one that was used under this "
                "name; set that one"
            ) from None


class Masters:
    """The master keys of a setting."""

    def __init__(self, setting: str) -> None:
        """A list of `NAME:KEY`, `aws-kms:KEY`, `vault:KEY` and `provider:module:Class`, or `file:/PATH` of a file that
        holds it. Raises BadKeysSetting, MissingExtra."""
        self._keys = _keys_in(setting)

    @property
    def newest(self) -> str:
        return next(iter(self._keys))

    async def wrap(self, data_key: bytes, key_id: str) -> bytes:
        """Raises KeysUnavailable."""
        return await self._keys[self.newest].wrap(data_key, key_id)

    async def unwrap(self, wrapped: bytes, key_id: str, master: str) -> bytes:
        """Raises WrongMaster, KeysUnavailable."""
        key = self._keys.get(master)
        if key is None:
            raise WrongMaster(
                f"LONGHAUL_MASTER_KEY: the master key {master!r} is needed, and is not among "
                f"{', '.join(self._keys)}; add it behind the first, from where it was kept"
            )
        return await key.unwrap(wrapped, key_id)


def _keys_in(setting: str) -> dict[str, MasterKey]:
    if setting.startswith("file:"):
        path = Path(setting.removeprefix("file:"))
        try:
            setting = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise BadKeysSetting(
                f"LONGHAUL_MASTER_KEY: the file {str(path)!r} can't be read ({type(error).__name__}); {HOW}"
            ) from None
    keys: dict[str, MasterKey] = {}
    for number, written in enumerate(filter(None, re.split(r"[,\s]+", setting)), 1):
        kind, _, which = written.partition(":")
        key = _service_key(kind, which) if kind in SERVICES else _local_key(number, kind, which)
        if key.name in keys:
            raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: key {number} has no name, or another's; {HOW}")
        keys[key.name] = key
    if not keys:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: there is no key in it; {HOW}")
    return keys


SERVICES = ("aws-kms", "vault", "provider")
"""How keys that others hold begin; no key of ours may have one of these names."""


def _service_key(kind: str, which: str) -> MasterKey:
    from longhaul.stores.keys import key_services  # noqa: PLC0415  boto3 and HTTP, for those who need them alone

    match kind:
        case "aws-kms":
            return key_services.KmsKey(which)
        case "vault":
            return key_services.VaultKey(which)
        case _:
            found = found_at(which, "provider", BadKeysSetting, setting="LONGHAUL_MASTER_KEY")
            if not all(hasattr(found, part) for part in ("name", "wrap", "unwrap")):
                raise BadKeysSetting(
                    f"LONGHAUL_MASTER_KEY: {which!r} has no name, wrap and unwrap; write it as a MasterKey"
                )
            return cast(MasterKey, found)


def _local_key(number: int, name: str, spelt: str) -> MasterKey:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name) or not spelt:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: key {number} has no name, or another's; {HOW}")
    try:
        key = base64.b64decode(spelt.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: {name!r} is not {KEY_BYTES} bytes in base64; {HOW}")
    return LocalKey(name, key)


Value = TypeVar("Value")

RECHECK_SECONDS = 30.0
MOST_KEYS = 5_000
ID_BYTES = 12
SHARED = "shared"
"""Owner of the key of what belongs to no session: schedules, and questions to workers. Nobody deletes it."""


class _Known(NamedTuple):
    key: StoredKey
    cipher: Cipher | None
    """None: deleted."""
    at: float


class Keyring:
    def __init__(self, store: KeyStore, masters: Masters) -> None:
        self._store = store
        self._masters = masters
        self._keys = OrderedDict[str, _Known]()
        self._owned = OrderedDict[str, str]()
        """Owner to key id."""
        self._parents = OrderedDict[str, str]()

    @property
    def place(self) -> str:
        return self._store.place

    def belongs(self, owner: str, parent: str) -> None:
        """Have a sub-agent share the key of the session that starts it; said before anything is encrypted for it. From
        any thread; nothing is read or written."""
        _put(self._parents, owner, parent)

    async def encrypt(self, owner: str, data: bytes, *, begins: bool) -> tuple[str, bytes]:
        """The id of the key, and the data encrypted. An owner without a key is given one; where his was deleted, only
        if this `begins` a new incarnation of his. Raises NoKey, KeysUnavailable."""
        known = await self._own(owner, begins=begins)
        if known.cipher is None:
            raise NoKey(_deleted(known.key))
        return known.key.id, encrypted(known.cipher, data, known.key.id)

    async def decrypt(self, owner: str | None, key_id: str, data: bytes) -> bytes:
        """What `owner` had encrypted; None: whoever it was. Raises NoKey, KeysUnavailable."""
        found = await self._found(key_id)
        if found is None:
            raise NoKey(
                f"it was encrypted, and {self.place} has no key {key_id[:40]!r}: see that LONGHAUL_KEYS is the same "
                "for workers and clients, or put the keys back from a backup"
            )
        # Before it is unwrapped: another's key may need a master key that is not set here, and would be waited for.
        if owner is not None and not await self._is_of(owner, found if isinstance(found, StoredKey) else found.key):
            raise NoKey("it was encrypted for another session")
        known = await self._remembered(found) if isinstance(found, StoredKey) else found
        if known.cipher is None:
            raise NoKey(_deleted(known.key))
        try:
            plain = decrypted(known.cipher, data, key_id)
        except ValueError as error:
            raise NoKey(f"it was encrypted, and can't be decrypted: {error}") from None
        # He uses this key: another that is remembered as his may be that of an incarnation that was deleted, and his
        # sub-agents' too. Both are looked up before anything more is encrypted with it.
        other = None if owner is None else self._owned.get(owner)
        if owner is not None and other is not None and other != key_id:
            del self._owned[owner]
            self._keys.pop(other, None)
        return plain

    async def owner(self, key_id: str) -> str | None:
        """Whom a key was made for, deleted or not; None where there is no such key. Raises KeysUnavailable."""
        found = await self._found(key_id)
        return None if found is None else (found if isinstance(found, StoredKey) else found.key).owner

    async def check(self) -> None:
        """Raise WrongMaster where the master key is not the one that was used here before, and KeysUnavailable."""
        await self._own(SHARED, begins=True)

    async def delete(self, owner: str) -> bool:
        """Delete the key that was made for him; one that he shares with the session above stays. Whether there was
        one. Raises KeysUnavailable."""
        key = await self._store.key_of(owner)
        if key is None or key.owner != owner:
            return False
        deleted = await self._store.delete(key.id, datetime.now(UTC).isoformat(timespec="seconds"))
        self._keys.pop(key.id, None)
        return deleted

    def look_again(self, owner: str) -> None:
        """Forget what is remembered of his key: it may have been deleted lately, and what is encrypted from now on must
        be read when that is known here too. Nothing is read or written."""
        if key_id := self._owned.pop(owner, None):
            self._keys.pop(key_id, None)

    async def rewrap(self) -> tuple[int, int]:
        """Wrap all keys with the newest master key. How many were wrapped again, and how many there are. Raises
        KeysUnavailable, when a master key that is still needed is not set: then run it again with that one."""
        changed, every = 0, await self._store.every()
        for key in every:
            if key.master != self._masters.newest:
                data_key = await self._masters.unwrap(key.wrapped, key.id, key.master)
                wrapped = await self._masters.wrap(data_key, key.id)
                changed += await self._store.rewrap(key, wrapped, self._masters.newest)
        return changed, len(every)

    async def close(self) -> None:
        self._keys.clear()
        await self._store.close()

    async def _is_of(self, owner: str, key: StoredKey) -> bool:
        """Whether it was made for him, or he shares it."""
        if key.owner == owner or self._owned.get(owner) == key.id:
            return True
        own = await self._store.key_of(owner)
        return own is not None and own.id == key.id

    async def _own(self, owner: str, *, begins: bool) -> _Known:
        key_id = self._owned.get(owner)
        known = await self._known(key_id) if key_id else None
        if known is not None and known.cipher is not None:
            return known
        key = await self._store.key_of(owner)
        if key is None or (begins and not key.wrapped and self._may_begin(owner, key)):
            key = await self._started(owner)
        _put(self._owned, owner, key.id)
        return await self._remembered(key)

    def _may_begin(self, owner: str, key: StoredKey) -> bool:
        """Whether somebody whose key was deleted may be given another: not a sub-agent that works on after its tree was
        deleted, for nothing would delete that key; one that is started again has its parent noted here."""
        return key.owner == owner or owner in self._parents

    async def _started(self, owner: str) -> StoredKey:
        parent = self._parents.get(owner)
        if parent is not None:
            above = await self._own(parent, begins=False)
            if shared := await self._store.share(owner, above.key.id):
                return shared
        key_id = secrets.token_urlsafe(ID_BYTES)
        wrapped = await self._masters.wrap(secrets.token_bytes(KEY_BYTES), key_id)
        return await self._store.add(StoredKey(key_id, owner, wrapped, self._masters.newest))

    async def _known(self, key_id: str) -> _Known | None:
        found = await self._found(key_id)
        return await self._remembered(found) if isinstance(found, StoredKey) else found

    async def _found(self, key_id: str) -> _Known | StoredKey | None:
        """As it is remembered, or as the store has it, not unwrapped yet."""
        known = self._keys.get(key_id)
        if known is not None and (known.cipher is None or time.monotonic() - known.at < RECHECK_SECONDS):
            return known
        try:
            return await self._store.get(key_id)
        except KeysUnavailable:
            if known is None:
                raise
            return known

    async def _remembered(self, key: StoredKey) -> _Known:
        """One that has not changed is not unwrapped again: a service would be asked for it every 30 seconds."""
        known = self._keys.get(key.id)
        if known is not None and known.key == key:
            cipher = known.cipher
        elif key.wrapped:
            cipher = cipher_of(await self._masters.unwrap(key.wrapped, key.id, key.master))
        else:
            cipher = None
        _put(self._keys, key.id, known := _Known(key, cipher, time.monotonic()))
        return known


def _put(cache: OrderedDict[str, Value], name: str, value: Value) -> None:
    cache[name] = value
    cache.move_to_end(name)
    while len(cache) > MOST_KEYS:
        cache.popitem(last=False)


def _deleted(key: StoredKey) -> str:
    return f"the session was deleted: {DELETED} at {key.deleted_at}, and nothing of it can be read any more"


_MARK = b"longhaul-aes "


async def enclosed(keys: Keyring, owner: str, data: bytes) -> bytes:
    """Raises NoKey, KeysUnavailable."""
    key_id, secret = await keys.encrypt(owner, data, begins=False)
    return _MARK + key_id.encode("ascii") + b" " + secret


async def disclosed(keys: Keyring | None, owner: str, data: bytes) -> bytes:
    """What was enclosed; other data as it is. Raises NoKey, KeysUnavailable."""
    if not data.startswith(_MARK):
        return data
    if keys is None:
        raise NoKey(
            "it is encrypted, and this process has no key: set LONGHAUL_MASTER_KEY and LONGHAUL_KEYS as they are set "
            "for the workers"
        )
    key_id, _, secret = data.removeprefix(_MARK).partition(b" ")
    return await keys.decrypt(owner, key_id.decode("ascii", "replace"), secret)


def as_line(envelope: bytes) -> bytes:
    """Without the newline."""
    return base64.b64encode(envelope)


def from_line(line: bytes) -> bytes:
    """The envelope of such a line; any other line as it is."""
    try:
        envelope = base64.b64decode(line, validate=True)
    except (binascii.Error, ValueError):
        return line
    return envelope if envelope.startswith(_MARK) else line
