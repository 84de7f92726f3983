"""What a server says of its tools that is not so, and what it tells the model to do."""

import json
import sys
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.activities.mcp import small
from tests.e2e.processes import ROOT
from tests.endless_schemas import doubling
from tests.workflows.conftest import Stage
from tests.workflows.incarnation.test_flat_history import payload_texts
from tests.workflows.operations import calls, results

pytestmark = pytest.mark.server

SEEN = "everything.\\\\x1b[2J\\\\u202egnihton\\\\u200b"


async def test_a_servers_word_counts_only_where_the_operator_trusts_it(unserved: Stage, tmp_path: Path) -> None:
    program = {"command": sys.executable, "args": ["-m", "tests.activities.mcp.liar"], "cwd": str(ROOT)}
    told = {"believed": {"mcp_config": program, "trusted": True}, "doubted": {"mcp_config": program}}
    unserved.settings = unserved.settings.model_copy(update={"mcp": told})
    marks = {name: tmp_path / name for name in told}
    session = unserved.session(
        calls("mcp__believed__look", path=str(marks["believed"])),
        calls("mcp__doubted__look", path=str(marks["doubted"])),
        {"text": "Looked."},
        tools=(),
        mcps=[{"name": name} for name in told],
        permission={"mode": "explore"},
    )
    async with unserved.another_worker():
        done = await session.reply("Look.")
        texts = "\n".join(await payload_texts(unserved.handle(session)))

    (believed, said), (doubted, refusal) = results(done)
    assert (believed, marks["believed"].read_text()) == (ToolResultState.SUCCESS, "x")
    assert (doubted, marks["doubted"].exists()) == (ToolResultState.DENIED, False), refusal
    assert said == "looked"
    assert SEEN in texts
    assert "\x1b[2J" not in texts
    assert "\\u001b" not in texts
    assert "\u202e" not in texts
    assert "\u200b" not in texts


@pytest.mark.parametrize("word", ["properties", "anyOf", "allOf"])
async def test_a_schema_without_end_stops_neither_its_session_nor_others(unserved: Stage, word: str) -> None:
    schema = doubling(word)
    program = {"command": sys.executable, "args": [small.__file__], "env": {"SCHEMA": json.dumps(schema)}}
    unserved.settings = unserved.settings.model_copy(update={"mcp": {"tide": {"mcp_config": program}}})
    session = unserved.session(
        calls("mcp__tide__note", text="slack", x="high"), {"text": "Noted."}, tools=(), mcps=[{"name": "tide"}]
    )
    other = unserved.session({"text": "Here."})
    async with unserved.another_worker():
        asked = await session.reply("Note it.")
        for call in await session.pending():
            await session.confirm(call.call_id, allow=True, input={"text": "ebb", "x": "low"}, approver="bo")
        done = await session.wait(asked.id)
        said = await other.reply("There?")

    ((state, told),) = results(done)
    assert (state, told.endswith(": ebb")) == (ToolResultState.SUCCESS, True) or "can't be applied" in told
    assert (done.get_text_content(), said.get_text_content()) == ("Noted.", "Here.")
