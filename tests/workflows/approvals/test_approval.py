"""What a person, or a system outside, says to a call: by client, and by hand in words of JSON."""

import json

import pytest

from longhaul.agent.operations.bodies import ConfirmResult, UserConfirmResultEvent
from longhaul.agent.values.conversation.messages import ToolCallState, ToolResultState
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.starter.client.wire import Refused
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, calls, next_call, results

pytestmark = pytest.mark.server


async def test_a_call_runs_once_after_it_was_approved(stage: Stage) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")
    (call,) = await session.pending()

    await session.confirm(call, allow=True, approver="bo")
    done = await session.wait(waiting.id)

    assert (call.tool, call.waits_for, json.loads(call.input)) == ("send", "person", {"to": "Ana"})
    assert waiting.finished_reason is None
    assert waiting.metadata == {"waiting_for": ["call_0_0"]}
    assert waiting.get_tool_calls()[0].state is ToolCallState.ASKING
    assert results(done) == [(ToolResultState.SUCCESS, "sent '' to Ana")]
    assert done.get_tool_calls()[0].state is ToolCallState.FINISHED


async def test_a_second_word_on_a_call_is_refused(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"), calls("send", to="Cy"), {"text": "Both."})
    await session.reply("Write to both")
    (first,) = await session.pending()
    await session.confirm(first, allow=True, approver="bo")

    with pytest.raises(Refused, match="'call_0_0'"):
        await session.confirm(first, allow=False, approver="eve")

    assert (await next_call(session, first)).input == '{"to": "Cy"}'


async def test_one_operation_decides_once_on_each_call(stage: Stage) -> None:
    session = stage.session(*ASKS)
    await session.reply("Write to Ana")
    twice = [{"call_id": "call_0_0", "decision": "allow"}, {"call_id": "call_0_0", "decision": "deny"}]

    with pytest.raises(Refused, match="names a call twice"):
        await session._sending.update("confirm", {"decisions": twice})  # noqa: SLF001  the client has no way to say it

    assert [call.call_id for call in await session.pending()] == ["call_0_0"]


async def test_an_unknown_call_is_refused_and_the_waiting_ones_are_named(stage: Stage) -> None:
    session = stage.session(*ASKS)
    await session.reply("Write to Ana")

    with pytest.raises(Refused, match=r"call 'c-umbrella' does not wait.*waiting: \['call_0_0'\]"):
        await session.confirm("c-umbrella", allow=True)


async def test_an_operation_about_another_reply_is_refused(stage: Stage) -> None:
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")
    decision = {"call_id": "call_0_0", "decision": "allow"}

    with pytest.raises(Refused, match=f"reply_id: 'r-yesterday' is not the reply being made; that is '{waiting.id}'"):
        await session._sending.update("confirm", {"reply_id": "r-yesterday", "decisions": [decision]})  # noqa: SLF001


async def test_the_model_reads_why_a_call_was_denied(stage: Stage) -> None:
    heard = "denied by bo and did not run: Ana is on holiday"
    session = stage.session(calls("send", to="Ana"), {"text": "I wait.", "expect": {"last_contains": heard}})
    waiting = await session.reply("Write to Ana")

    await session.confirm("call_0_0", allow=False, reason="Ana is on holiday", approver="bo")
    done = await session.wait(waiting.id)

    assert done.get_text_content() == "I wait."
    assert results(done) == [(ToolResultState.DENIED, "This call was denied by bo and did not run: Ana is on holiday")]


async def test_a_denial_ends_the_reply_where_the_agent_is_told_so(stage: Stage) -> None:
    session = stage.session(*ASKS, react_config={"stop_on_reject": True})
    waiting = await session.reply("Write to Ana")

    await session.confirm("call_0_0", allow=False)
    done = await session.wait(waiting.id)

    assert (done.finished_reason, (await session.status()).model_calls) == ("rejected", 1)


async def test_an_edited_call_runs_as_edited_and_the_model_is_told(stage: Stage) -> None:
    heard = """[bo changed the arguments before this ran: {"to": "Cy"}]\nsent '' to Cy"""
    session = stage.session(calls("send", to="Ana"), {"text": "Fine.", "expect": {"last_contains": heard}})
    waiting = await session.reply("Write to Ana")

    await session.confirm("call_0_0", allow=True, input={"to": "Cy"}, approver="bo")
    done = await session.wait(waiting.id)

    assert done.error is None
    assert done.get_text_content() == "Fine."
    assert results(done) == [(ToolResultState.SUCCESS, heard)]


async def test_an_edit_that_the_tool_can_not_take_leaves_the_decision_open(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"), {"text": "Sent."})
    waiting = await session.reply("Write to Ana")

    with pytest.raises(Refused, match="it does not fit 'send': 'to' is missing: give text; nothing is decided yet"):
        await session.confirm("call_0_0", allow=True, input={"text": "x"}, approver="bo")
    await session.confirm("call_0_0", allow=True, input={"to": "Cyd"}, approver="bo")
    done = await session.wait(waiting.id)

    assert done.error is None
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS]


async def test_an_edit_into_what_is_forbidden_is_still_forbidden(stage: Stage) -> None:
    never = PermissionRule(tool_name="Bash", rule_content="touch:*", behavior=Behavior.DENY)
    session = stage.session(
        calls("Bash", command="mkdir a"),
        {"text": "As you say."},
        tools=["Bash"],
        permission={"rules": [never]},
    )
    waiting = await session.reply("Make a")

    await session.confirm("call_0_0", allow=True, input={"command": "touch b"})
    done = await session.wait(waiting.id)

    assert [state for state, _ in results(done)] == [ToolResultState.DENIED]
    assert not (stage.workspace / "b").exists()


@pytest.mark.proves("A9")
async def test_accepted_suggestions_let_the_next_call_pass(stage: Stage) -> None:
    again = [calls("Bash", command="mkdir -p attic"), calls("Bash", command="rmdir attic; mkdir -p attic")]
    session = stage.session(again[0], again[0], again[1], {"text": "Built."}, tools=["Bash"])
    await session.reply("Build")
    (first,) = await session.pending()

    await session.confirm(first, allow=True, rules=True, approver="bo")
    other = await next_call(session, first)

    assert [(rule.tool_name, rule.rule_content) for rule in first.suggested_rules] == [("Bash", "mkdir -p attic")]
    assert other.call_id == "call_2_0", "the second call is covered by the rule, the third one only in part"
    assert (stage.workspace / "attic").is_dir()


async def test_a_rule_that_was_not_suggested_is_refused(stage: Stage) -> None:
    session = stage.session(calls("Bash", command="mkdir attic"), tools=["Bash"])
    await session.reply("Build")
    greedy = PermissionRule(tool_name="Bash", rule_content=None)

    with pytest.raises(Refused, match=r"rules: Bash\(\*\) was not suggested for 'call_0_0'; suggested: Bash\(mkdir a"):
        await session.confirm("call_0_0", allow=True, rules=[greedy])

    assert len(await session.pending()) == 1
    assert not (stage.workspace / "attic").exists()


async def test_the_event_of_agentscope_is_an_answer_as_it_stands(stage: Stage) -> None:
    """Its fields as its own client sends them, with those that mean nothing here."""
    session = stage.session(*ASKS)
    waiting = await session.reply("Write to Ana")
    block = waiting.get_tool_calls()[0].model_dump(mode="json")
    event = {
        "id": "e-7",
        "created_at": "2026-05-04T10:00:00",
        "metadata": {},
        "type": "USER_CONFIRM_RESULT",
        "reply_id": waiting.id,
        "confirm_results": [
            {"confirmed": True, "tool_call": {**block, "await_user_confirmation": True}, "rules": None}
        ],
    }

    await stage.handle(session).signal("confirm", event)
    done = await session.wait(waiting.id)

    assert done.get_text_content() == "Written."


async def test_an_event_given_to_reply_goes_on_with_the_reply(stage: Stage) -> None:
    session = stage.session(calls("send", to="Ana"), {"text": "Fine."})
    waiting = await session.reply("Write to Ana")
    edited = waiting.get_tool_calls()[0].model_copy(update={"input": '{"to": "Dot"}'})

    done = await session.reply(
        UserConfirmResultEvent(reply_id=waiting.id, confirm_results=(ConfirmResult(confirmed=True, tool_call=edited),))
    )

    assert done.id == waiting.id
    assert "sent '' to Dot" in results(done)[0][1]


async def test_arguments_of_another_type_are_decided_on_shown_and_run_as_they_were_read(stage: Stage) -> None:
    lines = (
        calls("Bash", command="sleep 1; echo high water", timeout=5000.0, run_in_background="false"),
        {"text": "Done."},
    )
    session = stage.session(*lines, tools=["Bash"], permission={"mode": "bypass", "confirm": "always"})
    waiting = await session.reply("Wait for the tide")
    (call,) = await session.pending()

    await session.confirm(call, allow=True, approver="bo")
    done = await session.wait(waiting.id)

    assert call.input == '{"command": "sleep 1; echo high water", "timeout": 5000, "run_in_background": false}'
    assert done.get_tool_calls()[0].input == call.input
    assert results(done) == [(ToolResultState.SUCCESS, "high water")]
