"""Budgets over a tree: what is put aside for a sub-agent before it begins, and what its end settles."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import lost
from longhaul.agent.steps import Idle, Park
from longhaul.agent.values.budget import NEW_ACCOUNT, Account, Amount, Budget
from longhaul.agent.values.conversation.messages import ContentBlock, ToolCallBlock, Usage
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig
from longhaul.agent.views.session_views import standing
from tests.agent.family import ABOVE, GLAZIER, HOUSE, Family, tasks
from tests.agent.play import text

ROOM = ModelConfig(max_output_tokens=100)


def house(glazier: dict[str, Any] | None = None, **limits: Any) -> AgentSpec:
    own = GLAZIER.model_copy(update={"budget": None if glazier is None else Budget.model_validate(glazier)})
    agents = {**HOUSE.agents, "glazier": own}
    budget = Budget.model_validate(limits)
    return HOUSE.model_copy(update={"budget": budget, "llm_config": ROOM, "agents": agents})


def started(*pairs: str, spec: AgentSpec) -> Family:
    play = Family([tasks(*pairs), text("All set.")], spec=spec)
    play.say("Build")
    play.run()
    return play


def account(play: Family) -> Account:
    return play.journal.account or NEW_ACCOUNT


def limits(play: Family, call_id: str) -> dict[str, float]:
    budget = play.started[call_id].spec.budget
    return budget.told() if budget else {}


def aside(play: Family) -> dict[str, int]:
    return {key: amount.calls for key, amount in account(play).spending.reserved.items()}


def test_what_nobody_says_anything_of_is_shared_evenly_with_the_session_itself() -> None:
    play = started("a glazier", "b tiler", spec=house(max_calls=10, max_tokens=10_000, max_steps=31))

    assert aside(play) == {"sub-agent a": 3, "sub-agent b": 3}
    assert limits(play, "a") == {"calls": 3, "tokens": 3_329, "steps": 10}
    assert play.started["a"].parent.allotted == ("tokens", "calls", "steps")


def test_an_agent_s_own_limits_hold_as_far_as_there_is_so_much_left() -> None:
    frugal = started("a glazier", spec=house({"max_calls": 4, "max_seconds": 60}, max_calls=10))
    greedy = started("a glazier", spec=house({"max_calls": 40}, max_calls=10))

    assert limits(frugal, "a") == {"calls": 4, "seconds": 60}
    assert limits(greedy, "a") == {"calls": 9}


def test_its_end_settles_what_it_spent_and_the_rest_comes_back() -> None:
    play = started("a glazier", spec=house({"max_calls": 6}, max_calls=10))

    spent = {"tokens": 70, "calls": 3, "steps": 2}
    play.hear_of("a", "Glazed.", spent=spent, doubtful={"tokens": 20, "calls": 1})
    play.hear_of("a", "Glazed.", spent=spent)
    assert play.run() == Idle()

    spending = account(play).spending
    assert (spending.spent.calls, spending.spent.tokens, spending.doubtful.calls) == (5, 13 + 70 + 13, 1)
    assert spending.reserved == {}


def test_of_one_that_is_lost_all_that_was_put_aside_is_of_unknown_outcome() -> None:
    play = started("a glazier", spec=house({"max_calls": 6}, max_calls=10))

    for entry in lost(play.journal, play.journal.children["a"], "terminated"):
        play.write(entry)

    assert account(play).spending.doubtful == Amount(calls=6)
    assert account(play).spending.spent.calls == 7
    assert aside(play) == {}


def test_one_that_could_not_be_started_leaves_nothing_aside() -> None:
    play = Family([tasks("a glazier"), text("Then not.")], spec=house(max_calls=10))
    play.say("Build")
    play.starting = True
    play.run(hold=True)
    assert aside(play) == {"sub-agent a": 5}

    play.outcomes["a"] = []
    play.running.clear()
    result = e.ToolReturned.model_validate({"result": {"id": "a", "name": "Agent", "output": "no", "state": "error"}})
    play.write(result)
    play.run()

    assert aside(play) == {}
    assert play.ends() == [("reply-of-r1", "completed")]


def test_where_nothing_is_left_for_one_the_reply_asks_and_goes_on_with_more() -> None:
    play = started("a glazier", "b glazier", spec=house({"max_calls": 9}, max_calls=10))

    assert list(play.started) == []
    assert play.run() == Park("person")
    assert account(play).question is not None
    play.continue_as_new()
    play.tell("budget", {"more": {"calls": 5}})
    play.run()

    assert limits(play, "b") == {"calls": 5}


@pytest.mark.parametrize(("spent", "goes_on"), [(1, True), (3, False)], ids=["enough comes back", "nothing comes back"])
def test_a_reply_waits_no_more_when_what_a_sub_agent_leaves_does_for_it(spent: int, *, goes_on: bool) -> None:
    given = {"agent": "glazier", "task": "glaze", "run_in_background": True}
    begins: list[ContentBlock] = [ToolCallBlock(id="a", name="Agent", input=json.dumps(given))]
    spec = house({"max_calls": 3}, max_calls=5)
    play = Family([begins, text("I wait."), text("Done.")], spec=spec)
    play.say("Build", "r1")
    play.run()
    play.say("And the roof?", "r2")
    assert play.run() == Park("person")

    play.hear_of("a", "Glazed.", spent={"calls": spent})
    play.run()

    assert (account(play).question is None) is goes_on
    assert (("reply-of-r2", "completed") in play.ends()) is goes_on


@pytest.mark.parametrize("policy", ["stop", "summarise"])
def test_by_policy_one_for_which_nothing_is_left_is_not_started_and_the_model_reads_why(policy: str) -> None:
    play = started("a glazier", "b glazier", spec=house({"max_calls": 9}, max_calls=10, on_exhaustion=policy))

    told = {call_id: said for call_id, _, said in play.results()}
    assert list(play.started) == ["a"]
    assert "the budget of this session does not do for a sub-agent: " in told["b"]


def test_one_at_work_is_given_more_of_what_is_left_and_hears_of_it_once() -> None:
    play = started("a glazier", spec=house({"max_calls": 4}, max_calls=10))
    more = {"more": {"calls": 5}, "child": "a", "request_id": "x"}

    assert play.tell("budget", more) == {"changed": True, "already": False, "limits": {"calls": 10}}
    assert play.tell("budget", more) == {"changed": True, "already": True, "limits": {"calls": 10}}
    play.run()
    play.continue_as_new()
    play.run()

    assert play.passed_on == [("budget", ("a",))]
    assert aside(play) == {"sub-agent a": 9}
    why = play.tell("budget", {"more": {"calls": 1}, "child": "a"})
    assert why == "more.calls: 0 calls of this session's own budget is left; raise that first"
    assert "no sub-agent with the task 'z'" in play.tell("budget", {"more": {"calls": 1}, "child": "z"})


def below(**limits: Any) -> Family:
    """A sub-agent for whose calls something is put aside above."""
    spec = HOUSE.model_copy(update={"budget": Budget.model_validate(limits), "llm_config": ROOM})
    return Family([text("Here.")] * 3, spec=spec, parent=ABOVE.model_copy(update={"allotted": ("calls",)}))


def test_a_sub_agent_s_own_share_is_raised_where_it_was_put_aside() -> None:
    play = below(max_calls=2, max_tokens=10_000)
    play.say("Look", request_id="t1")

    refused = play.tell("budget", {"more": {"calls": 1}})
    assert refused == (
        "more.calls: what this sub-agent may spend is put aside by the session 'hall'; send it there, with child='t1'"
    )
    more_tokens = play.tell("budget", {"more": {"tokens": 1}})
    assert more_tokens == {"changed": True, "already": False, "limits": {"tokens": 10_001, "calls": 2}}
    raised = play.tell("budget", {"more": {"calls": 1}, "allotted": True, "request_id": "t1-9"})
    assert raised == {"changed": True, "already": False, "limits": {"tokens": 10_001, "calls": 3}}


def test_a_sub_agent_says_what_it_spent_and_what_it_gave_back_it_can_t_spend() -> None:
    play = below(max_calls=5)
    play.say("Look", request_id="t1")
    play.run()

    (told,) = play.reports
    assert told is not None
    assert told.spent == Amount(tokens=13, calls=1, steps=1)
    found = standing(play.journal)
    assert found is not None
    assert (found.spent["calls"], found.left["calls"]) == (1, 0)
    play.say("And more", request_id="r2")
    assert play.run() == Park("person")
    play.tell("budget", {"more": {"calls": 1}})
    assert play.run() == Idle()


@pytest.mark.proves("X8")
@settings(max_examples=40, deadline=None)
@given(
    limit=st.integers(2, 40),
    own=st.none() | st.integers(1, 30),
    used=st.lists(st.integers(0, 40), min_size=3, max_size=3),
    ends=st.lists(st.sampled_from(["told", "lost", "never"]), min_size=3, max_size=3),
)
def test_no_tree_spends_more_than_its_root_allows(
    limit: int, own: int | None, used: list[int], ends: list[str]
) -> None:
    table = None if own is None else {"max_calls": own}
    ids = ("a", "b", "c")
    spec = house(table, max_calls=limit, on_exhaustion="stop")
    play = Family([tasks(*(f"{one} glazier" for one in ids)), text("All set.")], spec=spec, usage=Usage())
    play.say("Build")
    play.run()
    spent = 0
    for call_id, wish, end in zip(ids, used, ends, strict=True):
        if call_id not in play.started:
            continue
        allowed = int(limits(play, call_id)["calls"])
        spent += min(wish, allowed) if end == "told" else 0 if end == "never" else allowed
        if end == "told":
            play.hear_of(call_id, "Glazed.", spent={"calls": min(wish, allowed)})
        elif end == "lost":
            for entry in lost(play.journal, play.journal.children[call_id], "terminated"):
                play.write(entry)
        play.continue_as_new()
        play.run()

    own_calls = play.journal.spent.model_calls
    assert account(play).spending.spent.calls == own_calls + spent
    assert account(play).spending.held.calls <= limit
