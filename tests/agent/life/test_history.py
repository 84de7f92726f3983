"""Messages by number from entries alone are the messages that the session had live."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.fold.agent_state import AgentState
from longhaul.agent.life.history import messages
from longhaul.agent.life.rollover_state import Carried, carry, imported, once_saved, slimmed, with_state
from longhaul.agent.values.conversation.messages import AssistantMsg, Msg, UserMsg
from tests.agent.play import SPEC, Play, calls, text


def numbered(play: Play) -> list[tuple[int, Msg]]:
    return list(enumerate(play.record.context.transcript, start=play.record.context.transcript_base))


def long_talk() -> Play:
    """A talk in which the context was rewritten twice, with calls, an interrupt and letters in between."""
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

    assert play.record.context.epoch > 1
    assert list(messages(play.record.log)) == numbered(play)


def test_a_replaced_state_counts_on() -> None:
    play = Play([text("Forty."), text("Seven.")], keeps=True)
    play.say("How many?", "r1")
    play.run()
    other = AgentState(session_id="wall-7", context=[UserMsg("ana", "Bonjour"), AssistantMsg("mason", "Salut")])
    play.tell("replace_state", {"state": other.model_dump(mode="json")})
    play.say("Encore?", "r2")
    play.run()

    assert list(messages(play.record.log)) == numbered(play)
    assert [message.get_text_content() for _, message in messages(play.record.log)][2:4] == ["Bonjour", "Salut"]


def test_a_gap_is_not_passed_over() -> None:
    log = long_talk().record.log

    with pytest.raises(ValueError, match="entry 4 does not follow on 2"):
        list(messages([*log[:2], *log[3:]]))
    with pytest.raises(ValueError, match="begins with entry 1"):
        list(messages(log[1:]))


def test_what_is_stored_names_what_it_needs() -> None:
    play = long_talk()
    through, total = play.record.seq, play.record.messages_total
    segment = e.Segment(key="k", first_seq=1, last_seq=through, size=9)
    saved = e.Checkpointed(through=through, messages=total, segments=(segment,), closing=True)

    stored = once_saved(carry(play.record, play.events_before, through, total), saved)

    assert (stored.ledger.keeping.segments, stored.ledger.keeping.saved, stored.ledger.keeping.mirrored) == (
        [segment],
        through,
        through,
    )
    assert (stored.ledger.log, stored.ledger.context.transcript) == ([], [])
    assert play.record.keeping.saved != through or play.record.keeping.segments != [segment]


def test_what_stands_outside_is_left_out_by_the_ledgers_own_account() -> None:
    play = long_talk()
    whole = carry(play.record, play.events_before, 0, 0)

    slim = slimmed(Carried.model_validate_json(whole.model_dump_json()))

    told = carry(play.record, play.events_before, play.record.keeping.saved, play.record.keeping.saved_messages)
    assert slim.model_dump_json() == told.model_dump_json()
    assert len(slim.ledger.log) < len(whole.ledger.log)


def test_an_edited_state_takes_the_place_of_the_old_one() -> None:
    play = long_talk()
    state = play.record.state.model_copy(update={"context": [UserMsg("ana", "Bonjour")], "summary": ""})
    carried = carry(play.record, play.events_before, play.record.keeping.saved, play.record.keeping.saved_messages)

    edited = with_state(carried, state, "the store", "edited")

    assert [message.get_text_content() for message in edited.ledger.state.context] == ["Bonjour"]
    assert [mark.digest for mark in edited.ledger.context.marks] == [""]
    assert edited.ledger.context.epoch == play.record.context.epoch + 1
    assert edited.ledger.requests.handled == play.record.requests.handled
    assert edited.ledger.log[-1].kind == "state_replaced"


def test_an_imported_state_is_a_session_of_two_entries() -> None:
    opened = e.SessionOpened(seq=1, session_id="wall-7", user_id="ana", spec=SPEC)
    state = AgentState(session_id="elsewhere", context=[UserMsg("ana", "Bonjour")])

    begun = imported(opened, state, "the store").ledger

    assert [entry.kind for entry in begun.log] == ["opened", "state_replaced"]
    assert (begun.state.session_id, begun.state.agent, len(begun.state.context)) == ("wall-7", "mason", 1)
