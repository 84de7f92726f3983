"""What a stream tells of the end of one reply, among the marks of others."""

import pytest

from longhaul.starter.client.reading.live_stream import ToldEnds
from longhaul.stores.streams.streams import SETTLED, Item, encode

REST = encode(Item("wake", name=SETTLED))
OWN, OTHER, THIRD = (encode(Item("wake", name=SETTLED, text=reply)) for reply in ("r-own", "r-other", "r-third"))
OTHER_LINES = (b"", b"{}", b"settled", encode(Item("wake")), encode(Item("text", "model:0", 1, text=SETTLED)))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((REST,), [False]),
        ((OWN, REST), [False, True]),
        ((OWN, REST, REST), [False, True, True]),
        ((OWN, OTHER, THIRD, REST), [False, True, False, False]),
        ((OTHER, OWN, OWN, OTHER), [False, False, False, True]),
        ((OTHER, THIRD), [False, False]),
        (OTHER_LINES, [False] * len(OTHER_LINES)),
    ],
)
def test_a_reply_that_has_started_has_ended_when_its_session_rests_or_begins_another(
    lines: tuple[bytes, ...], told: list[bool]
) -> None:
    ends = ToldEnds("r-own")

    assert [ends.hear(line.rstrip(b"\n")) for line in lines] == told


def test_a_request_that_has_joined_a_reply_ends_with_it() -> None:
    ends = ToldEnds("r-own")
    ends.is_made("r-other")

    assert [ends.hear(line) for line in (OTHER, REST, THIRD)] == [False, True, True]
