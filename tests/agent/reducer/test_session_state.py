"""The parts of a session state, and what two ledgers share."""

from copy import deepcopy
from dataclasses import fields, is_dataclass

from longhaul.agent.entries import CallsExamined, Checkpointed, Segment
from longhaul.agent.incarnation.continued_state import once_saved
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.session_state import SessionState
from longhaul.agent.values.conversation.messages import Usage
from tests.agent.play import Play, carried_over, text


def _parts(session: SessionState) -> dict[str, object]:
    given = {part.name: getattr(session, part.name) for part in fields(SessionState)}
    return {name: part for name, part in given.items() if is_dataclass(part)}


def _played() -> Play:
    play = Play([text("Done.")])
    play.say("Look at the wall")
    play.run()
    return play


def test_a_twin_has_parts_of_its_own() -> None:
    journal = _played().journal

    twin = journal.twin()

    mine, its = _parts(journal), _parts(twin)
    assert its == mine
    assert len(its) == 12
    assert not [name for name, part in its.items() if part is mine[name]]


def test_what_a_checkpoint_will_say_changes_nothing_of_what_it_was_made_from() -> None:
    play = _played()
    carried = carried_over(play.journal, play.events_before, all_of_it=True)
    before = deepcopy(carried.session)
    segment = Segment(key="wall/1", first_seq=1, last_seq=4, size=70, messages=0)

    told = once_saved(carried, Checkpointed(through=4, messages=2, segments=(segment,)))

    assert (told.session.keeping.saved, told.session.keeping.segments) == (4, [segment])
    assert carried.session == before


def test_entries_that_were_left_with_the_state_are_still_to_go_into_a_segment() -> None:
    play = _played()
    carried = carried_over(play.journal, play.events_before, all_of_it=True)
    segment = Segment(key="wall/1", first_seq=1, last_seq=2, size=70, messages=0)
    sealed = once_saved(carried, Checkpointed(through=2, messages=1, segments=(segment,)))

    kept = once_saved(sealed, Checkpointed(through=4, with_state=True, keep=1, closing=True)).session.keeping

    assert (kept.saved, kept.saved_messages, kept.segments) == (2, 1, [segment])
    assert (kept.mirrored, kept.closing) == (4, True)


def test_a_record_over_a_ledger_leaves_that_ledger_as_it_was() -> None:
    play = _played()
    left = carried_over(play.journal, play.events_before, all_of_it=True).session
    told = (left.keeping.changed, left.spent.model_calls)

    journal = Journal.over(left)
    for entry in play.journal.log:
        journal.take(entry.model_copy(update={"seq": entry.seq + 100}))

    assert journal.keeping.changed > told[0]
    assert (left.keeping.changed, left.spent.model_calls) == told


def test_findings_that_come_when_the_reply_is_over_are_paid_for_and_stop_nothing() -> None:
    play = _played()
    before = play.journal.spent.usage

    play.write(CallsExamined(analysis={"gone": CallAnalysis(cwd="/")}, usage=Usage(input_tokens=5)))

    assert play.journal.reply is None
    assert play.journal.spent.usage == before + Usage(input_tokens=5)
