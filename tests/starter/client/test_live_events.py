"""Items as events: of the newest attempt alone, each once, and what is missing is told."""

from itertools import chain, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent.values.conversation.messages import TextBlock
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.transcript import ReplyReducer
from longhaul.starter.client.reading.live_stream import LOST, RESTARTED, LiveEvents
from longhaul.stores.streams.streams import Item
from longhaul.workflows.contract import EventPage

REPLY = "r1"


def page(model_calls: int = 0, *calls: str, reply_id: str = REPLY, since: int = 0) -> EventPage:
    return EventPage(events=(), last=9, reply_id=reply_id, since=since, model_calls=model_calls, open_calls=calls)


def view(*calls: str) -> LiveEvents:
    live = LiveEvents()
    live.recorded(page(0, *calls))
    return live


def attempt(number: int, *pieces: str, turn: int = 5, call: str = "model:0", kind: str = "text") -> list[Item]:
    """All items of an attempt that came to its end."""
    said = [
        Item(kind, call, turn, number, index, text=piece)  # type: ignore[arg-type]
        for index, piece in enumerate(pieces, start=1)
    ]
    return [
        Item("begin", call, turn, number, name="scripted:x"),
        *said,
        Item("end", call, turn, number, len(said) + 1),
    ]


def told(live: LiveEvents, items: list[Item]) -> list[AgentEvent]:
    return list(chain.from_iterable(live.of(item) for item in items))


def spoken(events: list[AgentEvent]) -> list[str]:
    """Texts and names, as a person would see them."""
    return [event.delta or event.name for event in events if event.delta or event.name]


def test_blocks_stand_between_a_start_and_an_end() -> None:
    begin, *_ = attempt(1)
    pieces = [
        Item("thinking", "model:0", 5, 1, 1, 0, "hm"),
        Item("text", "model:0", 5, 1, 2, 1, "For"),
        Item("text", "model:0", 5, 1, 3, 1, "ty"),
        Item("tool_call", "model:0", 5, 1, 4, 2, "{", "c1", "send"),
        Item("end", "model:0", 5, 1, 5),
    ]

    events = told(view(), [begin, *pieces])

    assert [(event.type, event.delta) for event in events] == [
        ("MODEL_CALL_START", ""),
        ("THINKING_BLOCK_START", ""),
        ("THINKING_BLOCK_DELTA", "hm"),
        ("THINKING_BLOCK_END", ""),
        ("TEXT_BLOCK_START", ""),
        ("TEXT_BLOCK_DELTA", "For"),
        ("TEXT_BLOCK_DELTA", "ty"),
        ("TEXT_BLOCK_END", ""),
        ("TOOL_CALL_START", ""),
        ("TOOL_CALL_DELTA", "{"),
        ("TOOL_CALL_END", ""),
    ]
    assert {event.reply_id for event in events} == {REPLY}
    assert not any(event.seq for event in events)
    assert [(e.tool_call_id, e.tool_call_name) for e in events if e.type.startswith("TOOL_")] == [("c1", "send")] * 3


@pytest.mark.proves("X6")
def test_a_superseded_attempt_is_told_once_and_its_late_pieces_are_dropped() -> None:
    first, second = attempt(1, "Fif", "ty"), attempt(2, "For", "ty")

    events = told(view(), [*first[:2], *second[:2], first[2], *second[2:], first[3]])

    assert spoken(events) == ["Fif", RESTARTED, "For", "ty"]
    assert [event.live.attempt for event in events if event.live and event.name == RESTARTED] == [2]


def test_the_same_call_asked_for_again_supersedes_every_attempt_of_before() -> None:
    before, again = attempt(4, "Fifty", turn=5), attempt(1, "Forty", turn=6)

    events = told(view(), [*before[:2], *again[:2], *before[2:], again[2]])

    assert spoken(events) == ["Fifty", RESTARTED, "Forty"]


def test_an_attempt_that_showed_nothing_is_not_worth_a_word() -> None:
    first, second = (attempt(number, "out", call="tool:a", kind="output") for number in (1, 2))

    assert spoken(told(view("a"), [first[0], *second])) == ["out"]


def test_what_comes_twice_is_told_once() -> None:
    items = attempt(1, "a", "b", "c")

    assert spoken(told(view(), [*items[:3], *items[1:], *items])) == ["a", "b", "c"]


def test_a_gap_is_told_once_and_so_is_what_the_worker_could_not_write() -> None:
    items = attempt(1, *"abcdef")
    torn = [items[0], items[1], items[4], items[6]]
    dropped = [*items[:2], Item("lost", "model:0", 5, 1, 2), Item("text", "model:0", 5, 1, 3, 0, "z")]

    assert spoken(told(view(), torn)) == ["a", LOST, "d", "f"]
    assert spoken(told(view(), dropped)) == ["a", LOST, "z"]
    assert spoken(told(view(), items[3:])) == [LOST, "c", "d", "e", "f"]


def test_what_has_come_to_a_result_is_of_the_past() -> None:
    live = view("a")
    tool = attempt(1, "one", "two", call="tool:a", kind="output")
    assert spoken(told(live, tool[:2])) == ["one"]

    live.recorded(page(1))

    assert told(live, tool[2:]) == []
    assert told(live, attempt(1, "late")) == []
    assert spoken(told(live, attempt(1, "new", call="model:1"))) == ["new"]


def test_nothing_is_told_between_replies_and_a_new_reply_begins_clean() -> None:
    live = view()
    told(live, attempt(1, "interrupted")[:2])
    live.recorded(page(reply_id=""))
    assert told(live, attempt(1, "interrupted")) == []

    live.recorded(page(reply_id="r2"))
    events = told(live, attempt(1, "again", turn=9))

    assert spoken(events) == ["again"]
    assert {event.reply_id for event in events} == {"r2"}


def test_who_comes_late_is_told_nothing_of_an_earlier_reply_that_was_cut_off_in_the_same_call() -> None:
    live = LiveEvents()
    live.recorded(page(reply_id="r2", since=9))

    events = told(live, [*attempt(1, "cut", " off", turn=8_999)[:3], *attempt(1, "again", turn=9_000)])

    assert spoken(events) == ["again"]


def test_a_tool_call_named_like_a_model_call_is_a_call_of_its_own() -> None:
    assert told(view(), attempt(1, "x", call="tool:model:0", kind="output")) == []


@given(st.lists(st.sampled_from(attempt(1, *"abc") + attempt(2, *"xyz") + attempt(1, *"uvw", turn=7)), max_size=30))
def test_in_any_order_and_number_an_attempt_is_told_at_most_once_and_never_an_older_one(items: list[Item]) -> None:
    events = told(view(), items)

    pieces = [(event.live.attempt, event.live.index, event.delta) for event in events if event.live and event.delta]
    assert len(pieces) == len(set(pieces))
    attempts = ["abc", "xyz", "uvw"]
    seen = [next(at for at, operations in enumerate(attempts) if delta in operations) for _, _, delta in pieces]
    assert seen == sorted(seen)


def test_with_two_attempts_cut_and_mixed_in_every_way_only_the_newest_remains() -> None:
    first, second = attempt(1, "a", "b")[:3], attempt(2, "x", "y")
    for order in set(permutations("1112222")):
        sources = {"1": iter(first), "2": iter(second)}
        folded = ReplyReducer(REPLY)
        for event in told(view(), [next(sources[which]) for which in order]):
            folded.take(event)

        assert folded.message().content == (TextBlock(text="xy"),), order
