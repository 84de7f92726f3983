"""`longhaul mcp list`, and the doctor on MCP servers: real servers, and no Temporal anywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longhaul.starter.cli.doctor.worker_checks import on_the_mcp_servers
from longhaul.starter.settings import Settings
from tests.activities.mcp.serving import small, stdio
from tests.activities.mcp.small import TOOLS
from tests.e2e.processes import ROOT
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

KEEPER = """
model = "scripted:none"
[[mcps]]
name = "harbour"
enable_tools = ["add", "note", "weather"]
[permission]
rules = [
  { tool_name = "mcp__harbour__note", behavior = "deny" },
  { tool_name = "mcp__harbour__weather", behavior = "allow" },
  { tool_name = "mcp__harbour__add", rule_content = "a=1", behavior = "deny" },
]
"""


def listed(folder: Path, servers: dict[str, Any], *flags: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("LONGHAUL_", "TEMPORAL_"))}
    environment = {
        **ours,
        "TEMPORAL_ADDRESS": "127.0.0.1:1",
        "PYTHONPATH": str(ROOT),
        "LONGHAUL_MCP": json.dumps(servers),
        "LONGHAUL_DATA_DIR": str(folder / "data"),
        "LONGHAUL_SECRET_TIDE_TOKEN": "tide-token-moss",
        "LONGHAUL_TRUST": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "longhaul.starter.cli.main", "mcp", "list", *flags],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SURE_SECONDS,
        check=False,
    )


HARBOUR = {"harbour": {"mcp_config": stdio(), "trusted": True, "effects": {"note": "idempotent"}}}


def test_each_of_the_operators_servers_is_listed_with_what_it_offers(tmp_path: Path) -> None:
    done = listed(tmp_path, HARBOUR)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("harbour (")
    assert lines[0].endswith(" tools")
    assert "  mcp__harbour__add  read, allow  Add two numbers." in lines
    assert any(line.startswith("  mcp__harbour__note  idempotent, ask") for line in lines)


@pytest.mark.proves("X19")
def test_the_servers_of_an_agent_are_listed_with_what_its_rules_would_say(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "keeper.toml").write_text(KEEPER)

    done = listed(tmp_path, HARBOUR, "--agent", "keeper", "--json")

    assert done.returncode == 0, done.stderr
    (harbour,) = json.loads(done.stdout)["servers"]
    assert (harbour["answers"], harbour["trusted"], harbour["is_stateful"], harbour["told"]) == (True, True, False, [])
    assert {tool["name"]: (tool["effect"], tool["behavior"], tool["by_arguments"]) for tool in harbour["tools"]} == {
        "mcp__harbour__add": ("read", "allow", ["deny mcp__harbour__add(a=1)"]),
        "mcp__harbour__note": ("idempotent", "deny", []),
        "mcp__harbour__weather": ("once", "allow", []),
    }


def test_servers_that_do_not_answer_and_names_of_no_tool_are_told_and_the_others_listed(tmp_path: Path) -> None:
    servers = {
        "away": {"mcp_config": {"url": f"http://127.0.0.1:{free_port()}/mcp"}},
        "keyless": {"mcp_config": small(KEY="[secret LOST_KEY]")},
        "none": {"mcp_config": {"command": "no-such-program-of-ours"}},
        "quay": {"mcp_config": small(KEY="[secret TIDE_TOKEN]"), "enable_tools": ["ad", "note"]},
    }

    done = listed(tmp_path, servers, "--json")

    found = {server["name"]: server for server in json.loads(done.stdout)["servers"]}
    assert done.returncode == 1
    assert {name: server["answers"] for name, server in found.items()} == {
        "away": False,
        "keyless": False,
        "none": False,
        "quay": True,
    }
    assert "can't be reached" in found["away"]["told"][0]
    assert "no secret is named 'LOST_KEY'" in found["keyless"]["told"][0]
    assert "there is no program 'no-such-program-of-ours'" in found["none"]["told"][0]
    assert found["quay"]["told"] == [
        "the MCP server 'quay' has no tool 'ad', which its enable_tools names; did you mean 'add'?"
    ]
    assert [tool["name"] for tool in found["quay"]["tools"]] == ["mcp__quay__note"]
    assert "tide-token-moss" not in done.stdout


def test_a_server_that_does_not_answer_is_told_to_people_too(tmp_path: Path) -> None:
    done = listed(tmp_path, {"none": {"mcp_config": {"command": "no-such-program-of-ours"}}})

    assert done.returncode == 1
    assert done.stdout.startswith("none (no-such-program-of-ours): no answer\n  there is no program")
    assert done.stderr == "", "it is told once"


def test_where_no_servers_are_named_it_says_so(tmp_path: Path) -> None:
    empty = listed(tmp_path, {})

    assert (empty.returncode, empty.stdout) == (0, "the settings have no [mcp.NAME]\n")


def test_settings_that_can_t_be_read_are_refused(tmp_path: Path) -> None:
    wrong = listed(tmp_path, {"quay": {"trustd": True}})

    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "mcp.quay.trustd" in wrong.stderr


async def test_the_doctor_looks_at_each_of_the_operators_servers(tmp_path: Path) -> None:
    servers = {
        "away": {"mcp_config": {"url": f"http://127.0.0.1:{free_port()}/mcp"}},
        "quay": {"mcp_config": small(), "effects": {"note": "idempotent"}},
        "slip": {"mcp_config": small(), "disable_tools": ["nte"]},
    }
    settings = Settings(mcp=servers, data_dir=tmp_path)

    found = {check.name: check async for check in on_the_mcp_servers(settings)}
    none = [check async for check in on_the_mcp_servers(Settings(mcp={}, data_dir=tmp_path))]
    (wrong,) = [check async for check in on_the_mcp_servers(Settings(mcp="[", data_dir=tmp_path))]

    assert {title: check.ok for title, check in found.items()} == {
        "mcp away": False,
        "mcp quay": True,
        "mcp slip": False,
    }
    once = len(TOOLS) - len({"note", "grown"})
    assert found["mcp quay"].detail.startswith(f"{once + 1} tools (1 idempotent, {once} once) at ")
    assert "'note' is left out too." in found["mcp slip"].detail
    assert "[mcp.away]" in found["mcp away"].fix
    assert none == []
    assert wrong.detail.startswith("LONGHAUL_MCP")
