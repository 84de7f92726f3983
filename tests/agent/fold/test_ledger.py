"""The parts of a ledger, and what two ledgers share."""

from copy import deepcopy
from dataclasses import fields, is_dataclass

from longhaul.agent.entries import CallsExamined, Checkpointed, Segment
from longhaul.agent.fold.ledger import Ledger
from longhaul.agent.life.rollover_state import once_saved
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.record import Record
from longhaul.agent.values.conversation.messages import Usage
from tests.agent.play import Play, carried_over, text


def _parts(ledger: Ledger) -> dict[str, object]:
    given = {part.name: getattr(ledger, part.name) for part in fields(Ledger)}
    return {name: part for name, part in given.items() if is_dataclass(part)}


def _played() -> Play:
    play = Play([text("Done.")])
    play.say("Look at the wall")
    play.run()
    return play


def test_a_twin_has_parts_of_its_own() -> None:
    record = _played().record

    twin = record.twin()

    mine, its = _parts(record), _parts(twin)
    assert its == mine
    assert len(its) == 12
    assert not [name for name, part in its.items() if part is mine[name]]


def test_what_a_checkpoint_will_say_changes_nothing_of_what_it_was_made_from() -> None:
    play = _played()
    carried = carried_over(play.record, play.events_before, all_of_it=True)
    before = deepcopy(carried.ledger)
    segment = Segment(key="wall/1", first_seq=1, last_seq=4, size=70, messages=0)

    told = once_saved(carried, Checkpointed(through=4, messages=2, segments=(segment,)))

    assert (told.ledger.keeping.saved, told.ledger.keeping.segments) == (4, [segment])
    assert carried.ledger == before


def test_entries_that_were_left_with_the_state_are_still_to_go_into_a_segment() -> None:
    play = _played()
    carried = carried_over(play.record, play.events_before, all_of_it=True)
    segment = Segment(key="wall/1", first_seq=1, last_seq=2, size=70, messages=0)
    sealed = once_saved(carried, Checkpointed(through=2, messages=1, segments=(segment,)))

    kept = once_saved(sealed, Checkpointed(through=4, with_state=True, keep=1, closing=True)).ledger.keeping

    assert (kept.saved, kept.saved_messages, kept.segments) == (2, 1, [segment])
    assert (kept.mirrored, kept.closing) == (4, True)


def test_a_record_over_a_ledger_leaves_that_ledger_as_it_was() -> None:
    play = _played()
    left = carried_over(play.record, play.events_before, all_of_it=True).ledger
    told = (left.keeping.changed, left.spent.model_calls)

    record = Record.over(left)
    for entry in play.record.log:
        record.take(entry.model_copy(update={"seq": entry.seq + 100}))

    assert record.keeping.changed > told[0]
    assert (left.keeping.changed, left.spent.model_calls) == told


def test_findings_that_come_when_the_reply_is_over_are_paid_for_and_stop_nothing() -> None:
    play = _played()
    before = play.record.spent.usage

    play.write(CallsExamined(facts={"gone": CallFacts(cwd="/")}, usage=Usage(input_tokens=5)))

    assert play.record.reply is None
    assert play.record.spent.usage == before + Usage(input_tokens=5)
