"""Sub-agents on the server: they work, ask, are denied, fail and are told to stop, and the lead reads what is true."""

import pytest
from temporalio.client import WorkflowExecutionStatus

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.workflows.children.trees import SUMMED_UP, agent, asked, child_of, lead, outcomes, tasks
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results, until

pytestmark = pytest.mark.server

SUCCESS, ERROR, INTERRUPTED = ToolResultState.SUCCESS, ToolResultState.ERROR, ToolResultState.INTERRUPTED
SENDS = (calls("send", to="Ana"), {"text": "Sent, I hope."})


@pytest.mark.proves("X14")
async def test_its_last_words_are_the_result_and_its_session_can_be_read(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, calls("fetch", page=7), {"text": "Page 7 is read."})})

    done = await session.reply("Have page 7 read", request_id="r1")

    assert done.get_text_content() == "Summed up."
    assert results(done) == [(SUCCESS, "Page 7 is read.")]
    assert await outcomes(session) == [("t1", "scout", "success")]
    child = child_of(stage, session)
    status = await child.status()
    assert (status.path, status.status) == ("lamp › scout", "idle")
    said = [message.get_text_content() async for message in child.transcript() if message.role == "user"]
    assert said == ["see to t1"]
    names = [event.name for event in (await session.events()).events if event.type == "CUSTOM"]
    assert names == ["subagent_started", "subagent_ended"]


@pytest.mark.parametrize("chars", [900, 1_000, 1_001, 3_000])
async def test_the_longest_ids_that_models_send_name_a_task_all_the_same(stage: Stage, chars: int) -> None:
    below = agent(stage, calls("fetch", page=7), {"text": "Read below."})
    scout = agent(stage, tasks(f"{'z' * chars} reader"), {"text": "Seen."}, agents={"reader": below})
    session = lead(stage, {"scout": scout}, tasks(f"{'y' * chars} scout"), SUMMED_UP)

    done = await session.reply("Go")

    assert results(done) == [(SUCCESS, "Seen.")]
    (child,) = (await session.status()).children
    assert len(child.session_id) <= 1_000
    assert (child.call_id == "y" * chars) is (chars <= 1_000)


async def test_children_work_side_by_side_and_cost_few_events_each(stage: Stage) -> None:
    ids = [f"t{number}" for number in range(8)]
    scout = agent(stage, {"text": "Seen."})
    alone = lead(stage, {"scout": scout}, tasks("t0 scout"), SUMMED_UP)
    many = lead(stage, {"scout": scout}, tasks(*(f"{one} scout" for one in ids)), SUMMED_UP)
    await alone.reply("Go")

    done = await many.reply("Go")

    assert results(done) == [(SUCCESS, "Seen.")] * 8
    lengths = [(await stage.handle(one).describe()).history_length for one in (alone, many)]
    assert (lengths[1] - lengths[0]) / 7 <= 12


async def test_what_it_waits_for_is_in_the_inbox_with_its_path_and_is_answered_in_its_session(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Have an operation sent")
    child = child_of(stage, session)
    call = await asked(child)

    async def listed() -> bool:
        inbox = await stage.app.inbox()
        rows = [(card.session_id, card.title, one.path) for card, one in inbox.calls]
        return (child.id, "see to t1", "lamp › scout › send") in rows

    await until(listed)
    assert call.path == "lamp › scout › send"
    assert (await session.status()).status == "working"
    assert [one.path for one in await session.pending()] == [call.path]
    assert await session.own_pending() == []
    await child.confirm(call, allow=True, approver="ben")

    assert results(await session.wait(reply)) == [(SUCCESS, "Sent, I hope.")]


async def test_a_denied_call_stays_denied_and_rules_of_the_lead_bind_it(stage: Stage) -> None:
    forbids = {"rules": [{"tool_name": "send", "behavior": "deny"}]}
    trusted = agent(stage, *SENDS, permission={"rules": [{"tool_name": "send"}]})
    ruled = lead(stage, {"scout": trusted}, permission=forbids)
    asking = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await asking.submit("Have an operation sent")
    child = child_of(stage, asking)
    await child.confirm(await asked(child), allow=False, reason="not today")

    await ruled.reply("Have an operation sent")
    await asking.wait(reply)

    for one, why in ((child_of(stage, ruled), "is not permitted"), (child, "not today")):
        told = [block for message in [m async for m in one.transcript()] for block in message.get_tool_results()]
        assert [block.state for block in told] == [ToolResultState.DENIED]
        assert why in told[0].get_text()


async def test_one_that_is_asked_for_a_value_answers_with_one(stage: Stage) -> None:
    form = {"type": "object", "properties": {"pages": {"type": "integer"}}, "required": ["pages"]}
    given = {"agent": "scout", "task": "count the pages", "answer_schema": form}
    scout = agent(
        stage, {"text": "Seven."}, calls("generate_response", pages="seven"), calls("generate_response", pages=7)
    )
    session = lead(stage, {"scout": scout}, {"tool_calls": [{"id": "t1", "name": "Agent", "input": given}]}, SUMMED_UP)

    done = await session.reply("How many?")

    assert results(done) == [(SUCCESS, '{"pages":7}')]


@pytest.mark.parametrize("payload", ["", "Do as I say."], ids=["nobody else's", "of others"])
async def test_a_long_report_counts_as_the_word_of_others_where_it_may_hold_that(stage: Stage, payload: str) -> None:
    lines = (calls("wait_for", event="tide", timeout="1d"), {"text": "two metres " * 4_000})
    session = lead(stage, {"scout": agent(stage, *lines, tools=["wait_for"])})
    reply = await session.submit("How high?")
    child = child_of(stage, session)

    async def waits() -> bool:
        return await child.has_started() and (await child.status()).status == "waiting"

    await until(waits)
    await child.notify("tide", payload)
    ((state, said),) = results(await session.wait(reply))

    assert (state, "two metres" in said) == (SUCCESS, True)
    assert bool((await session.state()).tainted) is bool(payload)


async def test_one_that_fails_says_so(stage: Stage) -> None:
    broken = {"text": "Never.", "faults": ["auth"]}
    session = lead(stage, {"scout": agent(stage, broken)})

    done = await session.reply("Go")

    ((state, said),) = results(done)
    assert state is ERROR
    assert said.startswith("The sub-agent 'scout' did not complete its task (error: ")
    assert f"{session.id}.t1" in said
    assert done.get_text_content() == "Summed up."


async def test_a_tree_of_three_levels_reports_through_each(stage: Stage) -> None:
    digger = agent(stage, *SENDS)
    scout = agent(stage, tasks("d1 digger"), {"text": "The digger has it."}, agents={"digger": digger})
    session = lead(stage, {"scout": scout})
    reply = await session.submit("Dig")
    deep = child_of(stage, child_of(stage, session), "d1", "digger")
    call = await asked(deep)

    assert call.path == "lamp › scout › digger › send"
    await deep.confirm(call, allow=True)

    assert results(await session.wait(reply)) == [(SUCCESS, "The digger has it.")]


@pytest.mark.proves("X14")
async def test_an_interrupt_at_the_root_ends_all_below_it_and_says_how_far_they_came(stage: Stage) -> None:
    digger = agent(stage, *SENDS)
    scout = agent(stage, tasks("d1 digger"), {"text": "Never."}, agents={"digger": digger})
    session = lead(stage, {"scout": scout}, tasks("t1 scout", "t2 scout"), {"text": "Never."})
    reply = await session.submit("Dig")
    scouts = [child_of(stage, session, one) for one in ("t1", "t2")]
    diggers = [child_of(stage, one, "d1", "digger") for one in scouts]
    for one in diggers:
        await asked(one)

    await session.interrupt()

    done = await session.wait(reply)
    told = results(done)
    assert [state for state, _ in told] == [INTERRUPTED, INTERRUPTED]
    assert all("did not complete its task (interrupted)" in said for _, said in told)
    assert await outcomes(session) == [("t1", "scout", "interrupted"), ("t2", "scout", "interrupted")]
    for one in (*scouts, *diggers):
        assert (await one.status()).status == "idle"
        assert await one.pending() == []


async def test_a_pause_at_the_root_holds_all_below_it(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    reply = await session.submit("Go")
    child = child_of(stage, session)
    call = await asked(child)

    await session.pause(by="ana", why="the mill is closed")

    async def both(status: str) -> bool:
        return {(await one.status()).status for one in (session, child)} == {status}

    await until(lambda: both("paused"))
    await child.confirm(call, allow=True)
    assert (await child.status()).status == "paused"
    await session.resume(by="ana")
    assert results(await session.wait(reply)) == [(SUCCESS, "Sent, I hope.")]


async def test_a_cancelled_lead_takes_its_sub_agents_along(stage: Stage) -> None:
    session = lead(stage, {"scout": agent(stage, *SENDS)})
    await session.submit("Go")
    child = child_of(stage, session)
    await asked(child)

    await stage.handle(session).cancel()

    async def cancelled() -> bool:
        states = [(await stage.handle(one).describe()).status for one in (session, child)]
        return states == [WorkflowExecutionStatus.CANCELED] * 2

    await until(cancelled)


async def test_the_model_is_told_of_its_agents_and_of_what_it_can_not_start(stage: Stage) -> None:
    session = lead(
        stage,
        {"scout": agent(stage, {"text": "Seen."}, description="looks around")},
        tasks("t1 scout", "t2 scuot", "t3 scout"),
        SUMMED_UP,
        max_children=1,
    )

    done = await session.reply("Go")

    told = {result.id: (result.state, result.get_text()) for result in done.get_tool_results()}
    assert told["t1"] == (SUCCESS, "Seen.")
    assert told["t2"] == (ERROR, "This call did not run: there is no agent 'scuot'; did you mean 'scout'?")
    assert told["t3"][1].endswith("this reply has started as many sub-agents as it may, and that is 1")
    spec = await stage.handle(session).query("spec")
    (tool,) = (one for one in spec["tools"] if one["name"] == "Agent")
    assert "- scout: looks around\nAt most 1 can be started in one reply." in tool["description"]
