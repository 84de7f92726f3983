"""Text that comes in pieces is masked as if it had come at once, and comes as soon as it can."""

import itertools
import time
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longhaul.activities.masker import MaskedStream, Masker
from tests.activities.masking.test_masking import ODD, TOKEN, UMLAUTS, VALUES, forms

SHORT = {"TOKEN": TOKEN, "ODD": ODD, "UMLAUTS": UMLAUTS, "WORD": "swordfish", "LONGER": "swordfish-and-chips"}
MASKER = Masker(SHORT)
FORMS = [form for value in SHORT.values() for form in forms(value)]
DEEP = quote("".join(f"\\\\x{byte:02x}" for byte in TOKEN.encode()), safe="")
PROSE = (
    'The gate is open at 67 degrees, 100% of it; C:\\new and \\u00e9 "quoted" zgh_ Z2hw, so go.\n\nSwords of fishers.\n'
)

pieces_of_text = st.one_of(
    st.sampled_from(FORMS),
    st.sampled_from(FORMS).flatmap(lambda form: st.integers(0, len(form)).map(lambda at: form[:at])),
    st.text(alphabet="g\\%xu067 \nab=+", max_size=12),
    st.just(PROSE),
)


def streamed(masker: Masker, text: str, cuts: list[int]) -> str:
    stream = MaskedStream(masker)
    ends = sorted(cut % (len(text) + 1) for cut in cuts)
    borders = [0, *ends, len(text)]
    said = [stream.feed(text[start:end]) for start, end in itertools.pairwise(borders)]
    return "".join(said) + stream.end()


@pytest.mark.proves("D9")
@given(st.lists(pieces_of_text, max_size=5), st.lists(st.integers(0, 4_000), max_size=30))
@example(["swordfish", "-and-", "chips"], [9])
@example(["\\\\\\", TOKEN], [1, 2])
@settings(max_examples=150, deadline=None)
def test_wherever_the_text_is_cut_no_secret_comes_through(parts: list[str], cuts: list[int]) -> None:
    said = streamed(MASKER, " ".join(parts), cuts)

    assert MASKER.found(said) == ""


@given(st.lists(st.sampled_from([*FORMS, PROSE, "swordfis", TOKEN[:20]]), max_size=4), st.lists(st.integers(0, 4_000)))
@settings(max_examples=150, deadline=None)
def test_the_pieces_together_are_the_text_masked_at_once(parts: list[str], cuts: list[int]) -> None:
    text = " | ".join(parts)

    assert streamed(MASKER, text, cuts) == MASKER.masked(text)


def test_prose_comes_at_once_up_to_its_last_word() -> None:
    for end in range(1, len(PROSE)):
        text = PROSE[:end]

        said = MaskedStream(MASKER).feed(text)

        assert text.startswith(said)
        assert len(text) - len(said) <= len(text) - text.rfind(" ", 0, end - 1), text


def test_what_turns_out_to_be_no_secret_comes_with_the_character_that_shows_it() -> None:
    for form in FORMS:
        stream = MaskedStream(MASKER)
        half = form[: len(form) // 2]

        said = stream.feed(f"so: {half}") + stream.feed("@") + stream.feed("#")

        assert said.startswith("so: ")
        assert said.endswith("#"), (form, said)


def test_a_whole_secret_is_told_with_its_last_character() -> None:
    assert MaskedStream(Masker({"KEY": TOKEN})).feed(f"it is {TOKEN}") == "it is [secret KEY]"
    assert MaskedStream(MASKER).feed("swordfish") == ""
    assert MaskedStream(MASKER).feed("swordfish!") == "[secret WORD]!"


@pytest.mark.parametrize("piece", [1, 17])
def test_what_can_be_seen_but_not_cut_out_is_held_back_together(piece: int) -> None:
    masker = Masker({"KEY": TOKEN})
    stream = MaskedStream(masker)
    text = f"odd: {DEEP} and more"

    said = "".join(stream.feed(text[at : at + piece]) for at in range(0, len(text), piece)) + stream.end()

    assert masker.found(said) == ""


@pytest.mark.parametrize("unit", ["g", "6", "67 ", "\\", "%", "%25", "\\u", "gg\n", "g\\n", "0x"])
def test_an_endless_beginning_is_neither_held_for_ever_nor_slow(unit: str) -> None:
    masker = Masker({"KEY": TOKEN, "SAME": "g" * 40})
    stream = MaskedStream(masker)
    text = unit * (20_000 // len(unit))
    began = time.thread_time()

    said = [stream.feed(text[at : at + 10]) for at in range(0, len(text), 10)]

    assert sum(map(len, said)) > 100 or masker.found(text)
    assert time.thread_time() - began < 10


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("piece", [1, 13, 4_000])
def test_a_secret_on_the_border_of_two_pieces_is_cut_out_as_well(value: str, piece: int) -> None:
    masker = Masker({"KEY": value})
    for form in list(forms(value))[:: 1 if len(value) < 100 else 9]:
        text = f"{'.' * 900}{form}{',' * 900}"
        stream = MaskedStream(masker)

        said = "".join(stream.feed(text[at : at + piece]) for at in range(0, len(text), piece)) + stream.end()

        assert said == masker.masked(text)
        assert masker.found(said) == ""


def test_a_stream_holds_back_no_more_than_a_secret_can_take() -> None:
    stream = MaskedStream(Masker({"KEY": TOKEN}))

    said = stream.feed("." * 10_000)

    assert len(said) > 9_000
