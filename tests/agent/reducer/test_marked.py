"""Secrets in what was written: the journal shows marks, and keeps what runs out of all that is shown."""

from longhaul.agent import entries as e
from longhaul.agent.incarnation.history import History
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import Msg, TextBlock
from longhaul.agent.views.events import EventReducer
from tests.agent.play import Play, asking, text

MARKED, RUNS = '{"colour": "[secret RED]"}', '{"colour": "4711-crimson"}'


def said(play: Play, **more: object) -> e.ModelSaid:
    """The newest answer as recorded, with this beside."""
    entry = next(entry for entry in reversed(play.journal.log) if isinstance(entry, e.ModelSaid))
    return entry.model_copy(update=more)


def everything_shown(play: Play) -> str:
    events = [event.model_dump_json() for event in EventReducer().catch_up(play.journal.log)]
    return play.journal.state.model_dump_json() + "".join(events)


def test_what_runs_is_kept_until_there_is_a_result_and_is_no_part_of_the_state() -> None:
    play = asking("a Paint")
    other = Play([])
    other.say("Paint")
    for entry in play.journal.log[other.journal.seq :]:
        same = isinstance(entry, e.ModelSaid)
        other.journal.take(said(play, unmarked={"a": RUNS}) if same else entry)

    assert other.journal.calls.unmarked == {"a": RUNS}
    assert "crimson" not in everything_shown(other)

    other.deny("a")

    assert other.journal.calls.unmarked == {}


def test_an_edit_is_shown_when_a_worker_has_looked_at_it() -> None:
    play = asking("a Paint")
    play.allow("a", input={"colour": "4711-crimson"})
    call = play.journal.current.calls["a"]
    before = call.shown().input, everything_shown(play).count("crimson")

    play.write(e.CallsExamined(analysis={"a": CallAnalysis()}, marked={"a": MARKED}))

    assert (before[0], call.shown().input) == ("{}", MARKED)
    assert play.journal.calls.unmarked == {"a": RUNS}
    assert "crimson" not in everything_shown(play)
    told = [event.value for event in EventReducer().catch_up(play.journal.log) if event.name == "arguments_edited"]
    assert told == [{"input": MARKED}]


def test_a_message_is_replaced_wherever_it_is_held() -> None:
    play = Play([text("I see.")])
    play.say("The key is 4711-crimson.")
    play.run()
    again = Play([])
    again.say("The key is 4711-crimson.")
    shown = Msg(name="user", role="user", content=(TextBlock(text="The key is [secret RED]."),))
    for entry in play.journal.log[again.journal.seq :]:
        same = isinstance(entry, e.ModelSaid)
        again.journal.take(said(play, marked={0: shown, 17: shown}) if same else entry)

    first = again.journal.context.transcript[0]
    assert first.get_text_content() == "The key is [secret RED]."
    assert (first.id, first.text_length) == (play.journal.context.transcript[0].id, shown.text_length)
    assert again.journal.state.context[0] == first
    written_down = [message for _, message in History().take_all(again.journal.log)]
    assert written_down == again.journal.context.transcript
    assert "crimson" not in "".join(entry.model_dump_json() for entry in again.journal.log)
