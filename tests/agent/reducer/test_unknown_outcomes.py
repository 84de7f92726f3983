"""Calls of which nobody knows whether they ran: from the result that says so to the word that settles it."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.entries import UnknownOutcome
from longhaul.agent.operations.result_operations import blocking, unresolved_outcomes
from longhaul.agent.reducer.synthetic_results import outcome_unknown
from longhaul.agent.steps import Idle, Park, Probe, Think
from longhaul.agent.values.conversation.messages import HintBlock
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.session_views import status_word
from longhaul.agent.views.transcript import reply_message
from longhaul.workflows import views
from longhaul.workflows.web_ui import details
from tests.agent.play import SPEC, TOOLS, Play, calls, spoken, text

SURE = (*TOOLS, ToolDescriptor(name="Send", probes=True))
ASKING = SPEC.model_copy(update={"on_unknown_outcome": "ask"})


def _lost(play: Play, *ids: str) -> Play:
    """Approve all, and let the workers of these calls be lost."""
    play.say("Go")
    play.run()
    waiting = play.journal.reply.waiting() if play.journal.reply else []
    for call in waiting:
        if call.block.id in ids:
            result = outcome_unknown(call.block, "the worker that ran it was lost")
            play.outcomes[call.block.id] = [e.ToolReturned(result=result)]
    play.allow(*[call.block.id for call in waiting])
    play.run()
    return play


def _sending(**more: Any) -> Play:
    play = Play([calls("a Send"), text("Done.")], tools=SURE, **more)
    return _lost(play, "a")


def _painting(**more: Any) -> Play:
    play = Play([calls("a Paint"), text("Done.")], **more)
    return _lost(play, "a")


def _hints(play: Play) -> list[str]:
    blocks = [block for message in play.journal.state.context for block in message.content]
    return [str(block.hint) for block in blocks if isinstance(block, HintBlock)]


def test_a_lost_call_is_of_unknown_outcome_and_the_model_goes_on() -> None:
    play = _painting()

    assert [unknown_outcome.call_id for unknown_outcome in unresolved_outcomes(play.journal)] == ["a"]
    assert views.status(play.journal).unknown_outcomes == 1
    assert (status_word(play.journal), play.steps[-1]) == ("idle", Idle())
    (shown,) = views.pending(play.journal)
    assert (shown.call_id, shown.tool, shown.waits_for) == ("a", "Paint", "resolution")
    assert "the worker that ran it was lost" in shown.reason
    assert "longhaul resolve wall-7 a --did-not" in details(play.journal)


def test_what_is_settled_comes_behind_and_the_result_stays_as_it_was_read() -> None:
    play = _painting()
    before = play.results()

    answer = play.tell(
        "resolve", {"call_id": "a", "happened": True, "output": "two coats", "by": "bo", "reason": "seen"}
    )

    assert answer == {"resolved": "a", "happened": True}
    assert play.results() == before
    (hint,) = _hints(play)
    assert hint.splitlines() == [
        "The call Paint (a), whose outcome was unknown, is resolved: it did happen. On the word of bo: seen",
        "Its output:",
        "two coats",
    ]
    assert views.pending(play.journal) == []
    assert views.status(play.journal).unknown_outcomes == 0


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"call_id": "z", "happened": True}, "call 'z' is no call here; of unknown outcome: ['a']"),
        ({"call_id": "b", "happened": True}, "call 'b' never had an unknown outcome; of unknown outcome: ['a']"),
        (
            {"call_id": "a", "happened": False, "output": "x"},
            "output: a call that did not happen ('a') has none; leave it out",
        ),
        ({"call_id": "a"}, "resolve: happened: Field required (it is {'call_id': 'a'})"),
    ],
)
def test_what_settles_nothing_is_refused_and_changes_nothing(body: dict[str, object], sentence: str) -> None:
    play = _lost(Play([calls("a Paint", "b Measure"), text("Done.")]), "a")

    assert play.tell("resolve", body) == sentence
    assert [unknown_outcome.call_id for unknown_outcome in unresolved_outcomes(play.journal)] == ["a"]
    assert _hints(play) == []


def test_nobody_settles_a_call_twice() -> None:
    play = _painting()
    play.tell("resolve", {"call_id": "a", "happened": False, "by": "bo"})

    again = play.tell("resolve", {"call_id": "a", "happened": True, "by": "eve"})

    assert again == "call 'a' is resolved: it did not happen, on the word of bo"
    assert len(_hints(play)) == 1


def test_a_tool_that_can_look_is_asked_once_before_the_model() -> None:
    play = _sending(findings={"a": ("happened", "operation 42 is there")})

    kinds = [type(step) for step in play.steps]
    assert kinds.count(Probe) == 1
    assert kinds.index(Probe) < len(kinds) - 1 - kinds[::-1].index(Think)
    (hint,) = _hints(play)
    assert hint.endswith("is resolved: it did happen. Send has looked: operation 42 is there")
    assert unresolved_outcomes(play.journal) == []


def test_a_look_that_tells_nothing_leaves_it_to_a_person() -> None:
    play = _sending(findings={"a": ("unknown", "the outbox is away")})

    assert _hints(play) == []
    assert [unknown_outcome.finding for unknown_outcome in unresolved_outcomes(play.journal)] == ["unknown"]
    assert [type(step) for step in play.steps].count(Probe) == 1


def test_a_persons_word_that_comes_while_the_tool_looks_stands() -> None:
    play = Play([calls("a Send"), text("Done.")], tools=SURE, findings={"a": ("happened", "")})
    play.say("Go")
    play.run()
    (call,) = play.journal.reply.waiting() if play.journal.reply else []
    play.outcomes["a"] = [e.ToolReturned(result=outcome_unknown(call.block, "it was lost"))]
    play.allow("a")
    while not isinstance(play.asked, Probe):
        play.begin()
        if play.running:
            play.end_call("a")
    play.tell("resolve", {"call_id": "a", "happened": False, "by": "bo"})
    play.complete()
    play.run()

    assert [hint.split(".")[0] for hint in _hints(play)] == [
        "The call Send (a), whose outcome was unknown, is resolved: it did not happen, and nothing of it was done"
    ]
    assert (play.journal.unknown_outcomes["a"].by, play.journal.unknown_outcomes["a"].finding) == ("bo", "happened")


def test_an_agent_that_asks_waits_until_every_unknown_outcome_of_the_reply_is_settled() -> None:
    play = _lost(Play([calls("a Measure", "b Measure"), text("Done.")], spec=ASKING), "a", "b")
    reply_id = play.journal.reply.reply_id if play.journal.reply else ""

    assert (play.steps[-1], status_word(play.journal)) == (Park("person"), "waiting")
    message = reply_message(play.journal, reply_id)
    assert message is not None
    assert message.metadata == {"waiting_for": ["a", "b"]}
    play.tell("resolve", {"call_id": "a", "happened": True})
    assert play.run() == Park("person")
    play.tell("resolve", {"call_id": "b", "happened": False})

    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "completed")]
    assert spoken(play.journal.state.context)[-3:] == ["hint", "hint", "Done."]


def test_an_agent_that_asks_is_not_asked_about_what_its_tool_has_seen() -> None:
    play = _sending(spec=ASKING, findings={"a": ("did_not", "")})

    assert play.steps[-1] == Idle()
    assert "it did not happen, and nothing of it was done. Send has looked." in _hints(play)[0]


def test_an_interrupt_ends_a_reply_that_waits_for_a_settlement_and_the_unknown_outcome_stays() -> None:
    play = _painting(spec=ASKING)
    play.tell("interrupt", {"message": "Leave it"})
    play.run()

    assert play.ends()[0][1] == "interrupted"
    assert [unknown_outcome.call_id for unknown_outcome in unresolved_outcomes(play.journal)] == ["a"]
    assert (blocking(play.journal), play.steps[-1]) == ([], Idle())


def test_a_word_that_comes_among_open_calls_waits_for_their_results() -> None:
    play = Play([calls("a Paint"), calls("b Paint", "c Look"), text("Done.")])
    _lost(play, "a")
    assert play.steps[-1] == Park("person")
    play.tell("resolve", {"call_id": "a", "happened": True})
    play.allow("b")
    play.run()

    said = spoken(play.journal.state.context)
    assert said[said.index("call b + call c") :] == ["call b + call c", "result b", "result c", "hint", "Done."]


def test_events_tell_of_looking_and_settling() -> None:
    play = _sending(findings={"a": ("unknown", "the outbox is away")})
    play.tell("resolve", {"call_id": "a", "happened": True, "by": "bo"})

    told = [event for event in EventReducer().catch_up(play.journal.log) if event.type == "CUSTOM"]

    assert [(event.name, event.tool_call_id) for event in told] == [("outcome_probed", "a"), ("outcome_resolved", "a")]
    assert told[0].value == {"finding": "unknown", "detail": "the outbox is away"}
    assert told[1].value == {"happened": True, "output": "", "by": "bo", "reason": ""}


def test_unknown_outcomes_survive_a_continue_as_new() -> None:
    for keeps in (False, True):
        play = _painting(keeps=keeps)
        play.continue_as_new()
        assert [unknown_outcome.call_id for unknown_outcome in unresolved_outcomes(play.journal)] == ["a"], keeps
        assert play.tell("resolve", {"call_id": "a", "happened": True}) == {"resolved": "a", "happened": True}


def test_a_session_keeps_a_bounded_number_of_unknown_outcomes_and_forgets_settled_ones_first() -> None:
    play = _painting()
    for number in range(100):
        name = f"old-{number}"
        play.journal.unknown_outcomes[name] = UnknownOutcome(
            call_id=name, tool="Paint", reply_id="r", input="{}", why="", at=0
        )
    play.tell("resolve", {"call_id": "old-7", "happened": True})
    play.journal.unknown_outcomes.pop("a")
    play._lines = iter([calls("z Paint"), text("Done.")])  # noqa: SLF001  the script goes on
    play.journal.requests.handled.clear()
    _lost(play, "z")

    assert len(play.journal.unknown_outcomes) == 100
    assert "old-7" not in play.journal.unknown_outcomes
    assert {"old-0", "z"} <= set(play.journal.unknown_outcomes)
