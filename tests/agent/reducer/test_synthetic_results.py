"""What the model reads of calls that did not go as it meant."""
# ruff: noqa: E501 - a sentence that is expected is written as it is read

from longhaul.agent.reducer.synthetic_results import failed_to_run, outcome_unknown, stopped_under_way
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultBlock, ToolResultState

CALL = ToolCallBlock(id="a", name="Paint", input="{}")


def _said(result: ToolResultBlock) -> tuple[str, str, ToolResultState, str]:
    return result.id, result.name, result.state, result.get_text()


def test_an_unknown_outcome_promises_nothing() -> None:
    assert _said(outcome_unknown(CALL, "the worker was lost")) == (
        "a",
        "Paint",
        ToolResultState.UNKNOWN,
        (
            "Outcome unknown: this call was started, and then the worker was lost. It may have run, in part or in whole, "
            "or not at all, and it was not started again. Find out what is true before you repeat it."
        ),
    )


def test_a_call_that_could_not_be_run_says_why() -> None:
    assert _said(failed_to_run(CALL, "the disk was full")) == (
        "a",
        "Paint",
        ToolResultState.ERROR,
        "This call could not be run: the disk was full",
    )


def test_a_call_that_was_stopped_says_that_part_of_it_may_be_done() -> None:
    assert _said(stopped_under_way(CALL)) == (
        "a",
        "Paint",
        ToolResultState.INTERRUPTED,
        (
            "Interrupted: this call was under way when the reply was interrupted, and was stopped. It may have "
            "done part of its work. Find out what is true before you repeat it."
        ),
    )
