"""One reader of a session and its live stream: what was made is told before the record takes its place."""

from collections.abc import Sequence
from typing import cast

from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import Following
from longhaul.starter.client.reading.live_stream import LiveStream
from longhaul.stores.streams.streams import SETTLED, Item
from longhaul.workflows.contract import EventPage

FOR = Item("text", "model:0", 5, 1, 0, text="For")
TY = Item("text", "model:0", 5, 1, 1, text="ty.")
END = Item("end", "model:0", 5, 1, 2)
WAKE = Item("wake", name=SETTLED)

STARTED = AgentEvent(type="REPLY_START", seq=1, reply_id="r1")
SAID = AgentEvent(type="TEXT_BLOCK_DELTA", seq=2, reply_id="r1", delta="Forty.")
ENDED = AgentEvent(type="REPLY_END", seq=3, reply_id="r1")
MAKING = EventPage(events=(STARTED,), last=1, reply_id="r1")
MADE = EventPage(events=(SAID,), last=2, reply_id="r1", model_calls=1)
OVER = EventPage(events=(ENDED,), last=3, model_calls=1)


class Script:
    """A session and its stream, which say what a test has written down, in the order in which they are asked."""

    reached, trouble = True, ""

    def __init__(self, pages: Sequence[EventPage], batches: Sequence[Sequence[Item]]) -> None:
        self.pages, self.batches = list(pages), list(batches)

    async def ask(self, start: int) -> EventPage:
        del start
        return self.pages.pop(0)

    async def read(self, seconds: float) -> list[Item]:
        del seconds
        return list(self.batches.pop(0))

    async def look_again(self) -> None:
        return

    def following(self) -> Following:
        return Following(self.ask, cast(LiveStream, self), 1)


async def told(script: Script) -> list[str]:
    """What a reader sees: live pieces by their text, recorded events by their number."""
    following, seen = script.following(), list[AgentEvent]()
    while script.pages or script.batches:
        seen += await following.next()
    return [str(event.seq) if event.seq else event.delta for event in seen if event.seq or event.delta]


async def test_the_last_pieces_that_come_with_the_news_of_the_record_stand_before_it() -> None:
    script = Script([MAKING, MADE], [[FOR], [TY, END, WAKE]])

    assert await told(script) == ["1", "For", "ty.", "2"]


async def test_who_asks_by_chance_in_that_moment_hears_the_last_pieces_first_and_asks_again_for_their_mark() -> None:
    script = Script([MAKING, MADE, OVER], [[FOR], [], [TY, END, WAKE], []])

    assert await told(script) == ["1", "For", "ty.", "2", "3"]


async def test_who_comes_when_all_is_recorded_is_told_nothing_of_how_it_was_made() -> None:
    script = Script([MADE, OVER], [[FOR, TY, END, WAKE]])

    assert await told(script) == ["2", "3"]


async def test_what_the_model_says_to_a_result_stands_after_it() -> None:
    begin = Item("begin", "model:1", 6, 1, 0, name="m")
    hm = Item("text", "model:1", 6, 1, 1, text="Hm.")
    asked = EventPage(events=(STARTED,), last=1, reply_id="r1", model_calls=1, open_calls=("c1",))
    returned = EventPage(events=(SAID,), last=2, reply_id="r1", model_calls=1)

    assert await told(Script([asked, returned], [[begin, hm]])) == ["1", "2", "Hm."]
