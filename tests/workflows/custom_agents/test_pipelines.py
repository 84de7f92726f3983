"""Pipelines as custom agents on the real server: nobody has to wait for them, and nothing is asked twice."""

from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.session import Session
from tests.workflows.children.trees import agent, child_of, runs
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import calls, push_over, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server


def pipeline(stage: Stage, kind: str, agents: dict[str, Any], **spec: Any) -> Session:
    made = AgentSpec.model_validate({"name": "lamp", "custom_agent": kind, "tools": (), "agents": agents, **spec})
    return stage.app.session(f"{stage.name}-{kind}", agent=made)


def says(text: str, hears: str = "") -> Line:
    return {"text": text, "expect": {"last_contains": hears}} if hears else {"text": text}


@pytest.mark.proves("C5")
async def test_a_chain_outlives_its_workers_and_a_continue_as_new_and_asks_each_once(unserved: Stage) -> None:
    stage = unserved
    agents = {
        "scout": agent(stage, says("Seven leaks.")),
        "clerk": agent(stage, {**calls("send", to="Ana"), "expect": {"last_contains": "Seven leaks."}}, says("Sent.")),
        "judge": agent(stage, says("Well done.", hears="Sent.")),
    }
    session = pipeline(stage, "sequential", agents)
    async with stage.another_worker():
        started = await session.submit("Look at the hull")

        async def asks() -> bool:
            return await session.has_started() and bool(await session.tree.pending())

        await until(asks)
        await push_over(stage, session)
    async with stage.another_worker():
        (waiting,) = await session.tree.pending()
        await waiting.session.confirm(waiting.call, allow=True)
        done = await session.wait(started)

        assert (done.error, done.get_text_content()) == (None, "Well done.")
        assert waiting.call.path == "lamp › clerk › send"
        children = (await session.status()).children
        assert [(child.agent, child.outcome) for child in children] == [(name, "success") for name in agents]
        sessions = [child_of(stage, session, child.call_id, child.agent) for child in children]
        assert [await runs(stage, one) for one in sessions] == [1, 1, 1]
        assert await failure_of_replay(stage, session) is None


@pytest.mark.proves("C5")
async def test_they_speak_in_turn_until_the_words_come_that_end_it(stage: Stage) -> None:
    agents = {
        "poet": agent(stage, says("Rose", hears="Name the boat")),
        "critic": agent(stage, says("AGREED", hears="<said by='poet'>\nRose\n</said>")),
    }
    session = pipeline(stage, "round_robin", agents, custom_agent_config={"rounds": 5, "until": "AGREED"})

    done = await session.reply("Name the boat")

    assert (done.error, done.get_text_content()) == (None, "AGREED")
    assert [child.agent for child in (await session.status()).children] == ["poet", "critic"]


async def test_side_by_side_they_answer_under_their_names(stage: Stage) -> None:
    session = pipeline(stage, "fanout", {name: agent(stage, says(f"I am {name}.")) for name in ("ana", "ben")})

    done = await session.reply("Who are you?")

    assert done.get_text_content() == "## ana\n\nI am ana.\n\n## ben\n\nI am ben."


async def test_a_setting_that_is_none_of_the_custom_agent_s_is_told_at_the_first_request(stage: Stage) -> None:
    session = pipeline(stage, "sequential", {"poet": agent(stage, says("Never."))}, custom_agent_config={"rounds": 3})

    done = await session.reply("Begin")

    assert done.finished_reason is FinishedReason.ERROR
    assert done.error is not None
    assert "there is no custom_agent_config.rounds" in done.error.message
