"""Which life is the newest: what is uncertain is held, and an older state never passes for the newest one."""

import pytest

from longhaul.activities.recovery import Past, StoredLife, found_in
from longhaul.agent.entries import Restored
from longhaul.agent.life.rollover_state import Carried, carry
from longhaul.stores.state.store import DamagedRecord
from tests.agent.play import Play, calls, text

DAMAGE = DamagedRecord("the file store", "longhaul/mason/ana/wall-7", "it is no JSON")


def life(*words: str, generation: int = 1) -> Carried:
    """A life that has answered once for each word."""
    play = Play([text(word) for word in words], keeps=True)
    play.record.life.generation = generation
    for number, word in enumerate(words):
        play.say(f"Say {word}", f"r{generation}-{number}")
        play.run()
    play.record.life.generation = generation
    return Carried.model_validate_json(carry(play.record, play.events_before, 0, 0).model_dump_json())


def never_begun(words: str) -> Carried:
    """A life that took a letter in and was ended before it had looked back."""
    play = Play(keeps=True)
    play.say(words, "r-late")
    return Carried.model_validate_json(carry(play.record, play.events_before, 0, 0).model_dump_json())


def stored(carried: Carried | None, generation: int = 1, *, closed: bool = False, hold: str = "") -> StoredLife:
    place = (carried.ledger.life.generation, carried.ledger.seq) if carried else (0, 0)
    return StoredLife(generation, closed, carried, place, hold=hold)


def said(found: Restored) -> list[str]:
    if found.carried is None:
        return []
    context = Carried.model_validate(found.carried).ledger.state.context
    return [message.get_text_content() for message in context if message.role == "assistant"]


OLD, NEW = life("one"), life("one", "two")


def test_a_session_that_never_was_begins() -> None:
    found = found_in(Past())

    assert (found.generation, found.source, found.carried, found.hold) == (1, "nothing", None, "")


@pytest.mark.parametrize(
    ("past", "source", "words", "held"),
    [
        (Past(stored=stored(NEW), closed=True), "store", ["one", "two"], ""),
        (Past(stored=stored(OLD), history=NEW), "history", ["one", "two"], ""),
        (Past(history=NEW), "history", ["one", "two"], ""),
        (Past(damage=DAMAGE, history=NEW), "history", ["one", "two"], ""),
        (Past(stored=stored(OLD, closed=True), gone=True), "store", ["one"], ""),
        (Past(stored=stored(OLD)), "store", ["one"], ""),
        (Past(stored=stored(OLD), gone=True), "store", ["one"], "its history is gone"),
        (Past(stored=stored(OLD, closed=True), lost="it can't be read"), "store", ["one"], "it can't be read"),
        (Past(stored=stored(OLD, 2), gone=True, history=OLD), "store", ["one"], "its history is gone"),
        (Past(stored=stored(OLD), gone=True, history=life("one", "two", generation=2)), "history", ["one", "two"], ""),
        (Past(stored=stored(NEW), history=OLD), "store", ["one", "two"], "its history ends before that"),
        (Past(stored=stored(None), gone=True), "nothing", [], "no checkpoint of it is left"),
        (Past(lost="it can't be read"), "nothing", [], "it can't be read"),
    ],
)
def test_the_newest_is_taken_and_what_may_be_older_is_held(
    past: Past, source: str, words: list[str], held: str
) -> None:
    found = found_in(past)

    assert (found.source, said(found), bool(found.hold)) == (source, words, bool(held))
    assert held in found.hold
    before = [past.stored.generation if past.stored else 0, past.history.ledger.life.generation if past.history else 0]
    assert found.generation == max(before) + 1


@pytest.mark.parametrize("past", [Past(damage=DAMAGE), Past(damage=DAMAGE, lost="it can't be read")])
def test_a_damaged_record_without_a_history_is_for_a_person(past: Past) -> None:
    with pytest.raises(DamagedRecord, match="backup"):
        found_in(past)


def test_letters_of_lives_that_never_began_come_after_what_was() -> None:
    past = Past(stored=stored(OLD), closed=True, begun=[never_begun("Say three"), never_begun("Say two")])

    found = found_in(past)

    ledger = Carried.model_validate(found.carried).ledger
    queued = [message.get_text_content() for request in ledger.requests.queue for message in request.messages]
    assert (found.source, said(found), found.generation) == ("history", ["one"], 4)
    assert queued == ["Say two"], "both were sent under one id, which counts once"
    assert ledger.refused.count == 1


def test_letters_of_a_first_life_that_never_began_are_all_that_there_is() -> None:
    found = found_in(Past(stored=stored(None), begun=[never_begun("Say one")], claimed=True))

    ledger = Carried.model_validate(found.carried).ledger
    assert (found.source, found.hold, len(ledger.requests.queue), ledger.life.restored) == ("history", "", 1, True)


def test_a_life_that_was_held_and_never_began_is_held_again() -> None:
    found = found_in(
        Past(stored=stored(OLD, 2, hold="later steps are unknown"), begun=[never_begun("?")], claimed=True)
    )

    assert (found.hold, found.generation) == ("later steps are unknown", 4)


def test_an_open_reply_of_a_life_that_was_cut_off_is_closed_before_the_letters() -> None:
    play = Play([calls("b Paint")], keeps=True)
    play.say("Paint it", "r1")
    play.run()
    cut = Carried.model_validate_json(carry(play.record, play.events_before, 0, 0).model_dump_json())

    found = found_in(Past(history=cut, begun=[never_begun("Stop")]))

    ledger = Carried.model_validate(found.carried).ledger
    assert ledger.state.reply_context is None
    assert [ended.reason.value for ended in ledger.requests.finished.values()] == ["interrupted"]
    assert len(ledger.requests.queue) == 1
