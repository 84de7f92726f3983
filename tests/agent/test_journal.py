"""The journal: what each entry does to it, and what a continue-as-new carries."""

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.call_rulings import with_own_call_ids
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.request_state import follow_up_id
from longhaul.agent.values.conversation.messages import AssistantMsg, ErrorInfo, ToolCallBlock, UserMsg
from tests.agent.play import NOON, SPEC, Play, calls, succeeded, text

OPENED = e.SessionOpened(seq=1, at=NOON, session_id="wall-7", spec=SPEC)


def test_a_record_begins_with_the_opening() -> None:
    journal = Journal.of([OPENED])

    assert (journal.state.session_id, journal.state.user_id, journal.state.agent) == ("wall-7", None, "mason")
    assert [rule.tool_name for rule in journal.state.permission_context.rules] == ["Order", "Demolish"]
    assert journal.state.permission_context.mode is SPEC.permission.mode
    assert journal.seq == 1


def test_a_record_that_begins_with_anything_else_is_refused() -> None:
    with pytest.raises(ValueError, match="the first entry of a session is 'opened', not 'observed'"):
        Journal.of([e.Observed(seq=1, messages=(UserMsg("ana", "Hi"),))])


def test_what_needs_a_reply_is_refused_when_there_is_none() -> None:
    with pytest.raises(ValueError, match="needs a reply that is being made, and there is none"):
        Journal.of([OPENED]).write(e.ModelFailed(model="m", error=_error()), NOON)


def _error() -> ErrorInfo:
    return ErrorInfo(type="upstream", message="gone")


@pytest.mark.proves("D7")
def test_each_entry_gets_the_next_number_and_its_time() -> None:
    journal = Journal.of([OPENED])

    journal.write(e.Observed(messages=(UserMsg("ana", "Hi"),)), NOON + 5)
    journal.write(e.Observed(messages=(UserMsg("ana", "Ho"), UserMsg("ana", "Hu"))), NOON + 9)

    assert [(entry.seq, entry.at - NOON) for entry in journal.log] == [(1, 0), (2, 5), (3, 9)]
    assert [message.id for message in journal.state.context] == ["m2.0", "m3.0", "m3.1"]


def test_only_the_newest_request_ids_are_remembered() -> None:
    play = Play()
    for number in range(1_003):
        play.write(e.RequestAccepted(request_id=f"r{number}", reply_id=f"R{number}", body_digest="d"))

    assert len(play.journal.requests.handled) == 1_000
    assert next(iter(play.journal.requests.handled)) == "r3"


def test_only_the_newest_ends_are_remembered() -> None:
    play = Play(text("ok") for _ in range(1_002))
    for number in range(1_002):
        play.say("Go", f"r{number}")
        play.run()

    assert len(play.journal.requests.finished) == 1_000
    assert next(iter(play.journal.requests.finished)) == "reply-of-r2"


def test_tools_that_did_not_change_are_kept() -> None:
    play = Play([text("One."), text("Two.")])
    play.say("Go", "r1")
    play.run()
    play.say("Go on", "r2")
    play.run()

    prepared = [entry for entry in play.journal.log if isinstance(entry, e.Prepared)]
    assert [entry.tools is None for entry in prepared] == [False, True]
    assert "Look" in play.journal.provided.tools


def test_an_approval_within_which_facts_are_missing_is_looked_at_again() -> None:
    play = Play([calls("a Paint")])
    play.say("Go")
    for _ in range(2):
        play.begin()
        play.complete() if play.asked else None
    message = AssistantMsg("mason", calls("z Look"))
    play.asked = None
    play.journal = Journal.of(play.journal.log[:4])
    play.write(e.ModelSaid(message=message))

    assert play.journal.reply is not None
    assert play.journal.reply.calls["z"].analysis_stale


def test_findings_about_a_call_that_is_closed_are_ignored() -> None:
    play = Play([calls("a Paint")])
    play.say("Go")
    play.run()

    play.write(e.CallsExamined(analysis={"gone": CallAnalysis(cwd="/x")}))

    assert play.journal.reply is not None
    assert list(play.journal.reply.calls) == ["a"]


def test_a_message_with_a_cached_prefix_that_fits_moves_the_cached_prefix() -> None:
    play = Play([text("Forty.")])
    play.say("How many?")
    play.run()

    assert play.journal.context.cached_prefix.length == 2
    assert play.journal.context.cached_prefix.digest != ""


def test_the_follow_up_of_a_follow_up_is_no_longer_than_the_first() -> None:
    assert follow_up_id(follow_up_id("abc", 7), 19) == "abc.19"


def _said(*ids: str) -> e.ModelSaid:
    blocks = [ToolCallBlock(id=call_id, name="Look", input="{}") for call_id in ids]
    analysis = {call_id: CallAnalysis(cwd=f"/{call_id}") for call_id in ids}
    return e.ModelSaid(
        message=AssistantMsg("mason", blocks), digest="d", context_digest="c", context_length=3, analysis=analysis
    )


def _ids(said: e.ModelSaid) -> list[str]:
    return [call.id for call in said.message.get_tool_calls()]


def test_unique_call_ids_are_left_alone() -> None:
    said = _said("a", "b")

    assert with_own_call_ids(said, Journal.of([OPENED])) is said


def test_a_changed_message_travels_inline_because_its_digest_no_longer_holds() -> None:
    own = with_own_call_ids(_said("a", "a", ""), Journal.of([OPENED]))

    assert _ids(own) == ["a", "a-2-1", "call-2-2"]
    assert (own.digest, own.context_digest, own.context_length) == ("", "", 0)
    assert own.analysis["call-2-2"] == CallAnalysis(cwd="/")
    assert "a-2-1" not in own.analysis


def test_an_id_used_before_in_the_session_is_replaced_and_keeps_its_findings() -> None:
    play = Play([calls("a Look")])
    play.say("Go")
    play.run()

    own = with_own_call_ids(_said("a"), play.journal)

    (call_id,) = _ids(own)
    assert call_id.startswith("a-")
    assert own.analysis[call_id] == CallAnalysis(cwd="/a")


def test_a_model_that_guesses_the_replacement_id_gets_another() -> None:
    own = with_own_call_ids(_said("a-2-2", "a", "a"), Journal.of([OPENED]))

    assert len(set(_ids(own))) == 3


def test_a_result_that_moved_the_folder_makes_the_findings_about_open_calls_old() -> None:
    play = Play([calls("a Look", "b Measure", "c Paint")])
    play.say("Go")
    play.run(hold=True)
    play.outcomes["a"] = [succeeded("a", "Look", cwd="/elsewhere")]
    play.end_call("a")

    assert play.journal.reply is not None
    assert [play.journal.reply.calls[key].analysis_stale for key in "bc"] == [True, True]
