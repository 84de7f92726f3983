"""Agents asked by workflows of an application: what each end of the agent's work comes to."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.common import Priority
from temporalio.exceptions import ApplicationError, CancelledError
from temporalio.worker import Worker

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.plugin import LonghaulPlugin
from longhaul.starter.client.session import Session
from longhaul.workflow import AskResult
from tests.embedding.conftest import Application
from tests.embedding.order_workflows import Careless, Decision, ManyOrders, Order, OrderWorkflow, PatientOrder
from tests.limits import SURE_SECONDS
from tests.workflows.children.trees import asked
from tests.workflows.conftest import TypeTemporal, type_temporal
from tests.workflows.operations import calls, until

__all__ = ["type_temporal"]

pytestmark = pytest.mark.server

FREE: dict[str, Any] = {"permission": {"mode": "bypass"}}
SENT = (calls("send", to="Ana"), {"text": "Sent."})


async def end(handle: WorkflowHandle[Any, Any]) -> AskResult[Any]:
    async with asyncio.timeout(SURE_SECONDS):
        found = await handle.result()
    assert isinstance(found, AskResult)
    return found


async def kinds(client: Client, workflow_id: str) -> list[str]:
    events = (await client.get_workflow_handle(workflow_id).fetch_history()).events
    return [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]


async def how(client: Client, session: Session) -> WorkflowExecutionStatus | None:
    return (await client.get_workflow_handle(session.workflow_id).describe()).status


async def reason_of(session: Session) -> FinishedReason | None:
    """How its newest reply has ended."""
    *_, last = [each async for each in session.transcript() if each.role == "assistant"]
    message = (await session.result(last.id)).message
    assert message is not None
    return message.finished_reason


async def requests_of(session: Session) -> list[str]:
    return [each.get_text_content() async for each in session.transcript() if each.role == "user"]


@pytest.mark.proves("X22")
async def test_an_agent_is_asked_and_its_words_come_back(application: Application) -> None:
    agent = application.agent({"text": "Two orders are late."})
    async with application.running(OrderWorkflow) as client:
        found = await application.ask(client, Order(agent))

    assert (found.state, found.words, found.value, found.unknown) == ("success", "Two orders are late.", None, ())
    assert found.input_tokens > 0
    assert found.cost is None


async def test_a_value_is_of_the_type_that_was_asked_for(application: Application) -> None:
    agent = application.agent({"tool_calls": [{"name": "generate_response", "input": {"refund": True, "amount": 12}}]})
    async with application.running(OrderWorkflow) as client:
        found = await application.ask(client, Order(agent, wants_decision=True))

    assert (found.state, Decision.model_validate(found.value)) == ("success", Decision(refund=True, amount=12))


async def test_a_budget_and_a_failing_model_end_an_ask_with_a_value(application: Application) -> None:
    poor = application.agent({"text": "A long answer."})
    broken = application.agent({"faults": [{"kind": "auth"}], "text": "never"})
    async with application.running(OrderWorkflow) as client:
        one = await application.ask(client, Order(poor, max_tokens=1))
        two = await application.ask(client, Order(broken))

    assert (one.state, two.state) == ("error", "error")


async def test_a_reply_that_somebody_interrupts_answers_whoever_asked(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case, "user": "ana"})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case, "ana")
        await asked(session)
        await session.interrupt()
        found = await end(handle)

    assert found.state == "interrupted"
    assert found.session == application.case


async def test_an_approval_may_come_days_later_and_the_words_come_back(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case, "user": "ana"})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case, "ana")
        await session.confirm(await asked(session), allow=True, approver="bo")
        found = await end(handle)

    assert (found.state, found.words) == ("success", "Sent.")


async def test_an_unknown_outcome_comes_with_the_answer(application: Application) -> None:
    agent = application.agent(calls("engrave", text="Ana"), {"text": "I don't know."}, **FREE)
    async with application.running(OrderWorkflow) as client:
        found = await application.ask(client, Order(agent, options={"session": application.case}))
        session = application.session(client, application.case)
        stays = await how(client, session)
        unknown_outcomes = (await session.status()).unknown_outcomes

    (unknown,) = found.unknown
    assert (found.state, found.words, unknown.tool, unknown.call_id) == (
        "success",
        "I don't know.",
        "engrave",
        "call_0_0",
    )
    assert (stays, unknown_outcomes) == (WorkflowExecutionStatus.RUNNING, 1)


async def test_a_queued_message_a_pause_and_a_background_command_keep_nobody_waiting(application: Application) -> None:
    background = {"tool_calls": [{"name": "Bash", "input": {"command": "sleep 60", "run_in_background": True}}]}
    agents = {
        "queued": application.agent(*SENT, {"text": "And more."}),
        "paused": application.agent(*SENT, {"text": "never"}),
        "command": application.agent(background, {"text": "It runs."}, tools=["Bash"], **FREE),
    }
    async with application.running(OrderWorkflow) as client:
        names = {name: f"{application.case}-{name}" for name in agents}
        handles = {
            name: await application.begin(client, Order(agent, options={"session": names[name]}))
            for name, agent in agents.items()
        }
        sessions = {name: application.session(client, names[name]) for name in agents}
        waits = {name: await asked(sessions[name]) for name in ("queued", "paused")}
        more = await sessions["queued"].submit("And what else?")
        await sessions["queued"].confirm(waits["queued"], allow=True)
        # Paused behind the decision, it may begin nothing: neither the call nor the answer to it.
        await sessions["paused"].interrupt("And what else?")
        await sessions["paused"].pause()
        found = {name: await end(handle) for name, handle in handles.items()}
        later = await sessions["queued"].wait(more)
        await sessions["command"].stop_background()

    assert {name: (each.state, each.words.splitlines()[0]) for name, each in found.items()} == {
        "queued": ("success", "Sent."),
        "paused": ("interrupted", "interrupted"),
        "command": ("success", "It runs."),
    }
    assert later.get_text_content() == "And more."


async def test_a_cancelled_workflow_waits_until_its_agent_has_ended_in_order(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        await asked(session)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await end(handle)
        reason = await reason_of(session)
        history = await kinds(client, handle.id)

    assert isinstance(failure.value.cause, CancelledError)
    assert reason is FinishedReason.INTERRUPTED
    assert history[-1] == "WORKFLOW_EXECUTION_CANCELED"
    assert history.index("WORKFLOW_EXECUTION_CANCEL_REQUESTED") < max(
        place
        for place, kind in enumerate(history)
        if kind in ("CHILD_WORKFLOW_EXECUTION_COMPLETED", "WORKFLOW_EXECUTION_SIGNALED")
    )


@pytest.mark.proves("X22")
async def test_a_cancelled_workflow_ends_also_where_no_worker_of_agents_is(application: Application) -> None:
    """After the 30 seconds that an agent has to end. Its session ends when a worker is back, and asks no model."""
    order = Order(application.agent(*SENT), options={"session": application.case})
    client = await application.client(LonghaulPlugin(application.settings, host=False))
    async with Worker(client, task_queue=application.queue, workflows=[OrderWorkflow]):
        handle = await application.begin(client, order)
        await until(lambda: _has(client, handle.id, "CHILD_WORKFLOW_EXECUTION_STARTED"))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as failure:
            await end(handle)
    async with application.running(OrderWorkflow) as client:
        session = application.session(client, application.case)
        await until(lambda: _has(client, session.workflow_id, "WORKFLOW_EXECUTION_COMPLETED"))
        model_calls = (await session.status()).model_calls

    assert isinstance(failure.value.cause, CancelledError)
    assert model_calls == 0


async def _has(client: Client, workflow_id: str, kind: str) -> bool:
    return kind in await kinds(client, workflow_id)


async def test_a_terminated_workflow_leaves_a_session_that_says_so(application: Application) -> None:
    order = Order(application.agent(*SENT, {"text": "Still here."}), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        call = await asked(session)
        await handle.terminate("by somebody")
        before = await how(client, session)
        await session.confirm(call, allow=True)

        async def told() -> bool:
            return any(asker.error for asker in (await session.status()).askers)

        await until(told)
        (asker,) = (await session.status()).askers
        words = [each.get_text_content() async for each in session.transcript()]

    assert before is WorkflowExecutionStatus.RUNNING
    assert (asker.workflow_id, words[-1]) == (handle.id, "Sent.")


async def test_an_ask_with_a_name_is_found_again_after_continue_as_new(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case})
    async with application.running(OrderWorkflow, PatientOrder) as client:
        handle = await client.start_workflow(
            PatientOrder.run, args=[order, 2], id=f"{application.name}-patient", task_queue=application.queue
        )
        session = application.session(client, application.case)
        call = await asked(session)
        await session.confirm(call, allow=True)
        async with asyncio.timeout(SURE_SECONDS):
            words = await handle.result()
        asked_for = await requests_of(session)

    assert (words, asked_for) == ("Sent.", ["Check order 17"])


async def test_an_answer_that_came_between_two_runs_is_told_again(application: Application) -> None:
    """The session has closed with its answer, which only a workflow that is over has heard."""
    value = {"refund": True, "amount": 12}
    agent = application.agent({"tool_calls": [{"name": "generate_response", "input": value}]}, {"text": "never"})
    order = Order(agent, options={"session": application.case, "name": "check"}, wants_decision=True)
    async with application.running(OrderWorkflow) as client:
        again = [await end(await application.begin(client, order, id="again")) for _ in range(2)]
        session = application.session(client, application.case)
        asked_for = await requests_of(session)
        model_calls = (await session.status()).model_calls

    assert [(found.state, found.value) for found in again] == [("success", value)] * 2
    assert (asked_for, model_calls) == (["Check order 17"], 1)


@pytest.mark.proves("X22")
async def test_a_workflow_that_is_reset_asks_once(application: Application, type_temporal: TypeTemporal) -> None:
    agent = application.agent({"text": "Once."}, {"text": "Twice."})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, Order(agent, options={"session": application.case}))
        first = await end(handle)
        typed = await type_temporal(
            "workflow", "reset", "-w", handle.id, "--type", "FirstWorkflowTask", "--reason", "a test"
        )
        second = await end(client.get_workflow_handle(handle.id, result_type=AskResult))
        asked_for = await requests_of(application.session(client, application.case))

    assert typed.status == 0, typed.said
    assert (first.words, second.words, asked_for) == ("Once.", "Once.", ["Check order 17"])


async def test_a_workflow_that_is_reset_while_its_agent_works_hears_of_it(
    application: Application, type_temporal: TypeTemporal
) -> None:
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, Order(application.agent(*SENT), options={"session": application.case}))
        session = application.session(client, application.case)
        call = await asked(session)
        await type_temporal("workflow", "reset", "-w", handle.id, "--type", "FirstWorkflowTask", "--reason", "a test")
        await session.confirm(call, allow=True)
        found = await end(client.get_workflow_handle(handle.id, result_type=AskResult))
        asked_for = await requests_of(session)

    assert (found.state, found.words, asked_for) == ("success", "Sent.", ["Check order 17"])


@pytest.mark.parametrize("when_busy", ["queue", "refuse"])
async def test_a_second_workflow_waits_for_its_turn_or_is_refused_as_it_wants(
    application: Application, when_busy: str
) -> None:
    agent = application.agent(*SENT, {"text": "And yours."})
    options = {"session": application.case, "when_busy": when_busy}
    async with application.running(OrderWorkflow) as client:
        first = await application.begin(client, Order(agent, options=options))
        session = application.session(client, application.case)
        call = await asked(session)
        second = await application.begin(client, Order(agent, "Check order 18", options))
        if when_busy == "queue":
            await until(lambda: _queued(session))
        else:
            refused = await end(second)
            assert (refused.state, refused.words) == ("busy", "the session is busy")
        await session.confirm(call, allow=True)
        found = await end(first)
        other = await end(second)

    assert (found.state, found.words) == ("success", "Sent.")
    assert other.words == ("And yours." if when_busy == "queue" else "the session is busy")


async def _queued(session: Session) -> bool:
    return (await session.status()).queued == 1


async def test_a_session_that_continues_as_new_answers_all_the_same(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        call = await asked(session)
        malformed_input = client.get_workflow_handle(session.workflow_id)
        first = (await malformed_input.describe()).run_id

        async def rolled() -> bool:
            await asyncio.gather(*(malformed_input.signal("nonsense", "x" * 200_000) for _ in range(7)))
            await session.status()
            return (await malformed_input.describe()).run_id != first

        await until(rolled)
        await session.confirm(call, allow=True)
        found = await end(handle)

    assert (found.state, found.words) == ("success", "Sent.")


async def test_a_session_has_the_priority_and_the_user_of_the_ask_or_the_turn_of_its_workflow(
    application: Application,
) -> None:
    agent = application.agent({"text": "Done."})
    own = Priority(priority_key=2, fairness_key="batch")
    asks: list[dict[str, Any]] = [{"user": "ana", "priority": 4}, {}]
    found = list[tuple[int, str, int | None]]()
    async with application.running(OrderWorkflow) as client:
        for options in asks:
            handle = await client.start_workflow(
                OrderWorkflow.run,
                Order(agent, options={"session": application.case, **options}),
                id=f"{application.name}-{len(found)}",
                task_queue=application.queue,
                priority=own,
            )
            await end(handle)
            asked_one = application.session(client, application.case, options.get("user"))
            described = await client.get_workflow_handle(asked_one.workflow_id).describe()
            turn = described.raw_description.workflow_execution_info.priority
            found.append((turn.priority_key, turn.fairness_key, (await asked_one.status()).priority))

    assert found == [(4, "ana", 4), (2, "batch", 2)]


@pytest.mark.proves("X22")
async def test_a_hundred_asks_go_on_side_by_side(application: Application) -> None:
    agent = application.agent({"text": "Fine."})
    async with application.running(ManyOrders) as client:
        handle = await application.begin(client, Order(agent, more=100), ManyOrders)
        async with asyncio.timeout(SURE_SECONDS):
            found = await handle.result()

    assert found == ["success: Fine."] * 100


async def test_after_its_timeout_the_agent_is_interrupted(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case}, seconds=1.5)
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        await asked(session)
        found = await end(handle)
        reason = await reason_of(session)

    assert found.state == "timeout"
    assert reason is FinishedReason.INTERRUPTED


async def test_a_session_that_somebody_terminates_is_lost(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        await asked(session)
        await client.get_workflow_handle(session.workflow_id).terminate("by somebody")
        found = await end(handle)

    assert (found.state, found.words) == ("lost", "its session was ended from outside")


async def test_a_workflow_speaks_to_its_agent_while_it_works(application: Application) -> None:
    heard = {"text": "To Oslo then.", "expect": {"last_contains": "Oslo"}}
    agent = application.agent(calls("send", to="Ana"), heard, {"text": "Stopped."})
    order = Order(agent, options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        session = application.session(client, application.case)
        call = await asked(session)
        await handle.signal(OrderWorkflow.address_changed, "Oslo")
        await until(lambda: _told(session))
        await handle.signal(OrderWorkflow.allowed, call.call_id)
        found = await end(handle)
        (decision,) = (await session.status()).decisions

    assert (found.state, found.words) == ("success", "To Oslo then.")
    assert decision.approver == "ana"


async def _told(session: Session) -> bool:
    return bool((await session.status()).requests)


async def test_a_workflow_interrupts_its_agent_and_hears_that_nobody_is_there(application: Application) -> None:
    order = Order(application.agent(*SENT), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        handle = await application.begin(client, order)
        await asked(application.session(client, application.case))
        heard = await handle.execute_update(OrderWorkflow.said, args=["Are you there?", application.case])
        alone = await handle.execute_update(OrderWorkflow.said, args=["Are you there?", f"{application.case}-2"])
        await handle.signal(OrderWorkflow.stop, "")
        found = await end(handle)

    assert (heard, alone) == (True, False)
    assert found.state == "interrupted"


MISUSE: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no agent": ("refunds", {}, "agent: 'refunds' is no AgentSpec"),
    "an odd option": ({}, {"sesion": "a"}, "sesion: 'a' is no option of an ask: these are session, user"),
    "no text": ({}, {"text": []}, "text: [] is nothing to ask"),
    "a number": ({}, {"text": 7}, "text: 7 is nothing to ask"),
    "no form": ({}, {"structured": 7}, "structured: 7 is no form of an answer"),
    "a form of a list": ({}, {"structured": {"type": "array"}}, "ask: structured_schema: "),
    "a timeout in seconds": ({}, {"timeout": 7}, "timeout: 7 is no time"),
    "an odd wish": ({}, {"when_busy": "shout"}, "when_busy: 'shout' is neither 'queue' nor 'refuse'"),
    "an odd name": ({}, {"session": "a\0b"}, "session: 'a\\x00b' is not text that can be stored"),
    "a long name": ({}, {"user": "a" * 700}, "user: a name of 700 characters is too long"),
    "an odd priority": ({}, {"priority": 9}, "agent: priority: Input should be less than or equal to 5 (it is 9)"),
    "an odd budget": ({}, {"budget": {"max_cost": -1}}, "agent: budget.max_cost: "),
}  # fmt: skip


async def test_what_cant_be_asked_fails_the_workflow_at_once_and_names_the_field(application: Application) -> None:
    good = application.agent({"text": "never"})
    said = dict[str, str]()
    async with application.running(Careless) as client:
        for label, (agent, options, _) in MISUSE.items():
            handle = await client.start_workflow(
                Careless.run,
                args=[good if agent == {} else agent, options],
                id=f"{application.name}-{label}",
                task_queue=application.queue,
            )
            with pytest.raises(WorkflowFailureError) as failure:
                async with asyncio.timeout(SURE_SECONDS):
                    await handle.result()
            cause = failure.value.cause
            assert isinstance(cause, ApplicationError)
            assert (cause.type, cause.non_retryable) == ("BadAsk", True), label
            said[label] = cause.message

    assert {label: MISUSE[label][2] in message for label, message in said.items()} == dict.fromkeys(MISUSE, True), said


async def test_a_name_that_stands_for_another_question_is_refused(application: Application) -> None:
    agent = application.agent({"text": "One."}, {"text": "Two."})
    options = {"session": application.case, "name": "check"}
    async with application.running(OrderWorkflow) as client:
        await end(await application.begin(client, Order(agent, "Check order 17", options), id="again"))
        handle = await application.begin(client, Order(agent, "Check order 18", options), id="again")
        with pytest.raises(WorkflowFailureError) as failure:
            await end(handle)

    assert "was used before for another message" in str(failure.value.cause)


async def test_a_session_that_is_asked_begins_and_ends_within_its_tasks(application: Application) -> None:
    """Each activity more would cost whoever asks a round trip to the server, and an action."""
    order = Order(application.agent({"text": "Done."}), options={"session": application.case})
    async with application.running(OrderWorkflow) as client:
        await application.ask(client, order)
        workflow_id = application.session(client, application.case).workflow_id
        events = (await client.get_workflow_handle(workflow_id).fetch_history()).events
    scheduled = [event.activity_task_scheduled_event_attributes.activity_type.name for event in events]

    assert [name for name in scheduled if name] == ["longhaul.call_model"]
    assert sum(event.HasField("workflow_task_completed_event_attributes") for event in events) == 2
