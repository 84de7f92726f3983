"""One spelling for equal values."""

import base64
import hashlib

import pytest

from longhaul.agent.plain.values import canonical_json, chain_digest, digest_of
from longhaul.agent.values.conversation.messages import AssistantMsg, ToolCallBlock, Usage, UserMsg, message_digest


def _sha256(text: bytes) -> str:
    """In base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode("ascii").rstrip("=")


def test_keys_are_sorted_and_nothing_but_ascii_is_written() -> None:
    assert canonical_json({"b": [1, 2.5, None, True], "a": "ü"}) == b'{"a":"\\u00fc","b":[1,2.5,null,true]}'


def test_a_lone_surrogate_survives() -> None:
    assert canonical_json("\ud83e") == b'"\\ud83e"'
    assert digest_of("\ud83e") != digest_of("\ud83f")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"deep": [float("-inf")]}])
def test_what_is_no_json_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(value)


def test_a_digest_is_the_sha_256_of_the_canonical_text() -> None:
    assert digest_of({"a": 1}) == _sha256(b'{"a":1}')


def test_a_message_keeps_its_digest_when_the_record_stamps_it() -> None:
    said = AssistantMsg("mason", "Forty.")
    stamped = said.model_copy(update={"id": "r1", "created_at": "2025-11-25T12:00:00Z", "usage": Usage(input_tokens=3)})

    assert message_digest(stamped) == message_digest(said)


@pytest.mark.parametrize(
    "other",
    [
        UserMsg("mason", "Forty."),
        AssistantMsg("ana", "Forty."),
        AssistantMsg("mason", "Fifty."),
        AssistantMsg("mason", [ToolCallBlock(id="a", name="Look", input="Forty.")]),
    ],
)
def test_whatever_the_model_sees_changes_the_digest(other: object) -> None:
    assert message_digest(other) != message_digest(AssistantMsg("mason", "Forty."))  # type: ignore[arg-type]


def test_a_chain_tells_order_and_length_apart() -> None:
    empty_then_a = chain_digest("", "a1")

    assert empty_then_a == _sha256(b"+a1")
    assert chain_digest(empty_then_a, "b2") != chain_digest(chain_digest("", "b2"), "a1")
