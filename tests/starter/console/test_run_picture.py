"""A run as a picture: to scale while something works, with quiet times cut, and never more marks than pixels."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.views.run_spans import Span
from longhaul.starter.console.pages import rendered
from longhaul.starter.console.run_picture import WIDTH, Lane, Picture, Scale, picture
from tests.limits import usual

SECOND = 1_000
NOON = 1_780_000_000_000
HOUR = 3_600
MOST_SECONDS = 0.3
MANY = 2_000


def span(kind: Any, start: float, end: float | None, **more: Any) -> Span:
    till = None if end is None else NOON + round(end * SECOND)
    return Span(kind=kind, seq=1, start=NOON + round(start * SECOND), end=till, **more)


def lane(*spans: Span) -> Lane:
    return Lane("night", "lamp", "night", spans, 0)


def drawn(*lanes: Lane, now: float) -> Picture:
    visit: Any = SimpleNamespace(beside_agent=lambda agent, session, page, **query: f"/{page}?{query}")
    return picture(visit, lanes, WIDTH, NOON + round(now * SECOND))


def test_a_night_in_which_a_call_waits_is_a_strip_that_says_how_long_it_was() -> None:
    night = lane(span("model", 0, 10), span("person", 10, 8 * HOUR), span("model", 8 * HOUR, 8 * HOUR + 10))
    found = drawn(night, now=8 * HOUR + 10)
    first, second = (one for one in found.marks if one.kind == "model")

    assert [cut.text for cut in found.cuts] == ["7 h 59 min"]
    assert abs(first.width - second.width) < 1, "both took ten seconds"
    assert first.width > WIDTH / 3
    assert found.cuts[0].width < WIDTH / 20


def test_moments_keep_their_order_on_the_scale() -> None:
    spans = [span("tool", place * 100, place * 100 + 1) for place in range(50)]
    scale = Scale([lane(*spans)], WIDTH, NOON + 5_000 * SECOND)
    places = [scale(NOON + second * SECOND) for second in range(0, 5_000, 10)]

    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= WIDTH


def test_calls_at_the_same_time_are_below_each_other() -> None:
    found = drawn(
        lane(span("tool", 0, 9, name="A"), span("tool", 1, 8, name="B"), span("tool", 9, 10, name="C")), now=10
    )
    rows = {one.says[0]: one.y for one in found.marks}

    assert rows["A"] == rows["C"] != rows["B"]


def test_names_that_hide_are_shown_by_their_numbers() -> None:
    (mark,) = drawn(lane(span("tool", 0, 1, name="Ba\u202esh", says="<b>\x1b[2J")), now=1).marks

    assert mark.says.startswith("Ba⟨U+202E⟩sh <b>⟨U+001B⟩[2J: tool call")


@pytest.mark.alone
@pytest.mark.proves("X15")
def test_two_thousand_events_are_drawn_in_a_moment() -> None:
    effects = (Effect.READ, Effect.IDEMPOTENT, Effect.ONCE)
    spans = [
        span("model", place * 3, place * 3 + 2, input_tokens=place, name="gull-4")
        if place % 2
        else span(
            "tool", place * 3, place * 3 + 1, effect=effects[place % 3], state="success", name="Bash", says="make"
        )
        for place in range(MANY)
    ]
    began = time.process_time()
    found = drawn(lane(*spans), now=3 * MANY)
    html = rendered("run_picture", {"drawn": found, "name": "run", "whole": True})
    took = time.process_time() - began

    assert took <= usual(MOST_SECONDS), took
    assert 100 < len(found.marks) < WIDTH
    assert html.count("data-point") == len(found.marks)
