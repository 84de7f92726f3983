"""Sessions with tools of real MCP servers: asked, approved, run; servers that are away, and that keep state."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter import render_pending
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.mcp.serving import serving, small
from tests.activities.mcp.small import TOOLS
from tests.activities.process.pids import alive, until
from tests.e2e.processes import WorkerSettings, worker
from tests.servers.local import free_port
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

KEY = "tide-token-9c41f2"
HARBOUR: dict[str, Any] = {"tools": (), "mcps": [{"name": "harbour"}]}
UNASKED: dict[str, Any] = {**HARBOUR, "permission": {"rules": [{"tool_name": "mcp__harbour"}]}}
KEEPING: dict[str, Any] = {"mcp_config": small(), "is_stateful": True}


async def queues_of(stage: Stage, session: Session, tool: str) -> list[str]:
    """In which the calls of the tool were put, in their order."""
    events = (await stage.handle(session).fetch_history()).events
    asked = [event.activity_task_scheduled_event_attributes for event in events]
    return [one.task_queue.name for one in asked if one.activity_type.name == tool]


async def test_a_call_of_a_servers_tool_asks_and_runs_and_its_secret_stays(unserved: Stage, tmp_path: Path) -> None:
    file = tmp_path / "secrets.toml"
    file.write_text(f'TIDE_TOKEN = "{KEY}"\n')
    file.chmod(0o600)
    harbour = {"mcp_config": small(KEEPER="[secret TIDE_TOKEN]"), "disable_tools": ["end"]}
    unserved.settings = unserved.settings.model_copy(update={"secrets_file": file, "mcp": {"harbour": harbour}})
    session = unserved.session(
        {**calls("mcp__harbour__environment"), "expect": {"tools": ["mcp__harbour__add"]}},
        calls("mcp__harbour__add", a=1, b=2),
        calls("mcp__harbour__end"),
        {"text": "Low tide."},
        **HARBOUR,
        permission={"rules": [{"tool_name": "mcp__harbour__add", "rule_content": "a=1"}]},
    )
    async with unserved.another_worker():
        waiting = await session.reply("How is the tide?")
        (call,) = await session.pending()
        await session.confirm(call, allow=True)
        done = await session.wait(waiting.id)
        scheduled = await unserved.scheduled(session)
        texts = await payload_texts(unserved.handle(session))

    (first, environment), second, (third, unknown) = results(done)
    assert call.tool == "mcp__harbour__environment"
    assert [rule.spelt() for rule in call.suggested_rules] == ["mcp__harbour__environment"]
    assert "KEEPER=[secret TIDE_TOKEN]" in environment
    assert second == (ToolResultState.SUCCESS, "3")
    assert (first, third, "mcp__harbour__end" in unknown) == (ToolResultState.SUCCESS, ToolResultState.ERROR, True)
    assert [name for name in scheduled if name.startswith("mcp__")] == [
        "mcp__harbour__environment",
        "mcp__harbour__add",
    ]
    assert "longhaul.examine_calls" not in scheduled
    assert [text for text in texts if KEY in text] == []


async def test_a_session_goes_on_without_a_server_and_has_its_tools_when_it_is_back(unserved: Stage) -> None:
    port = free_port()
    harbour = {"mcp_config": {"url": f"http://127.0.0.1:{port}/mcp"}}
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": harbour}})
    session = unserved.session(
        {"text": "Without.", "expect": {"last_contains": "'harbour' can't be reached"}},
        calls("mcp__harbour__add", a=1, b=2),
        {"text": "With."},
        calls("mcp__harbour__add", a=2, b=2),
        {"text": "Without again."},
        **UNASKED,
    )
    async with unserved.another_worker():
        without = await session.reply("Add.")
        async with serving("streamable-http", port):
            back = await session.reply("And now?")
        gone = await session.reply("And again?")

    assert without.get_text_content() == "Without."
    assert results(back) == [(ToolResultState.SUCCESS, "3")]
    ((state, said),) = results(gone)
    assert (state, gone.get_text_content()) == (ToolResultState.ERROR, "Without again.")
    assert "'harbour' can't be reached" in said
    assert said.endswith("Nothing was done")


async def test_a_server_that_keeps_state_keeps_it_for_its_session_until_it_is_lost(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": KEEPING}})
    notes = [calls("mcp__harbour__note", text=text) for text in ("fog", "rain")]
    one = unserved.session(
        *notes, {"text": "Kept."}, calls("mcp__harbour__note", text="sun"), {"text": "Ok."}, **UNASKED
    )
    other = unserved.session(notes[1], {"text": "Kept."}, **UNASKED)
    async with unserved.another_worker():
        both = results(await one.reply("Note the weather."))
        apart = results(await other.reply("Note the weather."))
        pid = int(both[0][1].partition(":")[0])
        os.kill(pid, signal.SIGKILL)
        after = results(await one.reply("Again."))
        queues = await queues_of(unserved, one, "mcp__harbour__note")

    assert queues == [unserved.settings.task_queue] * 3, "the worker is handed them with the session's steps"
    assert [text.partition(": ")[2] for _, text in (*both, *apart)] == ["fog", "fog, rain", "rain"]
    assert both[1][1].startswith(f"{pid}: ")
    ((state, said),) = after
    assert state is ToolResultState.SUCCESS
    assert said.startswith("[The MCP server 'harbour' restarted before this call")
    assert said.endswith(": sun")


@pytest.mark.proves("X19")
async def test_calls_of_a_session_go_to_the_worker_that_keeps_its_server(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": KEEPING}})
    words = [f"hour {number}" for number in range(10)]
    notes = [calls("mcp__harbour__note", text=text) for text in words]
    session = unserved.session(*notes[:5], {"text": "Kept."}, *notes[5:], {"text": "Kept too."}, **UNASKED)
    async with unserved.another_worker(), unserved.another_worker(), unserved.another_worker():
        came = [*results(await session.reply("Note the hours.")), *results(await session.reply("And the others."))]
        queues = await queues_of(unserved, session, "mcp__harbour__note")

    assert len(queues) <= len(words) + 1, "who does not keep the server is asked once"
    pid = came[0][1].partition(":")[0]
    assert [text for _, text in came] == [f"{pid}: {', '.join(words[: number + 1])}" for number in range(10)]


@pytest.mark.proves("X19")
@pytest.mark.timeout(120)
async def test_a_server_that_keeps_state_dies_with_its_worker_and_begins_again(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": KEEPING}})
    settings = WorkerSettings(
        address=unserved.address,
        task_queue=unserved.settings.task_queue,
        directory=unserved.settings.data_dir,
        tools="",
        further={"LONGHAUL_MCP": json.dumps({"harbour": KEEPING})},
    )
    session = unserved.session(
        calls("mcp__harbour__note", text="fog"),
        {"text": "Kept."},
        calls("mcp__harbour__note", text="rain"),
        {"text": "Kept too."},
        **UNASKED,
    )
    async with worker(settings) as first:
        ((_, before),) = results(await session.reply("Note the fog."))
        pid = int(before.partition(":")[0])
        assert alive(pid)
        await first.kill()
        await until(lambda: not alive(pid))
        async with unserved.another_worker():
            ((state, after),) = results(await session.reply("Note the rain."))

    assert state is ToolResultState.SUCCESS
    assert after.startswith("[The MCP server 'harbour' restarted before this call")
    assert after.endswith(": rain")


@pytest.mark.timeout(120)
async def test_a_worker_that_is_gone_is_looked_for_once_whatever_comes_of_the_calls(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": KEEPING}})
    settings = WorkerSettings(
        address=unserved.address,
        task_queue=unserved.settings.task_queue,
        directory=unserved.settings.data_dir,
        tools="",
        further={"LONGHAUL_MCP": json.dumps({"harbour": KEEPING})},
    )
    session = unserved.session(
        calls("mcp__harbour__note", text="fog"),
        {"text": "Kept."},
        calls("mcp__harbour__end", berth=1),
        calls("mcp__harbour__end", berth=2),
        calls("mcp__harbour__note", text="rain"),
        {"text": "Kept too."},
        **UNASKED,
    )
    async with worker(settings) as first:
        await session.reply("Note the fog.")
        (own,) = await queues_of(unserved, session, "mcp__harbour__note")
        await first.kill()
    async with unserved.another_worker():
        *lost, (state, _) = results(await session.reply("End twice, then note the rain."))
        ends = await queues_of(unserved, session, "mcp__harbour__end")
        (_, note) = await queues_of(unserved, session, "mcp__harbour__note")

    assert [end for end, _ in lost] == [ToolResultState.UNKNOWN] * 2
    assert (state, note) == (ToolResultState.SUCCESS, own)
    assert [queue == own for queue in ends] == [True, False, True, True], "its own queue, once"


@pytest.mark.proves("X19")
@pytest.mark.timeout(120)
async def test_a_servers_question_waits_for_an_answer_until_another_worker_is_there(unserved: Stage) -> None:
    port = free_port()
    harbour = {"mcp_config": {"url": f"http://127.0.0.1:{port}/mcp"}}
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": harbour}})
    session = unserved.session(calls("mcp__harbour__hire"), {"text": "Hired."}, **UNASKED)
    crew = {"action": "accept", "content": {"hands": 4}}
    async with serving("streamable-http", port):
        async with unserved.another_worker():
            waiting = await session.reply("Hire.")
            (asked,) = await session.pending()
        shown = render_pending.pending_call(asked).plain
        commands = render_pending.how_to_answer(session.id, asked).plain
        async with unserved.another_worker():
            with pytest.raises(Refused, match="content does not fit what was asked: 'hands' is 12: give 9 or less"):
                await session.external_result(asked, {"action": "accept", "content": {"hands": 12}})
            await session.external_result(asked, crew, by="ana")
            second = await session.wait(waiting.id)
            (sign,) = await session.pending()
            by_signal = {"results": [{"id": sign.call_id, "output": "accept"}]}
            await unserved.handle(session).signal("external_result", by_signal)
            done = await session.wait(waiting.id)
            scheduled = await unserved.scheduled(session)

    ((state, said),) = results(done)
    assert (asked.tool, asked.waits_for, asked.asked is not None) == ("mcp__harbour__hire", "outside", True)
    assert "The MCP server 'harbour' asks: Whom? (hands: integer, minimum 1, maximum 9, Hands;" in shown
    assert f"longhaul result {session.id} {asked.call_id} --output decline" in commands
    assert second.metadata["waiting_for"] == [asked.call_id]
    assert "https://harbour.example/sign?crew=9" in sign.reason
    assert (state, said.endswith("signed: accept")) == (ToolResultState.SUCCESS, True)
    assert '"hands": 4' in said
    assert scheduled.count("mcp__harbour__hire") == 3


@pytest.mark.proves("X19")
async def test_all_of_five_hundred_tools_of_a_server_can_be_called(unserved: Stage) -> None:
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": {"mcp_config": small(MANY="500")}}})
    session = unserved.session(
        {**calls("mcp__harbour__tide_0"), "expect": {"tools": [f"mcp__harbour__tide_{at}" for at in range(500)]}},
        calls("mcp__harbour__tide_499"),
        {"text": "High."},
        **UNASKED,
    )
    async with unserved.another_worker():
        done = await session.reply("How is the tide?")

    assert [said for _, said in results(done)] == ["tide_0 is high", "tide_499 is high"]


@pytest.mark.proves("X19")
async def test_what_a_server_offers_after_a_call_is_there_in_the_next_step(unserved: Stage, tmp_path: Path) -> None:
    growing = {"mcp_config": small(GROWN=str(tmp_path / "grown"))}
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": growing}})
    before = {name for name in TOOLS if name != "grown"}
    session = unserved.session(
        {**calls("mcp__harbour__grow"), "expect": {"tools": named(before)}},
        {**calls("mcp__harbour__grown"), "expect": {"tools": named({*before, "grown"})}},
        calls("mcp__harbour__add", a=1, b=2),
        {"text": "Grown."},
        **UNASKED,
    )
    # The lists of the other worker are as old as the reply.
    async with unserved.another_worker(), unserved.another_worker():
        done = await session.reply("Grow.")
        scheduled = await unserved.scheduled(session)

    assert [said for _, said in results(done)] == ["grown", "new", "3"]
    assert [name for name in scheduled if name == "longhaul.prepare_reply"] == ["longhaul.prepare_reply"]


async def test_a_reply_goes_on_with_its_tools_where_its_server_gives_no_new_list(
    unserved: Stage, tmp_path: Path
) -> None:
    grown = str(tmp_path / "grown")
    unserved.settings = unserved.settings.model_copy(
        update={"mcp": {"harbour": {"mcp_config": small(GROWN=grown, UNLISTED=grown)}}}
    )
    tools = named({name for name in TOOLS if name != "grown"})
    session = unserved.session(
        {**calls("mcp__harbour__grow"), "expect": {"tools": tools}},
        {**calls("mcp__harbour__grow"), "expect": {"tools": tools, "last_contains": "the old one counts"}},
        {**calls("mcp__harbour__add", a=1, b=2), "expect": {"tools": tools}},
        {"text": "The same."},
        **UNASKED,
    )
    async with unserved.another_worker():
        done = await session.reply("Grow.")
        read = (await session.state()).model_dump_json()

    assert (done.get_text_content(), [said for _, said in results(done)]) == ("The same.", ["grown", "grown", "3"])
    assert read.count("gave no list of them") == 1, "of two lists that were not to be had"


def named(tools: set[str]) -> list[str]:
    return [f"mcp__harbour__{name}" for name in TOOLS if name in tools]


@pytest.mark.proves("X19")
async def test_what_a_server_has_a_model_asked_is_the_sessions_to_pay(unserved: Stage, tmp_path: Path) -> None:
    script = tmp_path / "sea.jsonl"
    script.write_text('{"text": "seven", "usage": {"input_tokens": 400, "output_tokens": 60}}\n{"text": "eight"}\n')
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"harbour": {"mcp_config": small()}}})
    allowed = {"name": "harbour", "sampling": {"model": f"scripted:{script}", "max_calls": 1}}
    session = unserved.session(
        calls("mcp__harbour__sound", words="How deep?"),
        calls("mcp__harbour__sound", words="And now?"),
        {"text": "Deep."},
        **{**UNASKED, "mcps": [allowed]},
        budget={"max_tokens": 10_000_000},
    )
    async with unserved.another_worker():
        done = await session.reply("Sound the depth.")
        status = await session.status()

    assert [said for _, said in results(done)] == ["seven (endTurn)", "eight (endTurn)"]
    first, second = done.get_tool_results()
    assert first.metadata["sampled"] == [{"asked": "How deep?", "answered": "seven", "model": "scripted"}]
    assert second.metadata["sampled"][0]["answered"] == "eight"
    taken = status.by_model[f"scripted:{script}"]
    assert (taken.calls, taken.usage.input_tokens > 400, taken.usage.output_tokens > 60) == (2, True, True)
    assert status.budget is not None
    assert status.budget.spent["tokens"] > 460
