"""Where a reply stands in a trace."""

import pytest

from longhaul.agent.plain.ids import SpanPlace, TraceHeader, place_of, place_of_reply

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def test_a_traceparent_is_read() -> None:
    assert place_of(f"00-{TRACE}-{SPAN}-01") == SpanPlace(TRACE, SPAN, sampled=True)
    assert place_of(f"00-{TRACE}-{SPAN}-00") == SpanPlace(TRACE, SPAN, sampled=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{TRACE}-{SPAN}",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_what_is_no_traceparent_is_none(text: str) -> None:
    assert place_of(text) is None


def test_a_reply_has_the_same_place_wherever_it_is_worked_out() -> None:
    place = place_of_reply("reply-4")

    assert place == place_of_reply("reply-4")
    assert place != place_of_reply("reply-5")
    assert (len(place.trace), len(place.span), place.sampled) == (32, 16, None)


def test_a_reply_that_was_asked_for_in_a_trace_belongs_to_it() -> None:
    place = place_of_reply("reply-4", f"00-{TRACE}-{SPAN}-01")

    assert (place.trace, place.sampled) == (TRACE, True)
    assert place.span == place_of_reply("reply-4").span != SPAN


def test_an_empty_header_says_nothing() -> None:
    assert TraceHeader().model_dump_json() == "{}"
