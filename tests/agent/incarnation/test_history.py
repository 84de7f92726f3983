"""Messages by number from entries alone are the messages that the session had live."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.incarnation.continued_state import Carried, carry, imported, once_saved, slimmed, with_state
from longhaul.agent.incarnation.history import messages
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg
from tests.agent.play import SPEC, Play, calls, text


def numbered(play: Play) -> list[tuple[int, Msg]]:
    return list(enumerate(play.journal.context.transcript, start=play.journal.context.transcript_base))


def long_talk() -> Play:
    """A talk in which the context was rewritten twice, with calls, an interrupt and operations in between."""
    lines = [
        text("Forty. " * 300),
        calls("a Look", "b Paint"),
        text("Blue. " * 300),
        text("Done. " * 300),
        text("Yes."),
    ]
    play = Play(lines, keeps=True, window=2_000)
    play.say("How many bricks?", "r1")
    play.run()
    play.say("Paint it", "r2")
    play.run()
    play.tell("observe", {"messages": "It rains."})
    play.allow("b")
    play.run()
    play.say("Go on", "r3")
    play.run()
    play.say("And?", "r4")
    play.run()
    return play


@pytest.mark.proves("D7")
def test_numbers_and_texts_are_those_of_the_live_session() -> None:
    play = long_talk()

    assert play.journal.context.epoch > 1
    assert list(messages(play.journal.log)) == numbered(play)


def test_a_replaced_state_counts_on() -> None:
    play = Play([text("Forty."), text("Seven.")], keeps=True)
    play.say("How many?", "r1")
    play.run()
    other = AgentState(session_id="wall-7", context=[UserMsg("ana", "Bonjour"), AssistantMsg("mason", "Salut")])
    play.tell("replace_state", {"state": other.model_dump(mode="json")})
    play.say("Encore?", "r2")
    play.run()

    assert list(messages(play.journal.log)) == numbered(play)
    assert [message.get_text_content() for _, message in messages(play.journal.log)][2:4] == ["Bonjour", "Salut"]


def test_a_gap_is_not_passed_over() -> None:
    log = long_talk().journal.log

    with pytest.raises(ValueError, match="entry 4 does not follow on 2"):
        list(messages([*log[:2], *log[3:]]))
    with pytest.raises(ValueError, match="begins with entry 1"):
        list(messages(log[1:]))


def test_what_is_stored_names_what_it_needs() -> None:
    play = long_talk()
    through, total = play.journal.seq, play.journal.messages_total
    segment = e.Segment(key="k", first_seq=1, last_seq=through, size=9)
    saved = e.Checkpointed(through=through, messages=total, segments=(segment,), closing=True)

    stored = once_saved(carry(play.journal, play.events_before, through, total), saved)

    assert (stored.session.keeping.segments, stored.session.keeping.saved, stored.session.keeping.mirrored) == (
        [segment],
        through,
        through,
    )
    assert (stored.session.log, stored.session.context.transcript) == ([], [])
    assert play.journal.keeping.saved != through or play.journal.keeping.segments != [segment]


def test_what_stands_outside_is_left_out_by_the_ledgers_own_account() -> None:
    play = long_talk()
    whole = carry(play.journal, play.events_before, 0, 0)

    slim = slimmed(Carried.model_validate_json(whole.model_dump_json()))

    told = carry(play.journal, play.events_before, play.journal.keeping.saved, play.journal.keeping.saved_messages)
    assert slim.model_dump_json() == told.model_dump_json()
    assert len(slim.session.log) < len(whole.session.log)


def test_an_edited_state_takes_the_place_of_the_old_one() -> None:
    play = long_talk()
    state = play.journal.state.model_copy(update={"context": [UserMsg("ana", "Bonjour")], "summary": ""})
    carried = carry(play.journal, play.events_before, play.journal.keeping.saved, play.journal.keeping.saved_messages)

    edited = with_state(carried, state, "the store", "edited")

    assert [message.get_text_content() for message in edited.session.state.context] == ["Bonjour"]
    assert [mark.digest for mark in edited.session.context.marks] == [""]
    assert edited.session.context.epoch == play.journal.context.epoch + 1
    assert edited.session.requests.handled == play.journal.requests.handled
    assert edited.session.log[-1].kind == "state_replaced"


def test_an_imported_state_is_a_session_of_two_entries() -> None:
    opened = e.SessionOpened(seq=1, session_id="wall-7", user_id="ana", spec=SPEC)
    state = AgentState(session_id="elsewhere", context=[UserMsg("ana", "Bonjour")])

    started = imported(opened, state, "the store").session

    assert [entry.kind for entry in started.log] == ["opened", "state_replaced"]
    assert (started.state.session_id, started.state.agent, len(started.state.context)) == ("wall-7", "mason", 1)
