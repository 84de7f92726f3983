"""An envelope is what is encrypted with the id of its key before it, for places that keep bytes or lines."""

import base64
import binascii

from longhaul.stores.keys.keyring import Keyring
from longhaul.stores.keys.keys import NoKey

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
