"""Commands of a machine whose clock is a day off: what ends, and what is late, goes by the server's."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.e2e.processes import ROOT
from tests.limits import SURE_SECONDS

pytestmark = pytest.mark.server

WRITES = {"id": "write-1", "name": "Write", "input": {"file_path": "moon.txt", "content": "hello"}}


def by_wrong_clock(cli: Cli, hours: int, *arguments: str) -> str:
    """What the command says there."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.wrong_clock", str(hours), *arguments],
        env=cli.environment | {"COLUMNS": "160"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SURE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def in_hours(moment: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.now(UTC)) / timedelta(hours=1)


async def waiting(cli: Cli, app: Longhaul, name: str) -> None:
    deadline: dict[str, Any] = {"deadline": {"expire_after": "1h"}}
    permission = PermissionContext.model_validate(deadline)
    spec = AgentSpec(model=cli.script({"tool_calls": [WRITES]}, {"text": "Done."}), permission=permission)
    await app.session(name, user="clock", agent=spec).reply("Write")


@pytest.mark.parametrize("hours", [-24, 24])
async def test_a_rule_lasts_as_long_as_was_said(cli: Cli, app: Longhaul, hours: int) -> None:
    name = f"clock-{hours}"
    await waiting(cli, app, name)
    session = app.session(name, user="clock", agent=AgentSpec())
    at = (name, "--user", "clock")

    by_wrong_clock(cli, hours, "rules", "add", *at, "--deny", "Bash(rm:*)", "--until", "8h")
    listed = by_wrong_clock(cli, hours, "rules", "list", *at)
    (rule,) = [one for one in await session.rules.listed() if one.rule_content == "rm:*"]
    by_wrong_clock(cli, hours, "approve", *at, "write-1", "--accept-rules", "--until", "2h")
    (accepted,) = [one for one in await session.rules.listed() if one.tool_name == "Write"]

    assert 7.9 < in_hours(rule.expires_at) <= 8
    assert 1.9 < in_hours(accepted.expires_at) <= 2
    assert "Bash(rm:*)" in listed
    assert "expired" not in listed


async def test_a_call_is_late_when_it_is_for_its_session(cli: Cli, app: Longhaul) -> None:
    await waiting(cli, app, "clock-late")

    every = json.loads(by_wrong_clock(cli, 24, "inbox", "--user", "clock", "--json"))
    late = json.loads(by_wrong_clock(cli, 24, "inbox", "--user", "clock", "--overdue", "--json"))

    assert "clock-late" in {row["session"] for row in every}
    assert late == []
