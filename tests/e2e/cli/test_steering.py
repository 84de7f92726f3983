"""The commands that steer: pause, step, resume, say, interrupt of a request that waits."""

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli

pytestmark = pytest.mark.server

WRITES = {"id": "write-1", "name": "Write", "input": {"file_path": "moon.txt", "content": "hello"}}


@pytest.mark.proves("D1")
async def test_a_session_is_paused_stepped_told_something_and_let_go_on(cli: Cli, app: Longhaul) -> None:
    model = cli.script({"text": "Hello."}, {"tool_calls": [WRITES]}, {"text": "Left alone."})
    session = app.session("ebb", agent=AgentSpec(model=model))
    await session.reply("Hello")

    paused = cli("pause", "ebb", "--why", "low water", "--json")
    again = cli("pause", "ebb")
    asked = cli("say", "ebb", "Write a note", "--json")
    other = cli("say", "ebb", "Write another", "--request-id", "r-other")
    shown = cli("show", "ebb")
    listed = cli("inbox", "--limit", "1000")  # others wait on the same server
    stepped = cli("step", "ebb")
    waiting = await session.wait(asked.document["reply_id"])
    no_step = cli("step", "ebb")
    dropped = cli("interrupt", "ebb", "--request", "r-other", "--json")
    now = cli("say", "ebb", "Leave it alone", "--now", "--json")
    both = cli("say", "ebb", "What now?", "--now", "--interrupt")
    cli("deny", "ebb", "--reason", "not now")
    resumed = cli("resume", "ebb")
    done = await session.wait(now.document["reply_id"])

    assert (paused.document["already"], again.out) == (False, "ebb was paused already\n")
    assert "low water" in shown.out
    assert "low water" in listed.out
    assert (other.code, stepped.out) == (0, "ebb takes one step\n")
    assert waiting.metadata["waiting_for"] == ["write-1"]
    assert (no_step.code, "there is no step to take" in no_step.err) == (2, True)
    assert dropped.document["interrupted"] in other.out
    assert (both.code, "give one of the two" in both.err) == (2, True)
    assert resumed.out == "ebb continues\n"
    assert (done.id, done.get_text_content()) == (waiting.id, "Left alone.")
