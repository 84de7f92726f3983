"""What people wrote beside messages goes with the next model call, and is shown as its answer says."""

from typing import get_args

from longhaul.agent import entries as e
from longhaul.agent.entries import Entry
from longhaul.agent.journal import Journal
from longhaul.agent.reducer.approval_digest import FIELDS, unseen
from longhaul.agent.values.conversation.messages import AssistantMsg
from longhaul.agent.views.events import EventReducer
from tests.agent.play import Play, calls, text

KEY = "gate 9c41"
MARK = "[secret GATE_KEY]"


def deciding() -> Play:
    """A denial and a refusal that hold a key, and a model that is asked."""
    play = Play([calls("a Paint"), text("Never.")])
    play.say("Paint")
    play.run()
    play.tell("confirm", {"decisions": [{"call_id": "a", "decision": "allow", "input": KEY}]})
    play.tell(
        "confirm", {"decisions": [{"call_id": "a", "decision": "deny", "reason": f"not {KEY}"}], "approver": "bo"}
    )
    return play


def answer(play: Play, words: dict[str, str]) -> None:
    play.begin()
    play.asked = None
    play.write(e.ModelSaid(message=AssistantMsg("mason", "Then not."), words=words))
    play.run()


def test_each_is_sent_with_its_place_and_once_more_when_it_came_during_a_call() -> None:
    play = deciding()

    sent = unseen(play.journal)
    answer(play, {})
    again = unseen(play.journal)
    for number in range(2):
        play.say("And now?", f"again-{number}")
        play.run()

    refusal, reason = sorted(sent.values())
    assert refusal.startswith(f"input: {KEY!r} is not JSON")
    assert reason == f"not {KEY}"
    assert again == sent
    assert unseen(play.journal) == {}


def test_all_that_shows_them_shows_the_marks_from_then_on() -> None:
    play = deciding()
    reducer = EventReducer()
    before = list(reducer.catch_up(play.journal.log))

    answer(play, {place: words.replace(KEY, MARK) for place, words in unseen(play.journal).items()})
    after = reducer.catch_up(play.journal.log)

    assert any(KEY in event.model_dump_json() for event in before)
    assert not any(KEY in event.model_dump_json() for event in after)
    assert [(event.seq, event.type) for event in after][: len(before)] == [(event.seq, event.type) for event in before]
    assert [made.reason for made in play.journal.state.decisions] == [f"not {MARK}"]
    assert MARK in play.journal.refused.newest[-1].reason
    assert not [entry for entry in play.journal.log if KEY in entry.model_dump_json()]
    assert EventReducer().catch_up(play.journal.log) == after


def test_a_record_folded_again_shows_the_same() -> None:
    play = deciding()
    answer(play, {place: words.replace(KEY, MARK) for place, words in unseen(play.journal).items()})

    again = Journal.of(list(play.journal.log))

    assert again.state.decisions == play.journal.state.decisions
    assert again.refused == play.journal.refused


def test_a_flood_of_words_is_sent_as_far_as_a_call_takes_it() -> None:
    play = deciding()
    for _ in range(1_000):
        play.write(e.OperationRefused(name="submit", reason="x" * 500))

    sent = unseen(play.journal)

    assert 200_000 - 500 <= sum(map(len, sent.values())) <= 200_000


NO_PERSONS = {
    (e.CallUnsettled, "reason"),
    (e.OutcomeProbed, "detail"),
    (e.DeltaReceived, "text"),
    (e.Restored, "note"),
    (e.StateReplaced, "note"),
    (e.WorkerLacks, "why"),
}
"""Ours, a worker's, which masks them, or a part of a message."""


def test_every_entry_with_words_is_known() -> None:
    names = {"why", "reason", "detail", "text", "output", "note", "comment", "payload", "answers"}
    found = {
        (entry, name)
        for entry in entries(e.AnyEntry)
        for name, field in entry.model_fields.items()
        if field.annotation is str and name in names
    }

    assert found - NO_PERSONS == {(entry, name) for entry, fields in FIELDS.items() for name in fields}


def entries(kind: object) -> list[type[Entry]]:
    if isinstance(kind, type):
        return [kind] if issubclass(kind, Entry) else []
    return [entry for part in get_args(kind) for entry in entries(part)]


def test_what_stands_beside_other_letters_is_shown_with_marks_too() -> None:
    play = deciding()
    play.tell("pause", {"why": f"for {KEY}"})
    play.tell("notify", {"event": "ebb", "payload": f"with {KEY}"})
    play.tell("rules", {"add": [{"tool_name": "Paint", "behavior": "deny"}], "why": f"since {KEY}"})

    answer(play, {place: words.replace(KEY, MARK) for place, words in unseen(play.journal).items()})

    told = [
        *play.journal.log,
        play.journal.pause,
        play.journal.external_events,
        *play.journal.state.permission_context.rules,
    ]
    assert [entry for entry in told if KEY in str(entry)] == []
    assert sum(MARK in str(entry) for entry in told) >= 6
