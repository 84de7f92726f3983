"""Calls with all that they answered, and the end of what failed, as people see them."""

from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Msg,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import CallRun, Effect, with_ran
from longhaul.starter.cli.terminal.past_sessions import of_turns
from longhaul.starter.render import calls_in, end_of, how_it_ran, in_full

RUNS = [(Effect.READ, 0.01), (Effect.IDEMPOTENT, 125.9), (Effect.ONCE, None)]


def called(call_id: str, command: str = "ls") -> Msg:
    return AssistantMsg("tern", [ToolCallBlock(id=call_id, name="Bash", input=f'{{"command": "{command}"}}')], id="r-1")


def answered(call_id: str, output: str, state: ToolResultState = ToolResultState.SUCCESS, diff: str = "") -> Msg:
    block = ToolResultBlock(
        id=call_id, name="Bash", output=output, state=state, metadata={"diff": diff} if diff else {}
    )
    return AssistantMsg("tern", [block], id="r-1")


def test_calls_come_in_their_order_with_what_they_answered() -> None:
    made = calls_in([called("a"), called("b"), answered("b", "two"), answered("z", "of an earlier call")])

    assert [(call.call_id, call.state, call.output) for call in made] == [
        ("a", None, ""),
        ("b", ToolResultState.SUCCESS, "two"),
        ("z", ToolResultState.SUCCESS, "of an earlier call"),
    ]


def test_a_call_in_full_leaves_nothing_out_and_steers_no_terminal() -> None:
    output = "".join(f"line {number}\n" for number in range(500)) + "\x1b[2Jend"

    (call,) = calls_in([called("a", "make"), answered("a", output, ToolResultState.ERROR, "--- a\n+++ a")])
    shown = "\n".join(line.plain for line in in_full(call))

    assert shown.startswith("✗ Bash  a\n  command\n  │ make\n  result\n  │ line 0\n")
    assert "  │ line 499\n  │ \\x1b[2Jend\n  --- a\n  +++ a" in shown


def test_a_call_without_a_result_says_so() -> None:
    (call,) = calls_in([called("a")])

    assert [line.plain for line in in_full(call)][-1] == "  has no result yet"


def test_the_end_of_a_result_is_what_was_not_shown_yet() -> None:
    lines = "first\n\nsecond\nthird\nfourth\n"

    assert ([line.plain for line in end_of(lines, 2)[0]], end_of(lines, 2)[1]) == (["  │ third", "  │ fourth"], 1)
    assert end_of(lines, 2, shown=4) == ([], 0)
    assert end_of("only\n", 9) == ([], 0)


def test_the_last_two_turns_are_shown_again_and_nothing_of_a_reply_that_is_followed() -> None:
    said = [
        UserMsg("ana", "one"),
        AssistantMsg("tern", "1", id="r-1"),
        UserMsg("ana", "two"),
        AssistantMsg("tern", "2", id="r-2"),
        UserMsg("ana", "three"),
        AssistantMsg("tern", "3", id="r-3"),
    ]

    assert [message.get_text_content() for message in of_turns(said, "")] == ["two", "2", "three", "3"]
    assert [message.get_text_content() for message in of_turns(said, "r-3")] == ["two", "2", "three"]
    assert of_turns([], "") == []


def test_a_call_tells_how_it_ran_where_a_worker_ran_it() -> None:
    result = ToolResultBlock(id="a", name="Bash", output="")
    told = [with_ran(result, CallRun(effect=effect, seconds=took)) for effect, took in RUNS]

    said = ["only reads, under 0.1 s", "runs again if a worker dies, 2 min 5 s", "runs at most once"]
    assert [how_it_ran(one) for one in told] == said
    assert how_it_ran(result) == ""
    assert how_it_ran(result.model_copy(update={"metadata": {"ran": {"effect": "fast"}}})) == ""
    (call,) = calls_in([called("a"), AssistantMsg("tern", [told[0]], id="r-1")])
    assert next(in_full(call)).plain == "✓ Bash  a  only reads, under 0.1 s"
