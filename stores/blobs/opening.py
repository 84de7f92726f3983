"""From the setting LONGHAUL_BLOBS to a blob store: nothing, a directory, or the URL of a Redis."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from longhaul.stores.blobs.blobs import BadBlobsSetting, BlobStore
from longhaul.stores.blobs.directory import DirectoryBlobs

SHAPES = "a directory like /srv/longhaul/blobs, file:///PATH, or redis://…"


def open_blobs(setting: str, *, data_dir: Path) -> BlobStore:
    """The store that a setting names; it is touched when it is first used. Raises BadBlobsSetting.

    Nothing stands for the directory `blobs` in `data_dir`: enough where worker and clients share one machine.
    """
    if not setting:
        return DirectoryBlobs(data_dir.absolute() / "blobs")
    if "://" not in setting:
        return DirectoryBlobs(_folder(Path(setting).expanduser(), setting))
    try:
        parts = urlsplit(setting)
    except ValueError as error:
        raise BadBlobsSetting(f"LONGHAUL_BLOBS: the setting is no URL ({error}); set {SHAPES}") from None
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise BadBlobsSetting("LONGHAUL_BLOBS: file://… names a host; write file:///PATH with three slashes")
        return DirectoryBlobs(_folder(Path(unquote(parts.path)), setting))
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        from longhaul.stores.blobs.redis import RedisBlobs  # noqa: PLC0415  only who uses Redis loads it

        try:
            return RedisBlobs(setting)
        except BadBlobsSetting as error:
            raise BadBlobsSetting(f"LONGHAUL_BLOBS: {error}") from None
    raise BadBlobsSetting(f"LONGHAUL_BLOBS: nothing is known of {parts.scheme[:30]}://…; set {SHAPES}")


def _folder(path: Path, setting: str) -> Path:
    """A relative one would be another for each process."""
    if not path.is_absolute() or "\0" in setting or path == Path("/"):
        raise BadBlobsSetting(f"LONGHAUL_BLOBS: {setting[:200]!r} is no absolute path of a directory; set {SHAPES}")
    return path
