"""From settings to a keyring, or to none where nothing is encrypted.

Puts bytes among a session's blobs in an envelope of its key, and reads them back.
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from longhaul.stores.blobs.blobs import BlobStore, BlobsUnavailable, key_of
from longhaul.stores.keys.keyring import (
    HOW,
    BadKeysSetting,
    Keyring,
    KeyStore,
    KeysUnavailable,
    Masters,
    disclosed,
    enclosed,
)
from longhaul.stores.keys.sqlite_keys import SqliteKeys

FILE = "keys.db"
SHAPES = "sqlite:///PATH or redis://…"


def open_keyring(setting: str, master_key: str, *, data_dir: Path) -> Keyring | None:
    """None without a master key. Raises BadKeysSetting, also where there are keys and no master key: values would be
    written in clear text that are encrypted elsewhere."""
    if master_key:
        return Keyring(open_keys(setting, data_dir=data_dir), Masters(master_key))
    if setting:
        raise BadKeysSetting(f"LONGHAUL_MASTER_KEY is not set, but LONGHAUL_KEYS is: {HOW}, or unset LONGHAUL_KEYS")
    if (data_dir / FILE).exists():
        raise BadKeysSetting(
            f"LONGHAUL_MASTER_KEY is not set, and sessions were encrypted here: {str(data_dir / FILE)!r} holds their "
            f"keys. Without the master key nobody can read them again; {HOW}. To go on in clear text, move that file "
            "away"
        )
    return None


def open_keys(setting: str, *, data_dir: Path) -> KeyStore:
    """The key store that a setting names; nothing stands for `keys.db` in `data_dir`. Raises BadKeysSetting."""
    if not setting:
        return SqliteKeys(data_dir.absolute() / FILE)
    parts = urlsplit(setting)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        return SqliteKeys(Path(unquote(parts.path)))
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        from longhaul.stores.keys.redis_keys import RedisKeys  # noqa: PLC0415  only who uses Redis loads it

        return RedisKeys(setting)
    raise BadKeysSetting(f"LONGHAUL_KEYS: nothing is known of {setting.partition(':')[0][:30]!r}; set {SHAPES}")


async def put_enclosed(blobs: BlobStore, keys: Keyring | None, prefix: str, data: bytes) -> str:
    """Where they lie; without keys as they are. Raises NoKey, BlobsUnavailable."""
    try:
        kept = data if keys is None else await enclosed(keys, prefix, data)
    except KeysUnavailable as error:
        raise BlobsUnavailable(str(error)) from error
    key = key_of(prefix, kept)
    await blobs.put(key, kept)
    return key


async def get_disclosed(blobs: BlobStore, keys: Keyring | None, key: str) -> bytes:
    """What was put there. Raises NoBlob, NoKey, BlobsUnavailable."""
    try:
        return await disclosed(keys, key.rpartition("/")[0], await blobs.get(key))
    except KeysUnavailable as error:
        raise BlobsUnavailable(str(error)) from error
