"""How much an operation may hold is asked of its bytes, and the answer does not depend on how they are spelt."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhaul.agent.plain.json_schemas import TooMuch, check_bounds
from tests.limits import usual

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**90), 10**90) | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5),
    max_leaves=60,
)


@settings(max_examples=300, deadline=None)
@given(json_values, st.booleans())
def test_no_small_letter_is_refused_whatever_its_texts_hold(value: Any, ascii_only: bool) -> None:
    check_bounds("submit", json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("text", ["[{,", '\\"[{,', "\\\\", "\\\\\\", '"', "1" * 500, "\n" * 50_000, "," * 50_000])
def test_what_stands_in_a_text_counts_for_nothing(text: str) -> None:
    check_bounds("submit", json.dumps({"messages": [text] * 20, text: 1}).encode())


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"[" + b"1," * 10_000 + b"1]", "more than 10,000 JSON values"),
        (b"{" + b'"a":1,' * 10_000 + b'"a":1}', "more than 10,000 JSON values"),
        (b"[" * 51 + b"]" * 51, "deeper than 50 levels"),
        (b'{"a":' * 51, "deeper than 50 levels"),
        (b"[" + b"9" * 101 + b"]", "a number of 101 characters, and the most is 100"),
        (b"[0." + b"3" * 5_000 + b"]", "a number of 5002 characters"),
    ],
)
def test_too_much_of_anything_is_refused_with_the_limit(body: bytes, sentence: str) -> None:
    with pytest.raises(TooMuch, match=sentence):
        check_bounds("observe", body)


def test_a_state_may_hold_more_than_a_message() -> None:
    body = b"[" + b"1," * 10_000 + b"1]"

    check_bounds("replace_state", body)
    with pytest.raises(TooMuch, match="more than 40,000 JSON values"):
        check_bounds("replace_state", b"[" + b"1," * 40_000 + b"1]")


@pytest.mark.parametrize(
    "unit",
    [
        b"{},",
        b'"x"',
        b"1,",
        b"[",
        b'"',
        b'\\"',
        b"9",
        b'"a":',
        b"\\",
        b"\xff",
        b" ",
        b"9" * 99 + b" ",
        b"9 ",
        b"true,",
        b"9" * 100 + b",",
    ],
)
def test_sixteen_megabytes_of_anything_are_looked_at_in_a_moment(unit: bytes) -> None:
    body = b'{"messages": [' + unit * (16_000_000 // len(unit))

    began = time.process_time()
    with contextlib.suppress(TooMuch):
        check_bounds("replace_state", body)

    assert time.process_time() - began < usual(0.4)
