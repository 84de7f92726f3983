"""Growing Markdown is cut where it can no longer change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.starter.cli.terminal.text_layout import MarkdownBlocks


def blocks(text: str, size: int = 1) -> list[str]:
    paragraphs = MarkdownBlocks()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [block for piece in pieces for block in paragraphs.feed(piece)] + [paragraphs.rest]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one\ntwo\n\nthree", ["one\ntwo", "three"]),
        ("```py\na = 1\n\nb = 2\n```\n\nthen", ["```py\na = 1\n\nb = 2\n```", "then"]),
        ("````\n```\n\ninside\n````\n\nout", ["````\n```\n\ninside\n````", "out"]),
        ("- one\n\n  more of one\n\nafter", ["- one\n\n  more of one", "after"]),
        ("one\n\n", ["one\n\n"]),
    ],
)
def test_blocks_end_where_the_next_one_stands_at_the_margin(text: str, found: list[str]) -> None:
    assert blocks(text) == found


@given(st.text(alphabet="a`~\n -", max_size=60), st.integers(1, 9))
def test_nothing_is_lost_and_pieces_make_no_difference(text: str, size: int) -> None:
    assert blocks(text, size) == blocks(text, len(text) or 1)
    assert "".join("".join(blocks(text, size)).split()) == "".join(text.split())


def test_a_long_text_takes_linear_time() -> None:
    paragraphs = MarkdownBlocks()

    for _ in range(50_000):
        paragraphs.feed("a word\n")

    assert len(paragraphs.rest) == 350_000
