"""A session with a budget: what it puts aside, where it stands still or ends, and what goes on with more."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.decisions.budget_limits import attempts_paid
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.steps import Idle, Park, Think
from longhaul.agent.values.budget import NEW_ACCOUNT, Account, Budget, Price, Tariff
from longhaul.agent.values.conversation.messages import AssistantMsg, ErrorInfo, Msg, TextBlock, Usage, problem
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.views.session_views import BudgetStanding, row_of, standing
from tests.agent.play import SPEC, Play, calls, succeeded, text

ROOM = 100
"""Of output for each call. Nothing is in the context but a few words."""


def spec_of(**limits: Any) -> AgentSpec:
    config = ModelConfig(max_output_tokens=ROOM)
    return SPEC.model_copy(update={"budget": Budget.model_validate(limits), "llm_config": config})


def at_work(*lines: Any, spec: AgentSpec, **more: Any) -> Play:
    play = Play(lines, spec=spec, **more)
    play.say("Build")
    return play


def account(play: Play) -> Account:
    return play.journal.account or NEW_ACCOUNT


def known(play: Play) -> BudgetStanding:
    found = standing(play.journal)
    assert found is not None
    return found


def asked(play: Play) -> list[str]:
    question = account(play).question
    return [lack.name for lack in question.lacks] if question else []


ON = [calls("a Look"), calls("b Look"), calls("c Look"), text("Built.")]


def test_a_session_without_a_budget_has_no_entry_and_no_account_of_one() -> None:
    play = Play(ON)
    play.say("Build")

    assert play.run() == Idle()
    assert (play.journal.account, [kind for kind in play.kinds() if "budget" in kind]) == (None, [])
    assert standing(play.journal) is None


def test_each_call_is_reserved_before_it_and_settled_by_what_it_took() -> None:
    play = at_work(*ON, spec=spec_of(max_tokens=10_000))
    for _ in range(50):
        step = play.begin()
        if isinstance(step, Think):
            break
        if play.asked:
            play.complete()

    (aside,) = account(play).spending.reserved.values()
    assert ROOM < aside.tokens < ROOM + 100
    assert known(play).reserved["tokens"] == aside.tokens
    play.run()

    spending = account(play).spending
    assert (spending.spent.tokens, spending.spent.calls, spending.reserved) == (4 * 13, 4, {})
    assert known(play).left == {"tokens": 10_000 - 4 * 13}
    assert play.ends() == [("reply-of-r1", "completed")]


def test_what_is_spent_put_aside_and_left_is_said_in_lines() -> None:
    tariffs = {SPEC.model: Tariff(output_tokens=ROOM, price=Price(input=1_000, output=1_000))}
    play = at_work(*ON, spec=spec_of(max_cost=2, max_calls=9), tariffs=tariffs)
    play.run(hold=True)

    assert list(known(play).lines()) == [
        "budget: $0.0130 of $2.00 spent, $1.99 left",
        "budget: 1 call of 9 calls spent, 8 calls left",
    ]


@pytest.mark.parametrize(
    ("limits", "made"),
    [
        ({"max_tokens": 125}, 1),
        ({"max_cost": 0.000125}, 1),
        ({"max_calls": 3}, 3),
        ({"max_steps": 2}, 2),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_at_each_limit_the_reply_asks_and_goes_on_when_that_limit_is_raised(
    limits: dict[str, float], made: int
) -> None:
    tariffs = {SPEC.model: Tariff(output_tokens=ROOM, price=Price(input=1, output=1))}
    play = at_work(*ON, spec=spec_of(**limits), tariffs=tariffs)
    (name,) = (each.removeprefix("max_") for each in limits)

    assert play.run() == Park("person")
    assert (asked(play), row_of(play.journal).status, play.journal.spent.model_calls) == ([name], "waiting", made)
    assert known(play).asks
    assert problem(play.journal.state.context) == ""
    more = {name: 1 if name == "cost" else 5_000}
    answer = play.tell("budget", {"more": more, "by": "ana", "request_id": "x"})

    assert answer == {"changed": True, "already": False, "limits": {name: limits[f"max_{name}"] + more[name]}}
    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "completed")]


def test_the_time_of_a_reply_counts_and_the_time_that_it_waits_for_budget_does_not() -> None:
    play = at_work(*ON, spec=spec_of(max_seconds=60))
    play.run(hold=True)
    play.now += 61_000
    play.load = Load(at=play.now)
    play.end_call("a")

    assert play.run() == Park("person")
    assert asked(play) == ["seconds"]
    assert 61 < known(play).spent["seconds"] < 62
    play.now += 3_600_000
    play.tell("budget", {"more": {"seconds": 60}})
    play.load = Load(at=play.now)

    assert play.run() == Idle()
    assert 61 < known(play).spent["seconds"] < 62


def test_a_raise_that_is_sent_twice_is_one_and_one_that_does_not_do_is_asked_about_again() -> None:
    play = at_work(*ON, spec=spec_of(max_tokens=125))
    play.run()
    small = {"more": {"tokens": 5}, "request_id": "small"}

    assert play.tell("budget", small) == {"changed": True, "already": False, "limits": {"tokens": 130}}
    assert play.tell("budget", small) == {"changed": True, "already": True, "limits": {"tokens": 130}}
    assert play.run() == Park("person")
    assert play.kinds().count("budget_exhausted") == 2
    play.continue_as_new()

    assert play.tell("budget", small) == {"changed": True, "already": True, "limits": {"tokens": 130}}


def test_a_raise_is_known_again_for_as_long_as_ninety_nine_others_come_behind_it() -> None:
    play = at_work(*ON, spec=spec_of(max_tokens=125))
    play.run()

    def already(request: int) -> bool:
        answer = play.tell("budget", {"more": {"tokens": 1}, "request_id": f"more-{request}"})
        assert isinstance(answer, dict)
        return bool(answer["already"])

    assert not any(already(number) for number in range(100))
    assert already(0)
    assert not already(100)
    assert not already(0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"more": {"cost": 1}}, "more.cost: the budget has no limit of it; there is one of tokens"),
        (
            {"more": {"tokens": 10**15}},
            "more.max_tokens: Input should be less than or equal to 1000000000000000 (it is 1000000000010000)",
        ),
        ({"more": {"tokens": 0}}, "budget: more.tokens: Input should be greater than or equal to 1 (it is 0)"),
        ({"more": {}}, "say by how much it is to be raised in `more`, or `end` as stop or summarise: one of the two"),
        ({"more": {"tokens": 1}, "end": "stop"}, "say by how much it is to be raised in `more`, or `end`"),
        ({"end": "stop"}, "end: no reply waits for more budget, so none is to stop; use interrupt to end one"),
        ({"end": "beg"}, "budget: end: Input should be '', 'stop' or 'summarise' (it is 'beg')"),
    ],
)
def test_an_operation_that_can_t_be_changes_nothing_and_says_why(body: dict[str, Any], why: str) -> None:
    play = at_work(text("Built."), spec=spec_of(max_tokens=10_000))
    before = play.journal.account

    assert why in play.tell("budget", body)
    assert play.journal.account == before
    bare = Play()
    assert "has no budget" in bare.tell("budget", {"more": {"tokens": 1}})


def test_by_policy_a_reply_stops_and_says_so() -> None:
    play = at_work(*ON, spec=spec_of(max_calls=2, on_exhaustion="stop"))

    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "out_of_budget")]
    (ended,) = play.journal.requests.finished.values()
    assert ended.error is not None
    assert ended.error.type == "budget"
    assert "another call of a model: 2 calls of 2 calls, and the next call may take 1 call." in ended.error.message
    play.say("And now?", "r2")
    play.run()
    assert play.ends()[1:] == [("reply-of-r2", "out_of_budget")]
    assert play.journal.spent.model_calls == 2


def test_by_policy_room_is_kept_for_a_last_call_in_which_the_model_sums_up() -> None:
    play = at_work(*ON[:2], text("Half of it stands."), spec=spec_of(max_calls=3, on_exhaustion="summarise"))

    assert play.run() == Idle()
    assert [step.closing for step in play.steps if isinstance(step, Think)] == [False, False, True]
    assert play.ends() == [("reply-of-r1", "out_of_budget")]
    assert play.journal.state.context[-1].get_text_content() == "Half of it stands."
    assert "The budget of this session is spent" in str(play.journal.state.context[-2])
    assert account(play).spending.spent.calls == 3


def test_a_last_call_that_fails_ends_the_reply_all_the_same() -> None:
    gone = ErrorInfo(type="upstream", message="gone")
    play = at_work(*ON[:2], gone, spec=spec_of(max_calls=3, on_exhaustion="summarise"))

    assert play.run() == Idle()
    assert [why for _, why in play.ends()] in (["out_of_budget"], ["error"])
    assert len([step for step in play.steps if isinstance(step, Think)]) == 3


@pytest.mark.parametrize(("end", "calls_made"), [("stop", 2), ("summarise", 3)])
def test_a_person_who_is_asked_may_end_the_reply(end: str, calls_made: int) -> None:
    play = at_work(*ON[:2], text("So far."), spec=spec_of(max_calls=2))
    play.run()

    assert play.tell("budget", {"end": end, "by": "ana"}) == {"changed": True, "already": False, "limits": {"calls": 2}}
    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "out_of_budget")]
    assert account(play).spending.spent.calls == calls_made
    play.say("More", "r2")
    assert play.run() == Park("person")
    assert asked(play) == ["calls"]


def test_whoever_interrupts_a_reply_that_waits_for_budget_ends_it() -> None:
    play = at_work(*ON, spec=spec_of(max_calls=1))
    play.run()

    play.tell("interrupt")

    assert play.run() == Idle()
    assert (play.ends(), row_of(play.journal).status) == ([("reply-of-r1", "interrupted")], "idle")
    assert account(play).question is None


def test_what_waits_survives_a_continue_as_new_and_a_pause() -> None:
    play = at_work(*ON, spec=spec_of(max_calls=1))
    play.run()
    before = play.journal.account
    play.continue_as_new()

    assert play.journal.account == before
    assert play.run() == Park("person")
    play.tell("pause")
    play.tell("budget", {"more": {"calls": 9}})
    assert play.run() == Park("resume")
    play.tell("resume")
    assert play.run() == Idle()
    assert play.ends() == [("reply-of-r1", "completed")]


def lost(play: Play, entry: e.AnyEntry) -> Play:
    """The first model call ends with this entry."""
    while not isinstance(play.asked, Think):
        play.begin()
        if play.asked and not isinstance(play.asked, Think):
            play.complete()
    play.asked = None
    play.write(entry)
    return play


def test_an_attempt_that_nobody_heard_of_counts_as_estimated_and_is_called_doubtful() -> None:
    play = at_work(text("Built."), spec=spec_of(max_tokens=10_000))
    lost(play, e.BudgetReleased(lost=2))

    spending = account(play).spending
    assert spending.reserved == {}
    assert spending.spent == spending.doubtful
    assert 2 * ROOM < spending.doubtful.tokens < 2 * ROOM + 200
    assert (spending.doubtful.calls, known(play).doubtful["calls"]) == (2, 2)
    assert any(line.startswith("of that, of unknown outcome: ") for line in known(play).lines())
    play.run()
    assert account(play).spending.spent.tokens == spending.spent.tokens + 13


def test_what_an_answer_says_of_lost_attempts_counts_beside_its_usage() -> None:
    play = at_work(spec=spec_of(max_tokens=10_000))
    said = e.ModelSaid(message=_said(), lost_attempts=1)
    lost(play, said)

    spending = account(play).spending
    assert spending.doubtful.calls == 1
    assert spending.spent.tokens == spending.doubtful.tokens + 13


def test_a_reply_that_is_cut_short_in_its_call_leaves_one_unknown_outcome_and_nothing_aside() -> None:
    play = at_work(spec=spec_of(max_tokens=10_000))
    lost(play, e.InterruptAsked(reply_id="reply-of-r1"))
    play.run()

    spending = account(play).spending
    assert (spending.doubtful.calls, spending.reserved) == (1, {})


@pytest.mark.parametrize(("most", "attempts"), [(3, 3), (5_000, 1_000)])
def test_a_call_is_made_again_as_often_as_the_budget_does_for_it(most: int, attempts: int) -> None:
    play = at_work(text("Built."), spec=spec_of(max_calls=most))
    while not isinstance(play.begin(), Think):
        if play.asked:
            play.complete()

    assert attempts_paid(play.journal) == attempts
    assert attempts_paid(Play().journal) == 0


def test_a_compression_is_reserved_and_its_tokens_count() -> None:
    spec = spec_of(max_tokens=100_000)
    play = at_work(calls("a Look"), text("Built."), spec=spec, window=2_000, fixed_tokens=10)
    play.outcomes["a"] = [_long("a")]
    play.run()

    assert "compressed" in play.kinds()
    assert play.kinds().count("budget_reserved") == 3
    assert account(play).spending.reserved == {}


def test_judgements_of_calls_count() -> None:
    play = at_work(*ON, spec=spec_of(max_tokens=10_000))
    play.run(hold=True)
    spent = account(play).spending.spent
    play.write(e.CallsExamined(analysis={}, usage=Usage(input_tokens=7, output_tokens=2)))

    assert account(play).spending.spent.tokens == spent.tokens + 9


@pytest.mark.proves("X8")
@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(100, 2_000),
    wrote=st.integers(0, ROOM),
    turns=st.integers(0, 12),
    policy=st.sampled_from(["ask", "stop", "summarise"]),
    rolls=st.booleans(),
)
def test_no_more_is_spent_than_the_budget_allows(limit: int, wrote: int, turns: int, policy: str, rolls: bool) -> None:
    lines = [*(calls(f"c{turn} Look") for turn in range(turns)), text("Built.")]
    usage = Usage(input_tokens=5, output_tokens=wrote)
    play = at_work(*lines, spec=spec_of(max_tokens=limit, on_exhaustion=policy), usage=usage)
    play.run()
    if rolls:
        play.continue_as_new()
        play.run()

    spending = account(play).spending
    assert spending.spent.tokens == play.journal.spent.model_calls * (5 + wrote) <= limit
    assert spending.reserved == {}
    ended = [why for _, why in play.ends()]
    assert ended in ([], ["completed"], ["out_of_budget"])
    assert bool(asked(play)) == (ended == [])


def _said() -> Msg:
    return AssistantMsg("mason", [TextBlock(text="Built.")], usage=Usage(input_tokens=10, output_tokens=3))


def _long(call_id: str) -> e.ToolReturned:
    return succeeded(call_id, "Look", "stone " * 2_000)
