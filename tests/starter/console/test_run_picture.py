"""A run as a picture: to scale while something works, with quiet times cut, and never more marks than pixels."""

import time
from itertools import pairwise
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


def test_the_axis_has_round_steps_that_are_true_to_scale() -> None:
    night = lane(span("model", 0, 70), span("person", 70, 8 * HOUR), span("model", 8 * HOUR, 8 * HOUR + 65))
    found = drawn(night, now=8 * HOUR + 65)
    gaps = [after - before for before, after in pairwise(found.grid)]

    assert [one.text for one in found.ticks] == [
        *("0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"),
        *("8 h", "8 h 10 s", "8 h 20 s", "8 h 30 s", "8 h 40 s", "8 h 50 s"),
    ]
    assert found.ticks[0].x == found.grid[0] + 3
    assert max(gaps[:7]) - min(gaps[:7]) < 0.01
    assert found.began_at == "2026-05-28T20:26:40.000+00:00"


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [
        (0.1, ["0 s", "0.01 s", "0.02 s"]),
        (9, ["0 s", "1 s", "2 s"]),
        (400, ["0 s", "30 s", "1 min"]),
        (5 * HOUR, ["0 s", "30 min", "1 h"]),
        (80 * HOUR, ["0 s", "6 h", "12 h"]),
        (2_000 * HOUR, ["0 s", "7 d", "14 d"]),
        (200_000 * HOUR, ["0 s", "364 d"]),
    ],
)
def test_steps_of_the_axis_are_those_of_a_clock_or_a_calendar(seconds: float, steps: list[str]) -> None:
    found = drawn(lane(span("model", 0, seconds)), now=seconds)

    assert [one.text for one in found.ticks][: len(steps)] == steps
    assert all(before.x + len(before.text) * 6 <= after.x for before, after in pairwise(found.ticks))


def test_a_call_that_is_too_short_to_be_drawn_is_a_point_and_no_bar() -> None:
    spans = [span("tool", at, at + took, name=name) for at, took, name in ((10, 0.01, "A"), (50, 1, "B"), (90, 5, "C"))]
    found = drawn(lane(span("model", 0, 100), *spans), now=100)
    widths = {one.says[0]: one.width for one in found.marks if one.kind.startswith("tool")}
    html = rendered("run_picture", {"drawn": found, "name": "run", "whole": True})

    assert widths["A"] == 0
    assert widths["C"] == pytest.approx(5 * widths["B"])
    assert widths["B"] == pytest.approx((WIDTH - 16) / 100)
    assert html.count('<path class="point tool"') == 1


def test_several_short_calls_next_to_each_other_do_not_look_like_one_long_call() -> None:
    short = [span("tool", 50 + place / 5, 50.001 + place / 5, effect=Effect.READ) for place in range(5)]
    dense = [span("tool", 70 + place / 5, 70.199 + place / 5, effect=Effect.ONCE) for place in range(5)]
    found = drawn(lane(span("model", 0, 100), *short, *dense), now=100)
    several = {one.kind: one for one in found.marks if one.many}

    assert several["tool read"].says.startswith("5 of tool call, the first: tool call, only reads")
    assert several["tool read"].width == 0
    assert several["tool once"].width == pytest.approx((WIDTH - 16) / 100, rel=0.01)


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
