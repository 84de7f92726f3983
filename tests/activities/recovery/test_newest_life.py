"""Which life is the newest: what is uncertain is held, and an older state never passes for the newest one."""

import pytest

from longhaul.activities.recovery import Past, StoredIncarnation, found_in
from longhaul.agent.entries import Restored
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.stores.state.store import DamagedRecord
from tests.agent.play import Play, calls, text

DAMAGE = DamagedRecord("the file store", "longhaul/mason/ana/wall-7", "it is no JSON")


def incarnation(*words: str, incarnation: int = 1) -> Carried:
    """An incarnation that has answered once for each word."""
    play = Play([text(word) for word in words], keeps=True)
    play.journal.incarnation.number = incarnation
    for number, word in enumerate(words):
        play.say(f"Say {word}", f"r{incarnation}-{number}")
        play.run()
    play.journal.incarnation.number = incarnation
    return Carried.model_validate_json(carry(play.journal, play.events_before, 0, 0).model_dump_json())


def never_started(words: str) -> Carried:
    """An incarnation that took an operation in and was ended before it had looked back."""
    play = Play(keeps=True)
    play.say(words, "r-late")
    return Carried.model_validate_json(carry(play.journal, play.events_before, 0, 0).model_dump_json())


def stored(
    carried: Carried | None, incarnation: int = 1, *, closed: bool = False, quarantine: str = ""
) -> StoredIncarnation:
    place = (carried.session.incarnation.number, carried.session.seq) if carried else (0, 0)
    return StoredIncarnation(incarnation, closed, carried, place, quarantine=quarantine)


def said(found: Restored) -> list[str]:
    if found.carried is None:
        return []
    context = Carried.model_validate(found.carried).session.state.context
    return [message.get_text_content() for message in context if message.role == "assistant"]


OLD, NEW = incarnation("one"), incarnation("one", "two")


def test_a_session_that_never_was_begins() -> None:
    found = found_in(Past())

    assert (found.incarnation, found.source, found.carried, found.quarantine) == (1, "nothing", None, "")


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
        (
            Past(stored=stored(OLD), gone=True, history=incarnation("one", "two", incarnation=2)),
            "history",
            ["one", "two"],
            "",
        ),
        (Past(stored=stored(NEW), history=OLD), "store", ["one", "two"], "its history ends before that"),
        (Past(stored=stored(None), gone=True), "nothing", [], "no checkpoint of it is left"),
        (Past(lost="it can't be read"), "nothing", [], "it can't be read"),
    ],
)
def test_the_newest_is_taken_and_what_may_be_older_is_held(
    past: Past, source: str, words: list[str], held: str
) -> None:
    found = found_in(past)

    assert (found.source, said(found), bool(found.quarantine)) == (source, words, bool(held))
    assert held in found.quarantine
    before = [
        past.stored.incarnation if past.stored else 0,
        past.history.session.incarnation.number if past.history else 0,
    ]
    assert found.incarnation == max(before) + 1


@pytest.mark.parametrize("past", [Past(damage=DAMAGE), Past(damage=DAMAGE, lost="it can't be read")])
def test_a_damaged_record_without_a_history_is_for_a_person(past: Past) -> None:
    with pytest.raises(DamagedRecord, match="backup"):
        found_in(past)


def test_operations_of_lives_that_never_began_come_after_what_was() -> None:
    past = Past(stored=stored(OLD), closed=True, started=[never_started("Say three"), never_started("Say two")])

    found = found_in(past)

    session = Carried.model_validate(found.carried).session
    queued = [message.get_text_content() for request in session.requests.queue for message in request.messages]
    assert (found.source, said(found), found.incarnation) == ("history", ["one"], 4)
    assert queued == ["Say two"], "both were sent under one id, which counts once"
    assert session.refused.count == 1


def test_operations_of_a_first_life_that_never_began_are_all_that_there_is() -> None:
    found = found_in(Past(stored=stored(None), started=[never_started("Say one")], claimed=True))

    session = Carried.model_validate(found.carried).session
    assert (found.source, found.quarantine, len(session.requests.queue), session.incarnation.restored) == (
        "history",
        "",
        1,
        True,
    )


def test_a_life_that_was_held_and_never_began_is_held_again() -> None:
    found = found_in(
        Past(stored=stored(OLD, 2, quarantine="later steps are unknown"), started=[never_started("?")], claimed=True)
    )

    assert (found.quarantine, found.incarnation) == ("later steps are unknown", 4)


def test_an_open_reply_of_a_life_that_was_cut_off_is_closed_before_the_operations() -> None:
    play = Play([calls("b Paint")], keeps=True)
    play.say("Paint it", "r1")
    play.run()
    cut = Carried.model_validate_json(carry(play.journal, play.events_before, 0, 0).model_dump_json())

    found = found_in(Past(history=cut, started=[never_started("Stop")]))

    session = Carried.model_validate(found.carried).session
    assert session.state.reply_context is None
    assert [ended.reason.value for ended in session.requests.finished.values()] == ["interrupted"]
    assert len(session.requests.queue) == 1
