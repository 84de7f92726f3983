"""AgentScope's answer events, given to a lead for calls of its sub-agents: each part goes where its calls wait."""

from typing import Any

import pytest

from longhaul.agent.operations.bodies import ConfirmResult, ExternalExecutionResultEvent, UserConfirmResultEvent
from longhaul.agent.values.conversation.messages import ToolCallBlock, ToolResultBlock, ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.workflows.contract import PendingCall
from tests.workflows.children.trees import SUMMED_UP, agent, asked, child_of, lead, tasks
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

SENT = {"text": "Sent."}
SUCCESS = ToolResultState.SUCCESS
SENDS: Line = {"tool_calls": [{"id": "k1", "name": "send", "input": {"to": "Ana"}}]}
OTHER_CALL: Line = {"tool_calls": [{"id": "k2", "name": "send", "input": {"to": "Bo"}}]}


def confirms(reply_id: str, *pending: PendingCall, allow: bool = True) -> UserConfirmResultEvent:
    blocks = [ToolCallBlock(id=call.call_id, name=call.tool, input=call.input) for call in pending]
    words = tuple(ConfirmResult(confirmed=allow, tool_call=block) for block in blocks)
    return UserConfirmResultEvent(reply_id=reply_id, confirm_results=words)


@pytest.mark.parametrize("whose", ["the lead's", "the sub-agent's"])
async def test_a_decision_on_a_sub_agent_s_call_goes_on_with_the_lead_s_reply(stage: Stage, whose: str) -> None:
    session = lead(stage, {"scout": agent(stage, SENDS, SENT)})
    waiting = await session.reply("Go")
    (call,) = await session.pending()
    assert call.reply_id != waiting.id

    done = await session.reply(confirms(waiting.id if whose == "the lead's" else call.reply_id, call))

    assert (done.id, done.get_text_content()) == (waiting.id, "Summed up.")
    assert results(done) == [(SUCCESS, "Sent.")]


async def test_one_event_answers_a_lead_s_own_call_and_those_of_two_sub_agents(stage: Stage) -> None:
    both = tasks("t1 scout", "t2 clerk")["tool_calls"]
    agents = {"scout": agent(stage, SENDS, SENT), "clerk": agent(stage, OTHER_CALL, SENT)}
    given: Line = {"tool_calls": [*both, {"id": "c1", "name": "courier", "input": {"parcel": "a ring"}}]}
    session = stage.session(given, SUMMED_UP, agents=agents, tools=("courier",))
    reply = await session.submit("Go")
    for call_id, name in (("t1", "scout"), ("t2", "clerk")):
        await asked(child_of(stage, session, call_id, name))
    brought = ToolResultBlock(id="c1", name="courier", output="delivered")

    waiting = await session.reply(ExternalExecutionResultEvent(reply_id=reply, execution_results=(brought,)))
    done = await session.reply(confirms(reply, *await session.pending()))

    assert len(waiting.metadata["waiting_for"]) == 2
    assert done.get_text_content() == "Summed up."
    assert sorted(text for _, text in results(done)) == ["Sent.", "Sent.", "delivered"]


async def test_a_result_from_outside_for_a_sub_agent_s_call_streams_the_lead_s_reply(stage: Stage) -> None:
    scout = agent(stage, calls("courier", parcel="a ring"), {"text": "Brought."}) | {"tools": ["courier"]}
    session = lead(stage, {"scout": scout})
    waiting = await session.reply("Go")
    (call,) = await session.pending()
    brought = ToolResultBlock(id=call.call_id, name="courier", output="delivered")
    event = ExternalExecutionResultEvent(reply_id=waiting.id, execution_results=(brought,))

    events = [event async for event in session.reply_stream(event)]

    assert {each.reply_id for each in events} == {waiting.id}
    assert events[-1].type == "REPLY_END"


async def test_equal_ids_of_calls_are_told_apart_by_the_reply(stage: Stage) -> None:
    agents = {name: agent(stage, SENDS, SENT) for name in ("scout", "clerk")}
    session = lead(stage, agents, tasks("t1 scout", "t2 clerk"), SUMMED_UP)
    reply = await session.submit("Go")
    (first, second) = [await asked(child_of(stage, session, *one)) for one in (("t1", "scout"), ("t2", "clerk"))]
    assert first.call_id == second.call_id

    with pytest.raises(Refused) as refusal:
        await session.reply(confirms(reply, first))
    await session.reply(confirms(second.reply_id, second))
    done = await session.reply(confirms(first.reply_id, first))

    assert str(refusal.value) == (
        f"reply_id: call 'k1' waits in {session.id}.t1, {session.id}.t2; send the reply_id of one call: "
        f"{first.reply_id!r}, {second.reply_id!r}"
    )
    assert done.get_text_content() == "Summed up."


async def test_a_decision_for_an_idle_lead_s_sub_agent_returns_the_reply_that_started_it(stage: Stage) -> None:
    in_background = {"agent": "scout", "task": "go", "run_in_background": True}
    given: Line = {"tool_calls": [{"id": "t1", "name": "Agent", "input": in_background}]}
    session = lead(stage, {"scout": agent(stage, SENDS, SENT)}, given, {"text": "I wait."}, {"text": "Heard."})
    before = await session.reply("Go")
    call = await asked(child_of(stage, session))

    done = await session.reply(confirms(call.reply_id, call))

    assert (done.id, done.get_text_content()) == (before.id, "I wait.")
    assert await session.tree.pending() == []


async def refused(session: Session, event: Any) -> str:
    with pytest.raises(Refused) as refusal:
        await session.reply(event)
    return str(refusal.value)


async def test_another_reply_id_or_place_is_refused_with_what_to_send(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, SENDS, SENT)})
    waiting = await session.reply("Go")
    child = child_of(stage, session)
    (call,) = await session.pending()

    of_yesterday = await refused(session, confirms("r-yesterday", call))
    at_the_child = await refused(child, confirms(waiting.id, call))
    unknown = await refused(session, confirms(waiting.id, call.model_copy(update={"call_id": "k9"})))
    await stage.handle(session).signal("confirm", {"decisions": [{"call_id": "k1", "decision": "allow"}]})
    by_signal = (await session.status()).last_refusals[-1]["reason"]

    assert of_yesterday == (
        f"reply_id: 'r-yesterday' is not the reply of call 'k1'; send {waiting.id!r}, or {call.reply_id!r} of the "
        f"sub-agent's session {child.id!r}"
    )
    assert at_the_child == f"reply_id: {waiting.id!r} is not the reply being made; that is {call.reply_id!r}"
    elsewhere = f"is no call here; a call of a sub-agent is answered in its session: {child.id!r})"
    nothing = "this session waits for nothing of the kind: no call needs a decision"
    assert (unknown, by_signal) == (f"{nothing} ('k9' {elsewhere}", f"{nothing} ('k1' {elsewhere}")
    assert (await session.reply(confirms(waiting.id, call))).get_text_content() == "Summed up."
