"""A worker runs the tool that was decided on, or says why it does not."""

import pytest
from temporalio.exceptions import ActivityError, ApplicationError, RetryState

from longhaul.activities.tools.function import FunctionTool, tool
from longhaul.activities.tools.registry import Toolbox, describe, tool_as_recorded
from longhaul.agent.entries import ToolReturned
from longhaul.agent.reducer.agent_state import OpenCall
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultState
from longhaul.agent.values.conversation.tools import Effect
from longhaul.workflows.activity_failures import call_failed


def pay_since(words: str) -> FunctionTool:
    """The tool `pay`, under another description."""

    def pay(to: str) -> str:
        return to

    pay.__doc__ = words
    return tool(name="pay")(pay)


OLD, NEW = pay_since("Pay from the petty cash."), pay_since("Pay from the vault.")


def test_the_tool_that_was_recorded_is_given() -> None:
    assert tool_as_recorded(Toolbox([OLD]), "pay", describe(OLD).digest) is OLD


@pytest.mark.parametrize(
    ("toolbox", "said"),
    [
        (Toolbox([]), "this worker has no tool 'pay'"),
        (Toolbox([NEW]), "'pay' is another one on the workers now (its description, schema or flags)"),
    ],
)
def test_the_model_reads_why_an_approved_call_did_not_run(toolbox: Toolbox, said: str) -> None:
    with pytest.raises(ApplicationError) as refusal:
        tool_as_recorded(toolbox, "pay", describe(OLD).digest)

    result = told_of(refusal.value).result
    assert refusal.value.type == "NotHere"
    assert result.state is ToolResultState.ERROR, "nothing was done, and nobody has to look whether it was"
    assert said in result.get_text()


def told_of(error: ApplicationError) -> ToolReturned:
    """The result of a `once` call that no worker would take."""
    block = ToolCallBlock(id="c-7", name="pay", input="{}")
    failed = ActivityError(
        "failed", scheduled_event_id=1, started_event_id=2, identity="", activity_type="pay", activity_id="c-7",
        retry_state=RetryState.MAXIMUM_ATTEMPTS_REACHED,
    )  # fmt: skip
    failed.__cause__ = error
    return call_failed(OpenCall(block=block, input="{}"), Effect.ONCE, failed)
