"""What a worker keeps of a session's messages: found by content, filled up from the session, bounded in bytes."""

import pytest

from longhaul.activities.context.context_cache import WEIGHED_EACH, Contexts, Pull, size_of
from longhaul.activities.contract import ContextAddress, Inline, Ref, TranscriptPage
from longhaul.agent.plain.values import chain_digest
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Base64Source,
    DataBlock,
    Msg,
    ToolResultBlock,
    UserMsg,
    message_digest,
)

ASKED, ANSWERED, RESULT = (
    UserMsg("ana", "How many bricks?"),
    AssistantMsg("mason", "I count."),
    AssistantMsg("mason", [ToolResultBlock(id="c-wall", name="Count", output="forty")]),
)
SEEN = chain_digest(chain_digest("", message_digest(ASKED)), message_digest(ANSWERED))
ADDRESS = ContextAddress(prefix_digest=SEEN, prefix_length=2, tail=(Ref(digest=message_digest(RESULT)),))


def pull_from(*messages: Msg, asked: list[int]) -> Pull:
    """A session that answers one message a page, and notes what it was asked for."""

    async def pull(start: int) -> TranscriptPage:
        asked.append(start)
        return TranscriptPage(epoch=1, start=start, total=len(messages), messages=messages[start : start + 1])

    return pull


async def test_a_worker_that_made_the_messages_asks_for_none() -> None:
    contexts, asked = Contexts(), list[int]()
    session = contexts.session("wall", 1)
    for message in (ASKED, ANSWERED):
        session.append(message, message_digest(message))
    session.keep(message_digest(RESULT), RESULT, 7)

    assert await contexts.resolve(session, ADDRESS, pull_from(asked=asked)) == [ASKED, ANSWERED, RESULT]
    assert asked == []


async def test_what_was_counted_before_is_not_counted_again() -> None:
    contexts, counted = Contexts(), list[Msg]()

    def count(message: Msg) -> int:
        counted.append(message)
        return 10

    session = contexts.session("wall", 1)
    session.append(ASKED, message_digest(ASKED))
    session.tokens(count)
    session.append(ANSWERED, message_digest(ANSWERED), 20)
    session.keep(message_digest(RESULT), RESULT, 7)
    await contexts.resolve(session, ADDRESS, pull_from(asked=[]))

    assert session.tokens(count) == 37
    assert counted == [ASKED]


async def test_a_worker_that_knows_nothing_fetches_every_message_once() -> None:
    contexts, asked = Contexts(), list[int]()
    pull = pull_from(ASKED, ANSWERED, RESULT, asked=asked)

    assert await contexts.resolve(contexts.session("wall", 1), ADDRESS, pull) == [ASKED, ANSWERED, RESULT]
    assert asked == [0, 1, 2]


async def test_what_an_attempt_left_behind_does_not_stay_in_the_context() -> None:
    contexts, asked = Contexts(), list[int]()
    session = contexts.session("wall", 1)
    for message in (ASKED, AssistantMsg("mason", "Nobody recorded this.")):
        session.append(message, message_digest(message))
    address = ADDRESS.model_copy(update={"tail": (Inline(message=UserMsg("ana", "Well?")),)})

    found = await contexts.resolve(session, address, pull_from(ASKED, ANSWERED, asked=asked))

    assert found == [ASKED, ANSWERED, UserMsg("ana", "Well?")]


async def test_a_session_that_ends_too_early_is_an_error() -> None:
    contexts = Contexts()

    with pytest.raises(LookupError, match="the session has 1 messages, and number 1 was asked for"):
        await contexts.resolve(contexts.session("wall", 1), ADDRESS, pull_from(ASKED, asked=[]))


@pytest.mark.proves("E1")
def test_the_least_recently_used_sessions_are_forgotten_first() -> None:
    contexts = Contexts(capacity_bytes=3_500)
    for name in ("north", "south", "east"):
        contexts.session(name, 1).append(UserMsg("ana", "x" * 1_000), name)
        contexts.session("north", 1)
    for _ in range(WEIGHED_EACH):
        contexts.session("north", 1)

    assert [len(contexts.session(name, 1).messages) for name in ("north", "east", "south")] == [1, 1, 0]


def test_pictures_count_with_their_data() -> None:
    picture = DataBlock(source=Base64Source(data="A" * 900_000, media_type="image/png"))
    shown = AssistantMsg("mason", [ToolResultBlock(id="c-wall", name="Look", output=(picture,))])

    assert size_of(UserMsg("ana", [picture])) > 900_000
    assert size_of(shown) > 900_000


def test_what_a_session_showed_two_summaries_ago_is_forgotten() -> None:
    contexts = Contexts()
    for workflow_id, epoch in (("wall", 1), ("roof", 1), ("wall", 2)):
        contexts.session(workflow_id, epoch).append(ASKED, message_digest(ASKED))

    contexts.session("wall", 3)

    assert contexts.session("wall", 2).messages
    assert contexts.session("roof", 1).messages
    assert not contexts.session("wall", 1).messages
