"""Messages out of segments: exactly those of the session, and no segment is opened that does not hold them."""

from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.tools.recall import FoundMessages, look_at_sealed, wanted
from longhaul.agent.entries import AnyEntry, Segment
from longhaul.agent.incarnation.history import History, boundary_of, messages
from longhaul.agent.steps import Park
from longhaul.agent.values.conversation.messages import Msg
from longhaul.stores.blobs.blob_directory import DirectoryBlobs
from longhaul.stores.blobs.blobs import session_prefix
from longhaul.stores.segments import Segments, messages_between, stretches
from tests.agent.play import Play, calls, text

PREFIX = session_prefix("default", "longhaul/mason/~/wall-7")
STEPS = 1_000
LIMIT = 40_000


class CountingBlobs(DirectoryBlobs):
    """A real store that says which blobs were opened."""

    opened: list[str]

    async def get(self, key: str) -> bytes:
        self.opened.append(key)
        return await super().get(key)


@pytest.fixture
def blobs(tmp_path: Path) -> CountingBlobs:
    store = CountingBlobs(tmp_path, fsync=False)
    store.opened = []
    return store


def long_work() -> list[AnyEntry]:
    """One request with a thousand steps; operations come in while calls wait, and a second request waits until the
    end."""
    lines = [calls(f"c{step} {'Paint' if step % 100 == 50 else 'Look'}") for step in range(STEPS)]
    play = Play([*lines, text("Done."), text("Salut.")], keeps=True)
    play.spec = play.journal.spec = play.journal.spec.model_copy(
        update={"react_config": play.journal.spec.react_config.model_copy(update={"max_iters": 2 * STEPS})}
    )
    play.say("Paint the wall", "r1")
    play.tell("submit", {"messages": "And then?", "request_id": "r2"})
    while isinstance(play.run(), Park):
        for call in play.journal.current.waiting():
            play.tell("observe", {"messages": f"It rains on {call.block.id}."})
            play.allow(call.block.id)
    return list(play.journal.log)


async def written(store: Segments, log: list[AnyEntry], boundary: Any = None) -> list[Segment]:
    """In checkpoints of 90 entries. `boundary`: before the first of them."""
    segments: list[Segment] = []
    history = History() if boundary is None else History.at(boundary)
    for at in range(0, len(log), 90):
        newest = segments[-12:]
        keep, new = await store.extend(PREFIX, newest, log[at : at + 90], history.boundary)
        history.take_all(log[at : at + 90])
        segments = [*segments[: len(segments) - len(newest) + keep], *new]
    return segments


@pytest.fixture(scope="module")
def log() -> list[AnyEntry]:
    return long_work()


async def read(store: Segments, segments: list[Segment], first: int, end: int) -> list[tuple[int, Msg]]:
    return [pair async for pair in messages_between(store.read_whole, segments, first, end)]


async def test_a_range_of_a_thousand_steps_opens_only_the_segments_that_hold_it(
    blobs: CountingBlobs, log: list[AnyEntry]
) -> None:
    store = Segments(blobs, LIMIT)
    segments = await written(store, log)
    whole = list(messages(log))
    assert len(whole) > 2 * STEPS
    assert len(segments) > 20
    begins = [segment.messages or 0 for segment in segments]

    for first, end in ((0, 3), (901, 902), (700, 760), (1_300, 1_450), (len(whole) - 2, len(whole))):
        blobs.opened.clear()
        assert await read(store, segments, first, end) == whole[first:end]
        holding = {
            segment.key
            for segment, begin, after in zip(segments, begins, [*begins[1:], len(whole)], strict=True)
            if begin < end and after > first
        }
        assert sorted(blobs.opened) == sorted(holding)
        assert len(holding) <= 2 + (end - first) // 40


async def test_a_search_goes_back_from_the_newest_and_stops_at_its_limit(
    blobs: CountingBlobs, log: list[AnyEntry]
) -> None:
    store = Segments(blobs, LIMIT)
    segments = await written(store, log)
    total = len(list(messages(log)))
    want = wanted({"text": "it RAINS on", "limit": 2})
    found = FoundMessages(want)
    blobs.opened.clear()

    await look_at_sealed(store.read_whole, segments, want, found)

    bodies = [message.get_text_content() for _, message in found.messages]
    assert bodies == ["It rains on c950.", "It rains on c850.", "It rains on c750."]
    newest = {segment.key for segment in segments if (segment.messages or 0) > total * 0.7}
    assert set(blobs.opened) <= newest


async def test_segments_whose_messages_nobody_counted_are_read_as_one(
    blobs: CountingBlobs, log: list[AnyEntry]
) -> None:
    store = Segments(blobs, LIMIT)
    whole = list(messages(log))
    _, older = await store.extend(PREFIX, [], log[:1_500])
    history = History()
    history.take_all(log[:1_500])
    unknown = [segment.model_copy(update={"messages": None}) for segment in older]
    _, newer = await store.extend(PREFIX, [], log[1_500:], history.boundary)
    segments = [*unknown, *newer]

    assert [len(stretch.segments) for stretch in stretches(segments, len(whole))][-1] == len(older)
    assert await read(store, segments, 500, 520) == whole[500:520]
    assert await read(store, segments, len(whole) - 5, len(whole)) == whole[-5:]


async def test_a_boundary_that_nobody_knows_is_known_again_after_rest(blobs: CountingBlobs) -> None:
    play = Play([text("Blue."), text("Salut.")], keeps=True)
    play.say("Which colour?", "r1")
    play.run()
    rest = play.journal.seq
    known = boundary_of(play.journal)
    play.say("Bonjour", "r2")
    play.run()
    store = Segments(blobs, LIMIT)

    blind = await store.extend(PREFIX, [], play.journal.log[rest:])
    seeing = await store.extend(PREFIX, [], play.journal.log[rest:], known)

    assert (blind.new[0].messages, seeing.new[0].messages) == (None, 2)
    assert await read(store, list(seeing.new), 2, 4) == list(messages(play.journal.log))[2:]


async def test_too_much_that_is_open_is_not_written_down_twice(blobs: CountingBlobs) -> None:
    play = Play([calls("a Paint"), text("Blue.")], keeps=True)
    play.say("Paint it", "r1")
    play.run()
    play.say("long " * 4_000, "r2")
    waits, boundary = play.journal.seq, boundary_of(play.journal)
    play.allow("a")
    store = Segments(blobs, LIMIT)
    first = await store.extend(PREFIX, [], play.journal.log[:waits])

    second = await store.extend(PREFIX, [], play.journal.log[waits:], boundary)

    assert boundary is None
    segments = [*first.new, *second.new]
    assert [len(stretch.segments) for stretch in stretches(segments, 9)] == [2]
    assert await read(store, segments, 0, 9) == list(messages(play.journal.log))


async def test_a_missing_segment_is_said(blobs: CountingBlobs, log: list[AnyEntry]) -> None:
    store = Segments(blobs, LIMIT)
    segments = [segment.model_copy(update={"messages": None}) for segment in await written(store, log)]

    with pytest.raises(ValueError, match="does not follow on"):
        await read(store, [segments[0], *segments[2:]], 901, 902)
