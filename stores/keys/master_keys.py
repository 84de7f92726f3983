"""Master keys: an operator's, which wrap the data keys of sessions. The first wraps, each of them unwraps."""

import base64
import binascii
import re
from pathlib import Path
from typing import Protocol

from longhaul.agent.plain.errors import missing
from longhaul.stores.keys.keys import BadKeysSetting, WrongMaster

KEY_BYTES = 32
HOW = "set NAME:KEY, made by `longhaul keys new`, or file:/PATH of a file that holds it"
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


class Masters:
    """The master keys of a setting."""

    def __init__(self, setting: str) -> None:
        """`NAME:KEY,NAME:KEY`, or `file:/PATH`. Raises BadKeysSetting."""
        keys = _keys_in(setting)
        self.newest = next(iter(keys))
        self._ciphers = {name: cipher_of(key) for name, key in keys.items()}

    def wrap(self, data_key: bytes, key_id: str) -> bytes:
        return encrypted(self._ciphers[self.newest], data_key, key_id)

    def unwrap(self, wrapped: bytes, key_id: str, master: str) -> bytes:
        """Raises WrongMaster."""
        cipher = self._ciphers.get(master)
        if cipher is None:
            raise WrongMaster(
                f"LONGHAUL_MASTER_KEY: the master key {master!r} is needed, and is not among "
                f"{', '.join(self._ciphers)}; add it behind the first, from where it was kept"
            )
        try:
            return decrypted(cipher, wrapped, key_id)
        except ValueError:
            raise WrongMaster(
                f"LONGHAUL_MASTER_KEY: the key named {master!r} is another than the one that was used under this name; "
                "set that one"
            ) from None


def _keys_in(setting: str) -> dict[str, bytes]:
    if setting.startswith("file:"):
        setting = _content_of(Path(setting.removeprefix("file:")))
    keys: dict[str, bytes] = {}
    for number, pair in enumerate(filter(None, re.split(r"[,\s]+", setting)), 1):
        name, _, spelt = pair.partition(":")
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,40}", name) or not spelt or name in keys:
            raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: key {number} has no name, or another's; {HOW}")
        keys[name] = _bytes_of(spelt, name)
    if not keys:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: there is no key in it; {HOW}")
    return keys


def _bytes_of(spelt: str, name: str) -> bytes:
    try:
        key = base64.b64decode(spelt.translate({ord("-"): "+", ord("_"): "/"}), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY: {name!r} is not {KEY_BYTES} bytes in base64; {HOW}")
    return key


def _content_of(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise BadKeysSetting(
            f"LONGHAUL_MASTER_KEY: the file {str(path)!r} can't be read ({type(error).__name__}); {HOW}"
        ) from None
