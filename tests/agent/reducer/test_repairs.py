"""A context is sent without what no provider takes, and the transcript keeps it."""

import pytest

from longhaul.agent.entries import LeftOut, Repair
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.context_state import apply_repair, suspects, without
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    HintBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    UserMsg,
    outside_tokens,
)
from tests.agent.play import Play, text

SEA = DataBlock(source=Base64Source(data="c2Vh", media_type="image/png"), name="sea")
SIGNED = ThinkingBlock.model_validate({"thinking": "Hm.", "signature": "s"})
SAID = TextBlock(text="What is it?")


def result(*parts: TextBlock | DataBlock) -> ToolResultBlock:
    return ToolResultBlock(id="c-1", name="Read", output=parts)


def left(block: int, part: int | None = None, words: str = "[gone]", media_type: str = "") -> LeftOut:
    return LeftOut(message=0, block=block, part=part, words=words, media_type=media_type)


JPEG = SEA.model_copy(update={"source": Base64Source(data="c2Vh", media_type="image/jpeg")})
GONE = TextBlock(text="[gone]")


@pytest.mark.parametrize(
    ("content", "outs", "after"),
    [
        ([SAID, SEA], [left(1)], [SAID, GONE]),
        ([SEA, SAID, SEA], [left(0), left(2)], [GONE, SAID, GONE]),
        ([SEA], [left(0, media_type="image/jpeg", words="")], [JPEG]),
        ([SIGNED, SAID], [left(0, words="")], [SAID]),
        ([SIGNED], [left(0, words="")], []),
        ([result(SAID, SEA)], [left(0, 1)], [result(SAID, GONE)]),
        ([result(SEA, SEA)], [left(0, 0), left(0, 1, media_type="image/jpeg")], [result(GONE, JPEG)]),
        ([HintBlock(hint=(SEA, SAID))], [left(0, 0)], [HintBlock(hint=(GONE, SAID))]),
        ([SAID], [left(7)], [SAID]),
        ([SAID], [left(0, 3)], [SAID]),
        ([result(SAID)], [left(0, 3)], [result(SAID)]),
    ],
)
def test_words_or_nothing_stand_in_the_place_of_what_is_left_out(
    content: list[TextBlock], outs: list[LeftOut], after: list[TextBlock]
) -> None:
    message = UserMsg("ana", content, id="m1.0", created_at="2026-11-23T02:00:00Z")

    assert without(message, outs) == UserMsg("ana", after, id="m1.0", created_at="2026-11-23T02:00:00Z")


def test_a_message_without_a_part_is_as_long_as_what_stays() -> None:
    message = UserMsg("ana", [SAID, SEA])
    assert message.text_length == 111

    assert without(message, [left(1, words="")]).text_length == 11


def asked(summary: str = "") -> Journal:
    """A session that has been asked about a picture."""
    play = Play([text("First."), text("Second.")])
    play.say("Hello")
    play.run()
    play.journal.state.summary = summary
    play.journal.hear((UserMsg("user", [SAID, SEA]),))
    return play.journal


@pytest.mark.parametrize(("summary", "place"), [("", 2), ("They met.", 3)])
def test_a_repair_changes_the_context_and_not_the_transcript(summary: str, place: int) -> None:
    journal = asked(summary)
    out = LeftOut(message=place, block=1, words="[gone]")

    apply_repair(journal, Repair(left_out=(out,), context_digest="d", context_length=9))

    assert journal.state.context[2].content == (SAID, GONE)
    assert journal.context.marks[2].digest == ""
    assert journal.context.tokens == sum(mark.tokens for mark in journal.context.marks)
    assert journal.context.marks[2].tokens == outside_tokens(journal.state.context[2])
    assert journal.context.cached_prefix == ("d", 9)
    assert journal.context.transcript[2].content == (SAID, SEA)


def test_a_place_that_the_context_does_not_have_changes_nothing() -> None:
    journal = asked()

    apply_repair(journal, Repair(left_out=(LeftOut(message=2, block=9), LeftOut(message=77, block=0))))

    assert journal.state.context[2].content == (SAID, SEA)


def test_who_takes_no_images_is_remembered_once() -> None:
    journal = asked()
    for model in ("m:1", "m:1", "m:2"):
        apply_repair(journal, Repair(takes_no_images=model))

    assert journal.context.takes_no_images == ["m:1", "m:2"]
    assert journal.state.context[2].content == (SAID, SEA)


def test_all_that_a_provider_may_refuse_is_found() -> None:
    context = [
        UserMsg("ana", [SAID, SEA]),
        AssistantMsg("lamp", [SIGNED, SAID]),
        AssistantMsg("lamp", [result(SAID, SEA)]),
        UserMsg("longhaul", [HintBlock(hint=(SEA,)), HintBlock(hint="Look.")]),
    ]

    outs = suspects(context)

    places = [(out.message, out.block, out.part) for out in outs]
    assert places == [(0, 1, None), (1, 0, None), (2, 0, 1), (3, 0, 0)]
    assert outs[0].words == "[image 'sea' (image/png) left out: taken out of the context by hand]"
    assert outs[1].words == ""
