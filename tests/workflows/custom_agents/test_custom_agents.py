"""Agents of one's own on the real server: code makes replies, with the operations and the durability of any session."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from longhaul.activities.custom_agents.custom_agent import CustomAgentSession
from longhaul.agent.values.conversation.messages import FinishedReason, Msg
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.pipelines import sequential_pipeline
from longhaul.starter.client.session import Session
from longhaul.starter.render_session import head
from tests.e2e.processes import worker
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.custom_agents.own_agents import Teller
from tests.workflows.operations import next_call, push_over, recorded, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

MODULES = f"{TOOLS},examples.custom_agents,tests.workflows.custom_agents.own_agents"


@pytest.fixture
async def custom_agents(unserved: Stage) -> AsyncIterator[Stage]:
    """A stage with one worker that has the custom agents of the examples, and those of these tests."""
    unserved.settings.tools = MODULES
    async with unserved.another_worker():
        yield unserved


def custom_agent(stage: Stage, name: str, **spec: Any) -> Session:
    """A session that nobody has written to, of an agent without a model unless one is given."""
    given = {"name": "lamp", "custom_agent": name, "tools": ("fetch", "send"), **spec}
    agent = AgentSpec.model_validate({"workspace": Workspace(root=str(stage.workspace)), **given})
    return stage.app.session(f"{stage.name}-{name}", agent=agent)


def sub_agent(stage: Stage, *said: str) -> dict[str, Any]:
    return {"model": stage.script(*({"text": text} for text in said)), "tools": []}


def thoughts(message: Msg) -> list[str]:
    return [block.thinking for block in message.content if block.type == "thinking"]


@pytest.mark.proves("C13")
async def test_a_pipeline_without_a_model_asks_before_it_writes(custom_agents: Stage) -> None:
    (custom_agents.workspace / "a.txt").write_text("one two three")
    (custom_agents.workspace / "b.txt").write_text("four")
    session = custom_agent(custom_agents, "word_count", tools=("Read", "Write"))

    started = await session.submit("Count a.txt, b.txt and c.txt")

    async def asks() -> bool:
        return bool(await session.pending())

    await until(asks)
    (call,) = await session.pending()
    assert call.tool == "Write"
    await session.confirm(call, allow=True)
    done = await session.wait(started)

    assert (done.finished_reason, done.error) == (FinishedReason.COMPLETED, None)
    assert done.get_text_content().splitlines()[2] == "c.txt: not read"
    assert (custom_agents.workspace / "counts.md").read_text() == done.get_text_content()
    assert [result.name for result in done.get_tool_results()] == ["Read", "Read", "Read", "Write"]
    assert await failure_of_replay(custom_agents, session) is None


@pytest.mark.proves("C13")
async def test_a_router_hands_a_request_to_one_of_two_agents(custom_agents: Stage) -> None:
    agents = {
        "billing": sub_agent(custom_agents, "It is refunded."),
        "support": sub_agent(custom_agents, "Turn it off and on."),
    }
    session = custom_agent(custom_agents, "router", agents=agents)

    refunded = await session.reply("I want a refund")
    await session.observe("This is urgent")
    helped = await session.reply("It does not start")

    assert refunded.get_text_content() == "It is refunded."
    assert helped.get_text_content() == "Turn it off and on."
    tasks = [call.input for message in (refunded, helped) for call in message.get_tool_calls()]
    assert [("billing" in task, "Urgent!" in task) for task in tasks] == [(True, False), (False, True)]
    assert "I hand this to support." in str(helped.content)
    assert [child.agent for child in (await session.status()).children] == ["billing", "support"]


@pytest.mark.proves("C13")
async def test_a_debate_of_two_is_judged_by_the_agent_s_own_model(custom_agents: Stage) -> None:
    agents = {"advocate": sub_agent(custom_agents, "Yes."), "sceptic": sub_agent(custom_agents, "No.")}
    padding = ({"text": "of no step"} for _ in range(4))
    judge = {"text": "The sceptic is.", "expect": {"last_contains": "advocate: Yes.\nsceptic: No.", "messages": 1}}
    session = custom_agent(
        custom_agents, "debate", agents=agents, model=custom_agents.script(*padding, judge), max_children=4
    )

    done = await session.reply("Is it true?")

    assert (done.error, done.get_text_content()) == (None, "The sceptic is.")
    assert thoughts(done) == ["The sceptic is."]
    assert [call.name for call in done.get_tool_calls()] == ["Agent"] * 4
    assert await failure_of_replay(custom_agents, session) is None


async def test_a_custom_agent_hears_what_was_said_before_its_request(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "teller")

    await session.reply("Good morning")
    await session.observe(Msg(name="ana", role="user", content="It rains."))
    told = await session.reply("What was said?")

    assert told.get_text_content() == "user: Good morning; ana: It rains."


async def test_a_custom_agent_in_a_hub_hears_the_others_and_is_heard(custom_agents: Stage) -> None:
    ana, lamp = (
        custom_agents.session({"text": "The tide is high."}, {"text": "-"}, tools=()),
        custom_agent(custom_agents, "teller"),
    )
    await lamp.reply("Good morning")

    async with custom_agents.app.hub(f"quay-{custom_agents.name}", {"ana": ana, "lamp": lamp}) as hub:
        last = await sequential_pipeline(hub.agents())

    assert last is not None
    first, of_ana = last.get_text_content().split("; ")
    assert (first, of_ana.partition("\n")[0]) == (
        "user: Good morning",
        f"ana: <said by='ana' hub='quay-{custom_agents.name}'>",
    )
    assert [m.get_text_content() async for m in ana.transcript() if m.name == "lamp" and "The tide" in str(m.content)]


async def test_a_denied_call_is_the_code_s_to_deal_with_and_an_interrupt_has_its_words(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "teller")
    first = await session.submit("send Ana Ben")

    async def asks() -> bool:
        return bool(await session.pending())

    await until(asks)
    (to_ana,) = await session.pending()
    await session.confirm(to_ana, allow=False, reason="not her")
    to_ben = await next_call(session, to_ana)
    await session.confirm(to_ben, allow=True)
    done = await session.wait(first)
    second = await session.submit("send Cleo")
    await until(asks)
    await session.interrupt()
    stopped = await session.wait(second)

    assert done.get_text_content().startswith("denied: This call was denied")
    assert done.get_text_content().endswith("success: sent '' to Ben")
    assert stopped.finished_reason is FinishedReason.INTERRUPTED
    assert stopped.get_text_content() == "Stopped over send."
    assert await failure_of_replay(custom_agents, session) is None


async def test_code_that_raises_ends_the_reply_with_its_place_and_not_with_its_words(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "teller")

    failed = await session.reply("fail")
    elsewhere = await session.reply("fail elsewhere")
    left = await session.reply("leave")
    again = await session.reply("form ana")

    assert left.error
    assert left.error.message == "The custom agent 'teller' failed: its code raised SystemExit."
    assert elsewhere.error
    assert elsewhere.error.message.startswith("The custom agent 'teller' failed: TypeError in own_agents.py, line ")
    assert failed.finished_reason is FinishedReason.ERROR
    assert failed.error
    assert failed.error.type == "custom_agent"
    assert failed.error.message.startswith("The custom agent 'teller' failed: LookupError in own_agents.py, line ")
    assert "for the log alone" not in failed.error.message
    assert again.get_text_content() == '{"words": "no form was asked for"}'


async def test_code_that_never_comes_back_is_given_up(custom_agents: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    # Together less than the code takes on a fast machine: what comes within the grace counts.
    monkeypatch.setattr("longhaul.activities.custom_agents.custom_agent_turns.OWN_SECONDS", 0.1)
    monkeypatch.setattr("longhaul.activities.process.threads.GRACE_SECONDS", 0.1)
    session = custom_agent(custom_agents, "slow")

    failed = await session.reply("Go")

    assert failed.error
    assert "took longer than" in failed.error.message


async def test_an_answer_in_a_form_is_checked(custom_agents: Stage) -> None:
    schema = {"type": "object", "properties": {"words": {"type": "array", "maxItems": 2}}, "required": ["words"]}
    session = custom_agent(custom_agents, "teller", react_config={"structured_output_grace_iters": 1})

    fits = await session.reply("form ana ben", structured_model=schema)
    does_not = await session.reply("form ana ben cleo", structured_model=schema)

    assert fits.structured_output == {"words": ["ana", "ben"]}
    assert does_not.finished_reason is FinishedReason.UNSTRUCTURED
    assert "does not have the form" in does_not.get_text_content()


async def test_a_custom_agent_that_nobody_has_is_heard_of_with_the_nearest_name(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "roter")
    await session.submit("Go")
    lacks = list[str]()

    async def told() -> bool:
        lacks[:] = [entry.why for entry in await recorded(custom_agents, session) if entry.kind == "worker_lacks"]
        return bool(lacks)

    await until(told)
    assert "no custom agent is named 'roter'" in lacks[0]
    assert "did you mean 'router'?" in lacks[0]


@pytest.mark.proves("C13")
async def test_a_reply_goes_on_where_it_was_after_a_kill_and_a_continue_as_new(unserved: Stage) -> None:
    unserved.settings.tools = MODULES
    settings = unserved.worker_settings
    session = custom_agent(unserved, "teller")
    async with worker(settings) as first:
        started = await session.submit("send Ana Ben")

        async def asks() -> bool:
            return await session.has_started() and bool(await session.pending())

        await until(asks)
        (to_ana,) = await session.pending()
        await session.confirm(to_ana, allow=True)
        to_ben = await next_call(session, to_ana)
        await first.kill()
    async with unserved.another_worker():
        await push_over(unserved, session)
        await session.confirm(to_ben, allow=True)
        done = await session.wait(started)

        assert done.get_text_content() == "success: sent '' to Ana | success: sent '' to Ben"
        assert [result.name for result in done.get_tool_results()] == ["send", "send"]
        assert await failure_of_replay(unserved, session) is None


async def test_a_step_too_many_ends_the_reply_in_words(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "teller", react_config={"max_iters": 3})

    done = await session.reply("fetch 9")

    assert done.finished_reason is FinishedReason.EXCEED_MAX_ITERS
    assert "teller is not done" in done.get_text_content()
    assert len(done.get_tool_results()) == 3


@pytest.mark.proves("C13")
async def test_code_that_was_changed_in_mid_reply_is_told_of(
    custom_agents: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = custom_agent(custom_agents, "teller")
    started = await session.submit("send Ana")

    async def asks() -> bool:
        return bool(await session.pending())

    async def changed(_: Teller, msg: Msg, session: CustomAgentSession) -> str:
        page = await session.call("fetch", page=3)
        return f"{msg.get_text_content()}: {page.text[:10]}"

    await until(asks)
    monkeypatch.setattr(Teller, "reply", changed)
    (call,) = await session.pending()
    await session.confirm(call, allow=True)
    stopped = await session.wait(started)
    again = await session.reply("fetch")

    assert stopped.error
    assert (
        "step 1 of this reply was recorded as 'call send', and the code comes to 'call fetch'" in stopped.error.message
    )
    assert [result.name for result in stopped.get_tool_results()] == ["send"]
    assert again.get_text_content() == "fetch: <<page 3>>"
    assert await failure_of_replay(custom_agents, session) is None


async def test_a_budget_counts_each_step_as_a_call_and_needs_no_price_of_no_model(custom_agents: Stage) -> None:
    budget = {"max_calls": 4, "max_cost": 1.0, "max_tokens": 100, "on_exhaustion": "stop"}
    session = custom_agent(custom_agents, "teller", budget=budget)

    enough = await session.reply("fetch 1")
    spent = await session.reply("fetch 9")

    assert (enough.error, enough.get_text_content()) == (None, "<<page 0>>")
    assert spent.finished_reason is FinishedReason.OUT_OF_BUDGET
    assert len(spent.get_tool_results()) == 2
    status = await session.status()
    assert (status.custom_agent, status.model, status.input_tokens) == ("teller", "", 0)
    assert "agent lamp, custom agent teller, mode" in head(status).plain


async def test_a_custom_agent_may_be_a_sub_agent_whose_calls_wait_at_the_root(custom_agents: Stage) -> None:
    writer = {"custom_agent": "teller", "tools": ["send"]}
    session = custom_agent(custom_agents, "router", agents={"support": writer, "billing": writer})
    below = await session.submit("send Ana")
    found = list[Any]()

    async def waits() -> bool:
        if not await session.has_started():
            return False
        found[:] = await session.tree.pending()
        return bool(found)

    await until(waits)
    assert [each.call.path for each in found] == ["lamp › support › send"]
    await found[0].session.confirm(found[0].call, allow=True)
    assert (await session.wait(below)).get_text_content() == "success: sent '' to Ana"


async def test_a_thought_is_interrupted_and_a_message_for_at_once_comes_next(custom_agents: Stage) -> None:
    slow = {"text": "Nobody.", "delay_ms": 60_000}
    agents = {"advocate": sub_agent(custom_agents, "Yes."), "sceptic": sub_agent(custom_agents, "No.")}
    model = custom_agents.script(*({"text": "of no step"} for _ in range(4)), slow)
    session = custom_agent(custom_agents, "debate", agents=agents, model=model)
    started = await session.submit("Is it true?")

    async def thinks() -> bool:
        return await session.has_started() and (await session.status()).model_calls == 4 and not await session.pending()

    async def asked() -> bool:
        return (await custom_agents.scheduled(session)).count("longhaul.call_model") == 5

    await until(thinks)
    await until(asked)
    await session.interrupt()
    stopped = await session.wait(started)

    assert (stopped.finished_reason, thoughts(stopped)) == (FinishedReason.INTERRUPTED, [])
    assert len(stopped.get_tool_results()) == 4
    assert await failure_of_replay(custom_agents, session) is None


async def test_what_is_long_ago_is_left_out_and_requests_are_found_where_they_stand(custom_agents: Stage) -> None:
    session = custom_agent(custom_agents, "teller", model_config={"context_length": 1_000})

    told = [(await session.reply(f"Day {day}: {'rain ' * 250}")).get_text_content() for day in range(5)]
    assert told[0] == "nothing heard"
    assert [text[:11] for text in told[1:]] == ["user: Day 0"] * 4
    assert 1 <= told[4].count("Day ") < 4
    fetched = await session.reply("fetch 3")

    assert fetched.get_text_content() == "<<page 0>> <<page 1>> <<page 2>>"
    status = await session.status()
    assert (status.compressions > 0, status.compression_error) == (True, "")
    assert await failure_of_replay(custom_agents, session) is None
