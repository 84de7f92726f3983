"""`longhaul doctor` on what is around sessions: the live streams, who is told of them, and the analyzers."""

from collections.abc import AsyncIterator

from longhaul.activities.analysis import AnalyzerSetupError, load_analyzers
from longhaul.activities.notify.notifications import BadNotifySetting, open_channels
from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.settings import Settings
from longhaul.stores.streams.open_streams import open_streams, reach
from longhaul.stores.streams.streams import BadStreamsSetting, Streams, StreamsUnavailable

PROBE = "longhaul doctor"
"""The key of a stream that no session has."""


async def on_the_wiring(settings: Settings) -> AsyncIterator[Check]:
    """What is not set is left out, but for the streams, which every worker has."""
    yield await streams(settings)
    if settings.notify:
        yield notify(settings)
    if settings.analyzers:
        yield analyzers(settings)


async def streams(settings: Settings) -> Check:
    """Written to as a worker does, and read from as a client does, at the address that sessions tell."""
    what = "LONGHAUL_REDIS_URL" if settings.redis_url else "LONGHAUL_DATA_DIR"
    mend = f"start what {what} names, or mend it; until then replies come whole and not as they are written"
    try:
        opened = open_streams(settings.redis_url, data_dir=settings.data_dir)
        try:
            await _written_and_read(opened, settings)
        finally:
            await opened.close()
    except (BadStreamsSetting, StreamsUnavailable) as error:
        return Check("live streams", ok=False, detail=str(error), mend=mend)
    place = "Redis" if settings.redis_url else "the data directory, for clients on this machine"
    return Check("live streams", ok=True, detail=f"written and read in {place}")


async def _written_and_read(opened: Streams, settings: Settings) -> None:
    await opened.append(PROBE, b"{}\n")
    try:
        seen = await reach(opened.address, redis_url=settings.redis_url)
        reader = seen.reader(PROBE)
        try:
            if not await reader.read(1.0):
                raise StreamsUnavailable("what a worker writes there can't be read by a client")
        finally:
            await reader.close()
            await seen.close()
    finally:
        await opened.delete(PROBE)


def notify(settings: Settings) -> Check:
    """Whether the targets can be used as they are written; nobody is told anything."""
    try:
        found = open_channels(settings.notify)
    except BadNotifySetting as error:
        return Check("notify", ok=False, detail=str(error), mend="mend LONGHAUL_NOTIFY where workers start")
    return Check("notify", ok=True, detail=f"{len(found)} target{'' if len(found) == 1 else 's'}")


def analyzers(settings: Settings) -> Check:
    """Loaded as a worker loads them."""
    try:
        found = load_analyzers(settings.analyzers)
    except AnalyzerSetupError as error:
        return Check("analyzers", ok=False, detail=str(error), mend="mend LONGHAUL_ANALYZERS where workers start")
    return Check("analyzers", ok=True, detail=", ".join(found))
