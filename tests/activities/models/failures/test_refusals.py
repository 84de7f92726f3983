"""What a provider refuses is read from its words and from what it was sent."""

import json

import pytest

from longhaul.activities.models.failures.error_meanings import read_refusal
from tests.activities.models.failures.refusals import REFUSALS, Row


@pytest.mark.parametrize("row", REFUSALS, ids=[row[0] for row in REFUSALS])
def test_what_is_refused_is_read_from_real_words(row: Row) -> None:
    _, sent, status, words, means, contents = row

    found = read_refusal(status, words, json.dumps(sent).encode())

    assert (found and found.means, set(found.contents) if found else set()) == (means, contents)


@pytest.mark.parametrize("sent", [b"", b"{", b"[]", b"7", b'{"messages": null}', b"\xff"])
def test_a_body_that_nobody_has_or_can_read_leaves_the_words(sent: bytes) -> None:
    found = read_refusal(400, "messages.0.content.1.image.source: Could not process image", sent)

    assert found is not None
    assert (found.means, found.path) == ("attachments", "messages.0.content.1.image.source")
