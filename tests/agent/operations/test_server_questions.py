"""What an MCP server asks a person in the midst of a call: it parks, and is answered, refused, denied, given up."""

from typing import Any

import pytest

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import next_due, reached
from longhaul.agent.steps import Act, Park
from longhaul.agent.values.conversation.messages import ServerAsked, ServerQuestion, example, in_words
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.views.event_types import AgentEvent
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.session_views import Waited, waits_ended
from tests.agent.play import RULES, SPEC, TOOLS, Play, calls, text

HOUR = 3_600_000
SERVED = "mcp__harbour__hire"
FIELDS = {
    "type": "object",
    "properties": {
        "berth": {"type": "string", "enum": ["north", "south"]},
        "feet": {"type": "number", "minimum": 6},
        "night": {"type": "boolean"},
        "flags": {"type": "array", "items": {"enum": ["red", "blue"]}},
    },
    "required": ["berth"],
    "additionalProperties": False,
}
BERTH = ServerAsked(server="harbour", questions={"berth": ServerQuestion(message="Which?", fields=FIELDS)}, state="s1")
SIGN = ServerAsked(server="harbour", questions={"sign": ServerQuestion(message="Sign.", url="https://harbour.example")})
BOTH = BERTH.model_copy(update={"questions": {**BERTH.questions, **SIGN.questions}})
NORTH = {"action": "accept", "content": {"berth": "north"}}


def asked(question: ServerAsked = BERTH, *more: ServerAsked, tool: str = "Paint", **permission: Any) -> Play:
    """A session whose call has run up to a question."""
    spec = SPEC.model_copy(update={"permission": PermissionContext(rules=RULES, **permission)})
    outcomes: list[Any] = [e.InputAsked(call_id="a", asked=one) for one in (question, *more)]
    tools = (*TOOLS, ToolDescriptor(name=SERVED))
    play = Play([calls(f"a {tool}"), text("Done.")], spec=spec, outcomes={"a": outcomes}, tools=tools)
    play.say("Go")
    play.run()
    play.allow("a")
    play.run()
    return play


def answer(play: Play, output: Any, **more: Any) -> dict[str, Any] | str:
    return play.tell("external_result", {"results": [{"id": "a", "output": output, **more}], "by": "ana"})


def told(play: Play) -> list[AgentEvent]:
    return EventReducer(play.events_before).catch_up(play.journal.log)


def test_a_question_parks_the_session_and_its_answer_makes_the_call_again() -> None:
    play = asked()
    assert play.steps[-1] == Park("outside")
    assert [call.waits_for for call in play.journal.current.waiting()] == ["outside"]
    play.continue_as_new()
    play.now += 24 * HOUR

    assert answer(play, NORTH) == {"received": ["a"]}
    play.run(hold=True)
    again = play.journal.open_calls["a"].asked
    play.run()

    assert [step for step in play.steps if isinstance(step, Act)] == [Act(("a",)), Act(("a",))]
    assert again is not None
    assert (again.state, again.answers, again.waits) == ("s1", {"berth": NORTH}, False)
    assert play.results() == [("a", "success", "done")]
    assert [entry.by for entry in play.journal.log if isinstance(entry, e.InputAnswered)] == ["ana"]


def test_people_are_told_what_is_asked_and_by_which_server() -> None:
    play = asked()
    answer(play, NORTH)
    play.run()
    events = [event for event in told(play) if "EXTERNAL" in event.type]

    assert [event.type for event in events] == ["REQUIRE_EXTERNAL_EXECUTION", "EXTERNAL_EXECUTION_RESULT"]
    assert events[0].value["asked_by"] == "harbour"
    words = events[0].value["previews"]["a"]["reason"]
    assert words == in_words(BERTH)
    assert words.startswith('The MCP server \'harbour\' asks: Which? (berth: string, one of ["north", "south"]; feet: ')
    assert "night: boolean, may be left out" in words
    assert words.endswith("give no passwords.")


@pytest.mark.parametrize(
    ("question", "given", "taken"),
    [
        (BERTH, '{"action": "accept", "content": {"berth": "south", "feet": 7, "night": true}}', "accept"),
        (BERTH, {"berth": {"action": "accept", "content": {"berth": "south", "flags": ["red"]}}}, "accept"),
        (BERTH, {"action": "decline"}, "decline"),
        (BERTH, " decline\n", "decline"),
        (BOTH, "cancel", "cancel"),
        (SIGN, "accept", "accept"),
    ],
)
def test_an_answer_is_json_or_a_word(question: ServerAsked, given: object, taken: str) -> None:
    play = asked(question)

    assert answer(play, given) == {"received": ["a"]}
    answered = play.journal.open_calls["a"].asked
    assert answered is not None
    assert {key: one["action"] for key, one in answered.answers.items()} == dict.fromkeys(question.questions, taken)


@pytest.mark.parametrize(
    ("question", "given", "why"),
    [
        (BERTH, "north", '\'north\' is no answer to \'harbour\'; write {"action": "accept", "content": {"berth"'),
        (BERTH, "accept", "'berth' is missing: give"),
        (
            BERTH,
            {"action": "accept", "content": {"berth": "east"}},
            'is the text "east": give one of "north", "south"',
        ),
        (BERTH, {"action": "accept", "content": {"berth": 4}}, "'berth' is 4, but has to be text"),
        (BERTH, {"action": "accept", "content": {"berth": "north", "feet": 5}}, "'feet' is 5: give 6 or more"),
        (
            BERTH,
            {"action": "accept", "content": {"berth": "north", "night": "yes"}},
            "'night' is the text \"yes\", but has to be true or false",
        ),
        (BERTH, {"action": "accept", "content": {"berth": "north", "flags": ["green"]}}, "'flags[0]' is the text"),
        (
            BERTH,
            {"action": "accept", "content": {"berth": "north", "password": "x"}},
            "'password' is not known here",
        ),
        (
            BERTH,
            {"action": "accept", "content": {"berth": "north", "feet": float("nan")}},
            "'feet' is nan: give 6",
        ),
        (BERTH, {"action": "maybe"}, "action: 'maybe' is none of accept, decline, cancel"),
        (BERTH, {"action": "decline", "content": {}}, "content: there is nothing to fill in"),
        (BERTH, {"action": "accept", "form": {}}, "'form' is not known here"),
        (BERTH, [1], "[1] is no answer"),
        (BOTH, {"berth": NORTH}, "'sign' has no answer"),
        (BOTH, {"berth": NORTH, "sign": "accept"}, "sign: 'accept' is no answer"),
        (BOTH, NORTH, "'action' was not asked; answer berth, sign"),
        (SIGN, NORTH, "there is nothing to fill in"),
    ],
)
def test_a_wrong_answer_names_field_and_value(question: ServerAsked, given: object, why: str) -> None:
    play = asked(question)

    refusal = answer(play, given)

    assert why in str(refusal)
    assert [call.waits_for for call in play.journal.current.waiting()] == ["outside"]


@pytest.mark.parametrize("how", [{"partial": True}, {"state": "error"}])
def test_an_answer_is_neither_a_piece_nor_a_failure(how: dict[str, Any]) -> None:
    assert "waits for an answer to 'harbour', whole and without an error" in str(answer(asked(), "decline", **how))


def test_an_answer_may_lead_to_the_next_question() -> None:
    second = SIGN.model_copy(update={"round": 2})
    play = asked(BERTH, second)
    answer(play, NORTH)
    assert play.run() == Park("outside")
    answer(play, "accept")
    play.run()

    assert play.results() == [("a", "success", "done")]


def test_a_call_that_begins_again_has_all_answers_so_far() -> None:
    first = BERTH.model_copy(update={"from_start": True})
    play = asked(first)
    answer(play, NORTH)
    answered = play.journal.open_calls["a"].asked
    assert answered is not None
    play.outcomes["a"] = [
        e.InputAsked(call_id="a", asked=SIGN.model_copy(update={"from_start": True, "answers": answered.answers}))
    ]
    play.run()
    answer(play, "accept")
    both = play.journal.open_calls["a"].asked

    assert both is not None
    assert both.answers == {"berth": NORTH, "sign": {"action": "accept"}}


def test_a_rule_that_came_while_a_person_thought_denies_the_call() -> None:
    play = asked()
    play.tell("rules", {"add": [{"tool_name": "Paint", "behavior": "deny"}], "by": "ben"})
    answer(play, NORTH)
    play.run()

    ((_, state, words),) = play.results()
    assert state == "denied"
    assert "is not permitted and did not run" in words
    assert [step for step in play.steps if isinstance(step, Act)] == [Act(("a",))]


@pytest.mark.parametrize("how", ["an approver", "a state"])
def test_other_arguments_make_another_call_that_no_answer_is_for(how: str) -> None:
    """Nor does its server get back what it said of the call as it was."""
    play, red = asked(), '{"colour":"red"}'
    if how == "an approver":
        play.tell("rules", {"add": [{"tool_name": "Paint", "behavior": "ask"}]})
        answer(play, NORTH)
        assert play.run() == Park("person")
        play.allow("a", input=red)
    else:
        state = play.journal.state.model_dump(mode="json")
        state["context"][-1]["content"][0]["input"] = red
        play.tell("replace_state", {"state": state})
        assert play.run() == Park("person")
        play.allow("a")
    play.run(hold=True)
    call = play.journal.open_calls["a"]

    assert play.steps.count(Act(("a",))) == 2
    assert (call.input, call.asked) == (red, None)


def test_an_interrupt_ends_a_call_whose_question_has_no_answer() -> None:
    play = asked()
    play.tell("interrupt")
    play.run()

    ((_, state, words),) = play.results()
    assert state == "interrupted"
    assert words.startswith("Cut short. The MCP server 'harbour' had asked a person")


def test_a_question_that_nobody_answers_in_time_ends_the_call() -> None:
    play = asked(deadline=Deadlines.model_validate({"expire_after": 3_600}), tool=SERVED)
    play.now = next_due(play.journal) or 0
    due = reached(play.journal, play.now)
    play.write(e.DeadlineReached(due=due))
    play.run()

    ((_, state, words),) = play.results()
    assert (state, due[0].server) == ("error", "harbour")
    assert words.startswith("The MCP server 'harbour' had asked a person")
    assert "Nobody answered by 2025-11-25T13:00:" in words
    ended = [event for event in told(play) if event.type == "TOOL_RESULT_TEXT_DELTA"]
    assert ended[-1].delta == words
    late = str(answer(play, NORTH))
    assert "'a' expired at 2025-11-25T13:00:" in late
    assert late.endswith("; 'harbour' has no answer, its call has ended with that, and the agent knows it)")


def test_the_wait_for_an_answer_is_measured() -> None:
    play = asked()
    started = play.journal.open_calls["a"].asked_at

    ended = waits_ended(play.journal, e.InputAnswered(call_id="a", answers="{}"), started + 2_000)

    assert ended == [Waited("Paint", "outside", "answered", 2.0)]


def test_what_is_suggested_is_an_answer_with_its_keys() -> None:
    assert example(SIGN) == '{"action": "accept"}'
    assert example(BOTH) == (
        '{"berth": {"action": "accept", "content": {"berth": "…", "feet": "…", "night": "…", "flags": "…"}}, '
        '"sign": {"action": "accept"}}'
    )


def test_an_answer_has_at_most_20000_bytes() -> None:
    free = ServerQuestion(message="Who?", fields={"type": "object", "properties": {"name": {"type": "string"}}})
    play = asked(ServerAsked(server="harbour", questions={"berth": free}))

    refused = answer(play, {"action": "accept", "content": {"name": "n" * 20_001}})

    assert str(refused).endswith("and the most is 20,000")
