"""What a worker keeps of conversations that it has sent: the newest ones, and never more than so much."""

import pytest

from longhaul.activities.models.requests import turns
from longhaul.activities.models.requests.turns import Arrangements
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, Msg, TextBlock, UserMsg


def test_a_conversation_that_grows_is_kept_and_another_one_begins_again() -> None:
    kept, messages = Arrangements(), said("one")

    first = kept.of(messages)
    grown = kept.of([*messages, UserMsg("user", "more")])
    copied = kept.of([message.model_copy() for message in messages])

    assert grown is first
    assert copied is not first
    assert kept.of(messages) is not first, "it is longer than what is asked for now"


def test_the_conversations_that_were_sent_longest_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_KEPT", 2)
    kept, conversations = Arrangements(), [said("one"), said("two"), said("three")]

    before = [kept.of(messages) for messages in conversations]

    assert kept.of(conversations[2]) is before[2]
    assert kept.of(conversations[1]) is before[1]
    assert kept.of(conversations[0]) is not before[0]


def test_long_conversations_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LARGEST_KEPT", 1_000)
    kept, conversations = Arrangements(), [said("x" * 600), said("y" * 600), said("z" * 2_000)]

    before = [kept.of(messages) for messages in conversations[:2]]

    assert kept.of(conversations[1]) is before[1]
    assert kept.of(conversations[0]) is not before[0]
    assert kept.of(conversations[2]).turns
    assert kept.size == 0, "one that is too long by itself is kept no longer than its request"


def said(text: str) -> list[Msg]:
    return [UserMsg("user", text)]


def test_an_attachment_counts_with_all_its_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LARGEST_KEPT", 1_000)
    kept = Arrangements()
    picture = DataBlock(source=Base64Source(media_type="image/png", data="iVBO" * 500))

    kept.of([UserMsg("user", [TextBlock(text="Look"), picture])])

    assert kept.size == 0
