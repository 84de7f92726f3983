"""From a setting, or from what a session says, to its live streams."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from longhaul.stores.streams.directory import DirectoryStreams
from longhaul.stores.streams.streams import BadStreamsSetting, Streams, StreamsUnavailable

FOLDER = "streams"
NO_STREAM = "the session's worker has no live stream, or none that this client could read"


def open_streams(redis_url: str, *, data_dir: Path) -> Streams:
    """A worker's: in Redis when it has one, else in its data directory. Raises BadStreamsSetting."""
    if redis_url:
        from longhaul.stores.streams.redis import RedisStreams  # noqa: PLC0415  only who uses Redis loads it

        return RedisStreams(redis_url)
    return DirectoryStreams(data_dir.absolute() / FOLDER)


async def reach(address: str, *, redis_url: str = "") -> Streams:
    """What stands at the address that a session tells. Raises StreamsUnavailable when that is not reached from here.

    An address has no password, and may be a name that only workers know: where the client has a Redis of its own
    setting, that is taken to be the same.
    """
    try:
        parts = urlsplit(address)
        if parts.scheme == "file":
            return await _directory(Path(unquote(parts.path)), parse_qs(parts.query).get("id", [""])[0])
        if parts.scheme.partition("+")[0] in ("redis", "rediss"):
            streams = open_streams(redis_url or address, data_dir=Path())
            try:
                await streams.check()
            except BaseException:
                await streams.close()
                raise
            return streams
    except (BadStreamsSetting, ValueError) as error:
        raise StreamsUnavailable(f"the session's live stream has an address that can't be read: {error}") from error
    raise StreamsUnavailable(NO_STREAM)


async def _directory(root: Path, mark: str) -> Streams:
    streams = DirectoryStreams(root)
    await streams.check_is(mark)
    return streams
