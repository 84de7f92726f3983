"""Bounds by their numbers: so many are taken, and one more is not. Nothing here is read from the constants."""

import ast
import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import ValidationError

from longhaul.agent import entries as e
from longhaul.agent.decisions import background_commands
from longhaul.agent.decisions.continue_as_new import Load, continue_as_new, history_is_long
from longhaul.agent.decisions.model_turn import replaced_by
from longhaul.agent.decisions.session_tools.plan_tools import PLAN_EXIT_TOOL
from longhaul.agent.entries import cut
from longhaul.agent.incarnation.history import boundary_of
from longhaul.agent.incarnation.imported_state import read_state
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.preview import argument_parts, brief, preview
from longhaul.agent.permission.rulebook import BadRule, check_rule, id_of
from longhaul.agent.plain.errors import ImportProblem
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.reducer.session_state import forget
from longhaul.agent.reducer.synthetic_results import cancelled_outside
from longhaul.agent.steps import Checkpoint, ContinueAsNew, Step
from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    ErrorInfo,
    ToolCallBlock,
    ToolResultBlock,
    UserMsg,
    outside_tokens,
)
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.deadlines import Deadline
from longhaul.agent.values.permission import PermissionRule
from longhaul.agent.values.spec.knowledge import Knowledge
from longhaul.agent.values.stuck_detection import StuckConfig, Watch, with_call
from tests.agent.play import Play, calls, text
from tests.codebase.syntax import tree_of

CALL = ToolCallBlock(id="a", name="Order", input="{}")
NUMBERS_OF_VERSIONS = range(10)


def imported(module: str, name: str) -> object:
    with suppress(ImportError):
        return import_module(f"{module}.{name}")
    return getattr(import_module(module), name, None)


def bounds_read() -> Iterator[str]:
    """By name, or from the module that has it."""
    for path in Path(__file__).parent.rglob("*.py"):
        nodes = [*ast.walk(tree_of(path))]
        values = {
            alias.asname or alias.name: imported(str(node.module), alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("longhaul.agent.")
            for alias in node.names
        }
        values |= {
            f"{node.value.id}.{node.attr}": getattr(module, node.attr, None)
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and isinstance(module := values.get(node.value.id), ModuleType)
        }
        yield from (
            f"{path.name}: {name}"
            for name, value in values.items()
            if name.rpartition(".")[2].isupper() and isinstance(value, int | float) and value not in NUMBERS_OF_VERSIONS
        )


def test_no_test_reads_a_bound_from_where_it_stands() -> None:
    """It would hold whatever the bound is, ten times as much too."""
    assert sorted(bounds_read()) == []


def waiting(*pairs: str, **more: Any) -> Play:
    """A session that waits for a decision on these calls."""
    play = Play([calls(*(pairs or ("a Paint",))), text("Painted.")], **more)
    play.say("Paint it")
    play.run()
    return play


def test_of_an_unknown_outcome_and_of_what_an_outside_system_had_answered_2000_characters_are_kept() -> None:
    assert cut("x" * 2_000) == "x" * 2_000
    assert cut("x" * 2_001) == "x" * 2_000 + "… (2001 characters)"
    assert str(cancelled_outside(CALL, ["x" * 2_000]).output).endswith("\n" + "x" * 2_000)
    assert str(cancelled_outside(CALL, ["x" * 2_001]).output).endswith("\n" + "x" * 2_000 + "… (2001 characters)")


def test_the_hundred_newest_refusals_are_kept() -> None:
    play = waiting()

    for number in range(101):
        play.allow(f"nobody-{number}")

    assert len(play.journal.refused.newest) == 100
    assert "nobody-100" in play.journal.refused.newest[-1].reason
    assert play.journal.refused.count == 101


def test_findings_count_for_a_minute_from_when_they_were_made() -> None:
    for milliseconds, stale in ((59_000, False), (61_000, True)):
        play = waiting()
        assert play.journal.reply is not None
        play.now += milliseconds
        play.allow("a")
        assert play.journal.reply.calls["a"].analysis_stale is stale, milliseconds


def test_each_part_of_a_question_has_six_characters_to_be_told_apart_by() -> None:
    play = waiting()
    assert play.journal.reply is not None

    digest = seen_digest(play.journal.reply.calls["a"], play.journal)

    assert [len(part) for part in digest.split(".")[1:6]] == [6, 6, 6, 6, 6]


def test_the_result_of_an_earlier_call_is_looked_for_in_two_hundred_messages() -> None:
    play = waiting("a Look")
    refusals = []
    for number in (1, 199, 250):
        for _ in range(number):
            play.tell("observe", {"messages": {"name": "eve", "role": "user", "content": "x"}})
        refusals.append(play.allow("a"))

    assert "has its result: success" in str(refusals[0])
    assert str(refusals[2]).endswith("('a' has its result)")


@pytest.mark.parametrize(("blanks", "taken"), [(3_988, True), (3_989, False)])
def test_what_comes_along_with_a_request_has_at_most_4000_bytes(blanks: int, taken: bool) -> None:
    context = {"order": "x" * blanks}

    answer = Play().tell("submit", {"messages": "hi", "context": context})

    assert isinstance(answer, dict) is taken
    assert (len(json.dumps(context, separators=(",", ":"))) <= 4_000) is taken


def test_a_boundary_of_more_than_8000_bytes_is_not_kept() -> None:
    small, large = (waiting() for _ in range(2))
    for play, size in ((small, 2_000), (large, 12_000)):
        assert play.journal.reply is not None
        play.journal.reply.calls["a"].input = json.dumps({"text": "x" * size})

    assert boundary_of(small.journal) is not None
    assert boundary_of(large.journal) is None


def test_a_state_of_more_than_50000_messages_is_refused() -> None:
    said = {"name": "ana", "role": "user", "content": "x", "id": "m"}

    with pytest.raises(ImportProblem, match="has 50,001 messages; at most 50,000 are taken"):
        read_state(json.dumps({"session_id": "s", "context": [said] * 50_001}))


def test_a_plan_has_at_most_50000_characters() -> None:
    assert PLAN_EXIT_TOOL.input_schema["properties"]["plan"]["maxLength"] == 50_000


def test_of_what_was_said_with_an_interrupt_10000_characters_are_handed_on() -> None:
    play = waiting()
    play.tell("interrupt", {"message": "x" * 10_001})

    assert replaced_by(play.journal) == "x" * 10_000


def test_a_call_that_is_unsettled_a_sixth_time_is_given_up() -> None:
    def shaken(times: int) -> list[tuple[str, str, str]]:
        unsettled = [
            e.CallUnsettled(call_id="a", analysis=CallAnalysis(), reason=f"for the {n}th time") for n in range(times)
        ]
        play = Play([calls("a Look"), text("Seen.")], outcomes={"a": [*unsettled]})
        play.say("Look")
        play.run()
        return play.results()

    assert shaken(5) == [("a", "success", "done")]
    assert shaken(6)[0][1] == "error"


def _failed_at(events: int) -> Journal:
    play = Play()
    play.write(e.CheckpointFailed(error=ErrorInfo(type="upstream", message="no store"), events=events))
    return play.journal


@pytest.mark.parametrize(("events", "again"), [(2_200, False), (2_300, False), (2_301, True)])
def test_a_checkpoint_that_failed_is_tried_again_200_events_later(events: int, again: bool) -> None:
    assert history_is_long(_failed_at(2_100), Load(events=events)) is again


@pytest.mark.parametrize(("events", "step"), [(20_000, Checkpoint()), (20_001, ContinueAsNew())])
def test_after_20000_events_a_session_goes_on_elsewhere_whatever_was_kept(events: int, step: Step) -> None:
    assert continue_as_new(Play().journal, Load(events=events)) == step


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": "T" * 201},
        {"tool_name": "T", "reason": "x" * 2_001},
        {"tool_name": "T", "source": "x" * 201},
        {"tool_name": "T", "author": "x" * 201},
        {"tool_name": "T", "id": "x" * 201},
    ],
)
def test_a_rules_words_are_short(fields: dict[str, str]) -> None:
    one_less = {name: value[:-1] or value for name, value in fields.items()}
    check_rule(PermissionRule.model_validate(one_less))

    with pytest.raises(BadRule):
        check_rule(PermissionRule.model_validate(fields))


def test_an_id_that_follows_from_what_a_rule_says_has_eight_characters() -> None:
    assert len(id_of(PermissionRule(tool_name="Paint"))) == 8


def test_of_a_question_as_much_is_shown_as_somebody_reads() -> None:
    def shown(value: object) -> int:
        return len(argument_parts(json.dumps({"a": value}))[0].text)

    assert shown("x" * 4_000) == 4_000
    assert shown("x" * 9_000) < 4_100
    assert argument_parts(json.dumps({"a": "y\n" * 59}))[0].left_out == 0
    assert argument_parts(json.dumps({"a": "y\n" * 61}))[0].left_out > 0
    assert argument_parts(json.dumps({"x" * 201: 1}))[0].name != "x" * 201
    assert len(argument_parts(json.dumps({str(n): n for n in range(31)}))) == 31
    assert len(argument_parts(json.dumps({str(n): n for n in range(90)}))) == 31
    assert "24 blanks" in argument_parts(json.dumps({"a": "x" + " " * 24 + "x"}))[0].text
    assert "\n" in argument_parts(json.dumps({"a": ["x" * 900]}))[0].text
    assert "\n" not in argument_parts(json.dumps({"a": ["x" * 1_100]}))[0].text
    assert len(brief("x" * 300, 200)) < 300


def test_of_a_change_8000_characters_are_shown() -> None:
    def left_out(size: int) -> int:
        analysis = CallAnalysis(cwd="/site", notice="x" * size)
        return preview("{}", analysis, Effect.ONCE).findings[-1].left_out

    assert left_out(8_000) == 0
    assert left_out(8_001) > 0


@pytest.mark.parametrize(
    "wrong",
    [{"triggers": ("t",) * 51}, {"triggers": ("t" * 101,)}, {"triggers": ("t",), "text": "x" * 20_001}],
)
def test_knowledge_is_small(wrong: dict[str, Any]) -> None:
    Knowledge(name="k", triggers=("t" * 100,) * 50, text="x" * 20_000)

    with pytest.raises(ValidationError):
        Knowledge(name="k", **wrong)


def test_nobody_waits_longer_than_ten_years() -> None:
    Deadline(expire_after=315_360_000.0)

    with pytest.raises(ValidationError):
        Deadline(expire_after=315_360_001.0)


def test_of_many_problems_of_a_state_five_are_said() -> None:
    problem = ImportProblem([(f"at{number}", "is wrong") for number in range(7)])

    assert str(problem).endswith("at4: is wrong; 2 more")


def test_the_state_keeps_the_two_hundred_newest_decisions() -> None:
    play = Play([line for number in range(201) for line in (calls(f"a{number} Paint"), text("Painted."))])
    for number in range(201):
        play.say("Paint it", f"r{number}")
        play.run()
        play.deny(f"a{number}")
        play.run()

    assert len(play.journal.state.decisions) == 200
    assert play.journal.state.decisions[-1].call_id == "a200"


def test_a_message_that_nobody_has_counted_has_a_frame_of_8_tokens_and_each_attachment_1600() -> None:
    picture = DataBlock(source=Base64Source(data="aGk=", media_type="image/png"))

    assert outside_tokens(UserMsg("ana", ())) == 8
    assert outside_tokens(UserMsg("ana", [picture, picture])) == 8 + 2 * 1_600


def test_what_is_kept_to_tell_turns_apart_has_sixteen_characters() -> None:
    said = ToolResultBlock(id="a", name="Order", output="x")

    (turn,) = with_call(Watch(), StuckConfig(), CALL, said).open

    assert (len(turn.calls), len(turn.results)) == (16, 16)


def test_ids_of_8000_calls_of_long_ago_share_one_filter_of_16_kb() -> None:
    names = dict.fromkeys((f"call-{number}" for number in range(8_201)), "Look")

    known, forgotten = forget(names, (), {})

    assert [filled.calls for filled in forgotten] == [8_000, 1]
    assert {len(b64decode(filled.bits)) for filled in forgotten} == {16_384}
    assert len(known) == 200


def test_of_a_command_in_the_background_two_hundred_characters_are_shown() -> None:
    arguments = json.dumps({"command": "x" * 201})
    call = OpenCall(
        block=CALL.model_copy(update={"input": arguments}), input=arguments, analysis=CallAnalysis(), analyzed_at=0
    )

    started = background_commands.started(Play([]).journal, call)
    (command,) = (entry.command for entry in started if isinstance(entry, e.CommandStarted))

    assert command.shown == "x" * 200
