"""Lines of a live stream: what we write is read back, and nothing that others write can raise."""

import json

from hypothesis import given
from hypothesis import strategies as st

from longhaul.stores.streams.streams import Item, decode, encode, model_call, tool_call


def test_an_item_is_read_back_as_it_was_written() -> None:
    item = Item("tool_call", model_call(3), 1_763_737_200_000_123, 2, 7, 1, '{"to": "Ana\n\ud83d"}', "call_9", "send")

    line = encode(item)

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert decode(line.rstrip(b"\n")) == item


def test_an_item_says_nothing_that_it_does_not_know() -> None:
    assert json.loads(encode(Item("wake", attempt=0))) == {"k": "wake"}


def test_what_is_nothing_of_ours_is_passed_over() -> None:
    strange = [
        b"", b"null", b"[]", b"7", b"{", b"\xff\xfe", b'{"k":"shout"}', b'{"k":["text"]}', b'{"k":"text","i":-1}',
        b'{"k":"text","i":true}', b'{"k":"text","t":1e400}', b'{"k":"text","t":99999999999999999999999}',
        b'{"k":"text","d":7}', b"[" * 100_000, b'{"k":"text","d":"' + b"x" * 300_000 + b'"}',
    ]  # fmt: skip

    assert [decode(line) for line in strange] == [None] * len(strange)


@given(st.binary(max_size=200))
def test_no_bytes_make_a_reader_raise(line: bytes) -> None:
    decode(line)


def test_a_tool_call_and_a_model_call_never_share_a_name() -> None:
    assert model_call(3) != tool_call("3")
    assert tool_call("model:3") != model_call(3)
