"""The command line where agents start agents: what waits is listed with its path, and answered as it is shown."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.workflows.letters import until

pytestmark = pytest.mark.server


def script(path: Path, *lines: dict[str, Any]) -> str:
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return f"scripted:{path}"


async def test_what_a_sub_agent_asks_is_listed_with_its_path_and_answered_at_the_lead_s_name(
    cli: Cli, app: Longhaul, tmp_path: Path
) -> None:
    task = {"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": "write it down"}}
    writes = {"id": "w1", "name": "Write", "input": {"file_path": "moon.txt", "content": "full"}}
    scribe = AgentSpec(
        name="scribe",
        model=script(tmp_path / "scribe.jsonl", {"tool_calls": [writes]}, {"text": "It is written."}),
        tools=["Write"],
    )
    model = script(tmp_path / "lead.jsonl", {"tool_calls": [task]}, {"text": "Done by the scribe."})
    lead = AgentSpec(name="lead", model=model, tools=[], agents={"scribe": scribe})
    session = app.session("moon-log", user="ute", agent=lead)
    reply = await session.submit("Log the moon")

    async def listed() -> bool:
        return bool((await app.inbox(user="ute")).calls)

    await until(listed)
    inbox, shown = cli("inbox", "--user", "ute").out, cli("show", "moon-log").out
    (row,) = cli("inbox", "--user", "ute", "--json").document
    (approval,) = re.findall(r"longhaul (approve moon-log w1 --seen=.*)", inbox)
    approved = cli(*shlex.split(approval))
    done = await session.wait(reply)
    after = cli("show", "moon-log").out

    assert inbox.startswith("moon-log of ute, ")
    assert "  of lead › scribe › Write\n" in inbox
    assert (row["session"], row["sub_session"], row["path"]) == ("moon-log", "moon-log.t1", "lead › scribe › Write")
    assert approval in shown
    assert "sub-agent scribe: at work\n  longhaul show moon-log.t1 --user ute --agent scribe\n" in shown
    assert (approved.code, done.get_text_content()) == (0, "Done by the scribe.")
    assert "sub-agent scribe: success\n" in after
    assert "longhaul approve" not in after
    assert "sub-agent: lead › scribe\n" in cli("show", "moon-log.t1").out
