"""What a worker's log tells its operator where nothing is switched on: a line each, with names and nobody's words."""

import re
from pathlib import Path

import pytest

from longhaul.starter.dev_server.dev_server import DevServer
from tests.e2e.conftest import Cli
from tests.e2e.crash.crash_stage import until
from tests.e2e.processes import WorkerSettings, environment, worker

pytestmark = pytest.mark.server

SECRET = "sk-lagoon-0815"
WRITES = {"id": "write-3", "name": "Write", "input": {"file_path": "reef.txt", "content": f"corals {SECRET}"}}
DENIED = {"id": "bash-4", "name": "Bash", "input": {"command": f"rm corals-{SECRET}"}}
REFUSED = {"id": "write-5", "name": "Write", "input": {"file_path": "atoll.txt", "content": "corals"}}
AGENT = """name = "diver"
tools = ["Write", "Bash"]
[permission]
rules = [{ tool_name = "Bash", rule_content = "rm:*", behavior = "deny" }]
"""


async def until_waiting(cli: Cli, call_id: str) -> None:
    async def waits() -> bool:
        return call_id in cli("show", "cove", "--user", "ana", "--agent", "diver").out

    await until(waits, f"the call {call_id}")


async def test_a_workers_log_tells_its_operator_what_was_decided_refused_and_failed(
    temporal_server: DevServer, tmp_path: Path
) -> None:
    given = WorkerSettings(
        address=temporal_server.address, task_queue=f"operator-{tmp_path.name}", directory=tmp_path / "data", tools="",
        further={"LONGHAUL_SECRET_LAGOON": SECRET},
    )  # fmt: skip
    cli = Cli(environment(given) | {"TERM": "xterm"}, tmp_path)
    agent = tmp_path / "diver.toml"
    agent.write_text(AGENT)
    model = cli.script(
        {"text": "corals", "tool_calls": [WRITES, DENIED]},
        {"text": "corals again", "tool_calls": [REFUSED]},
        {"faults": [{"kind": "invalid_request"}]},
    )
    start = ("run", "count the corals", "--agent", str(agent), "--model", model, "--session", "cove", "--user", "ana")
    async with worker(given) as one:
        first = cli(*start, "--json")
        cli("approve", "cove", "nothing-7", "--user", "ana", "--agent", "diver")
        yes = cli("approve", "cove", "write-3", "--user", "ana", "--agent", "diver", "--as", "bea")
        assert (first.code, yes.code) == (3, 0), first.err + yes.err
        await until_waiting(cli, "write-5")
        no = cli("deny", "cove", "write-5", "--user", "ana", "--agent", "diver", "--as", "bea", "--reason", "no corals")
        await until(lambda: one.has_said("failed"), "the checkpoint behind the reply")
        one.ask_to_stop()
        await one.wait()
        written = one.log.read_text()

    told = [line.partition(":longhaul.operator:")[::2] for line in written.splitlines() if "longhaul.operator" in line]
    assert no.code == 0, no
    assert [(level, re.sub(r"reply \S+", "reply R", words)) for level, words in told] == [
        ("WARNING", "session cove: refused the operation confirm"),
        ("INFO", "session cove: bea approved the call write-3 of Write"),
        ("WARNING", "session cove: permission denied the call bash-4 of Bash"),
        ("WARNING", "session cove: bea denied the call write-5 of Write"),
        ("WARNING", "session cove: the reply R failed: invalid_request"),
    ]
    assert [word for word in ("corals", SECRET, "sk-lagoon", "sk-") if word in written] == []
