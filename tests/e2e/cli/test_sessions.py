"""The commands that look at sessions, and how they fail."""

import asyncio
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.common import SearchAttributePair, TypedSearchAttributes

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.workflows.contract import SESSION, STATUS, WORKFLOW, SessionStart
from tests.e2e.conftest import CLI, Cli
from tests.e2e.processes import running_with
from tests.limits import SURE_SECONDS
from tests.servers.local import free_port

pytestmark = pytest.mark.server

WRITES = {"id": "write-1", "name": "Write", "input": {"file_path": "moon.txt", "content": "hello"}}
WANTS_TO_EDIT = ({"tool_calls": [WRITES]}, {"text": "Done."})


def test_an_unknown_session_is_a_sentence(cli: Cli) -> None:
    answer = cli("show", "nobody-knows")

    assert answer.code == 2
    assert answer.err.startswith(
        "longhaul: the server knows no session 'nobody-knows', open or closed; see `longhaul sessions`. "
    )
    assert answer.out == ""


async def test_an_empty_list_of_one_user_says_how_much_there_is_without_that_user(cli: Cli, app: Longhaul) -> None:
    session = app.session("nobodys-moon", agent=AgentSpec(model=cli.script(*WANTS_TO_EDIT), tools=["Write"]))
    await session.reply("Write")
    async with asyncio.timeout(SURE_SECONDS):  # the server's index is a moment late
        while True:
            if await app.count_open(without_user=True):
                break
            await asyncio.sleep(0.1)

    listed, inbox = cli("sessions", "--user", "no-such-ana"), cli("inbox", "--user", "no-such-ana")

    numbers = r"without --user: [1-9]\d* open sessions, of which [1-9]\d* have no user"
    assert re.search(rf"no open sessions of user 'no-such-ana'; {numbers}", " ".join(listed.out.split()))
    assert re.search(rf"nothing waits for a person of user 'no-such-ana'; {numbers}", " ".join(inbox.out.split()))
    assert cli("sessions", "--user", "no-such-ana", "--json").document == []


async def test_an_ambiguous_session_names_the_candidates(cli: Cli, app: Longhaul) -> None:
    spec = AgentSpec(model=cli.script({"text": "Hello."}))
    for user in ("ana", "ben o'neill"):
        await app.session("shared", user=user, agent=spec).reply("Hi")

    ambiguous = cli("show", "shared")
    named = cli("show", "shared", "--user", "ben o'neill", "--json")

    assert ambiguous.code == 2
    assert "2 sessions are called 'shared'" in ambiguous.err
    assert "--user ana --agent longhaul" in ambiguous.err
    assert named.document["status"]["user_id"] == "ben o'neill"


async def test_a_session_is_listed_shown_and_exported(cli: Cli, app: Longhaul, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.session("sky", agent=AgentSpec(model=cli.script({"text": "Noted."}))).reply("The sky is blue")
    cli("observe", "sky", "It rains now")
    monkeypatch.setitem(cli.environment, "LONGHAUL_WEB_UI", "https://ui.example")

    listed = cli("sessions", "--json")
    shown = cli("show", "sky")
    exported = cli("state", "export", "sky")

    assert "sky" in [card["session_id"] for card in listed.document]
    assert "\nTemporal's Web UI: https://ui.example/namespaces/default/workflows/longhaul" in shown.out
    assert "> The sky is blue\nNoted.\n> It rains now\n" in shown.out
    steps = cli("show", "sky", "--as", "steps", "--json").document
    told = [(step["kind"], step["source"], step["text"]) for step in steps if step["kind"] == "message"]
    assert ("message", "user", "The sky is blue") in told
    assert ("message", "agent", "Noted.") in told
    assert "agent       Noted.\n" in cli("show", "sky", "--as", "steps").out
    assert cli("show", "sky", "--as", "novels").code == 2
    assert [message["role"] for message in exported.document["context"]] == ["user", "assistant", "user"]


async def test_a_refused_answer_is_the_sessions_sentence_and_shows_up(cli: Cli, app: Longhaul) -> None:
    session = app.session("calm", agent=AgentSpec(model=cli.script({"text": "Hello."})))
    await session.reply("Hi")

    refused = cli("approve", "calm", "call-4")
    status = await session.status()

    assert refused.code == 2
    assert "no call needs a decision" in refused.err
    assert status.refused == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "Hi"], "no model is set"),
        (["result", "s", "c"], "give the result as --output TEXT or as --file F"),
    ],
)
def test_a_misused_command_exits_2_with_a_sentence(cli: Cli, arguments: list[str], sentence: str) -> None:
    answer = cli(*arguments)

    assert answer.code == 2
    assert sentence in answer.err
    assert "Traceback" not in answer.err


def test_an_agent_that_no_file_has_is_told_before_its_missing_model(cli: Cli) -> None:
    (cli.folder / "agents").mkdir()
    (cli.folder / "agents" / "planner.toml").write_text('model = "scripted:script.jsonl"\n')
    trusting = replace(cli, environment=cli.environment | {"LONGHAUL_TRUST": "1"})

    answer = trusting("run", "Hi", "--agent", "planer")

    assert answer.code == 2
    assert "did you mean 'planner'?" in answer.err
    assert answer.err.index("did you mean") < answer.err.index("no model is set")


def test_an_unreachable_server_exits_1_with_a_sentence(cli: Cli) -> None:
    answer = cli("--address", f"127.0.0.1:{free_port()}", "sessions", "--json")

    assert answer.code == 1
    assert answer.err.startswith("longhaul: no Temporal server answers")
    assert answer.out == ""


@pytest.mark.parametrize(
    ("setting", "missing"),
    [({"TEMPORAL_ADDRESS": "127.0.0.1:1"}, "server"), ({"LONGHAUL_STORE": "stone://tablet"}, "store")],
)
def test_the_doctor_exits_1_without_a_server_or_a_store(cli: Cli, setting: dict[str, str], missing: str) -> None:
    answer = replace(cli, environment=cli.environment | setting)("doctor", "--json")

    assert answer.code == 1, answer.err
    assert [one["name"] for one in answer.document["checks"] if one["essential"] and not one["ok"]] == [missing]


def test_the_doctor_finds_a_quick_server_and_keeps_keys_to_itself(cli: Cli) -> None:
    with_key = replace(cli, environment=cli.environment | {"OPENAI_API_KEY": "sk-violet"})

    answer = with_key("doctor", "--json")

    checks = {check["name"]: check for check in answer.document["checks"]}
    assert answer.code == 0, answer.out
    assert checks["server"]["ok"]
    assert checks["search attributes"]["ok"]
    assert checks["timer speed"]["ok"], checks["timer speed"]
    assert checks["OPENAI_API_KEY"]["detail"] == "set"
    assert checks["worker's keys"]["detail"] == "no key of a model provider is set", (
        "its own, and not those of this shell"
    )
    assert "ANTHROPIC_API_KEY" not in checks, "it need not be set here"
    assert checks["worker's rg"]["ok"], checks["worker's rg"]
    assert "sk-violet" not in answer.out


def test_dev_serves_until_it_is_stopped(cli: Cli) -> None:
    port = free_port()
    command = [*CLI, "dev", "--data-dir", "own", "--port", str(port), "--ui-port", str(free_port())]
    keys = {
        "OPENAI_API_KEY": "sk-violet",
        "LONGHAUL_APPROVAL_KEY": "a1:signs-for-everybody-0123456789",
        "LONGHAUL_SECRET_GATE": "gate-9c41f2",
    }
    environment = cli.environment | {"LONGHAUL_TEMPORAL_CLI": str(find_temporal(print))} | keys

    with subprocess.Popen(
        command, env=environment, cwd=cli.folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        own = replace(cli, environment=environment | {"TEMPORAL_ADDRESS": f"127.0.0.1:{port}"})
        ran = own("run", "Hi", "--model", cli.script({"text": "Served."}))
        second, beside = (
            own("dev", "--port", str(port)),
            own("dev", "--data-dir", "own", "--port", str(free_port()), "--ui-port", str(free_port())),
        )
        servers = running_with(f"--port\0{port}\0--http-port")
        known = b"".join(Path(f"/proc/{pid}/environ").read_bytes() for pid in servers)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (cli.folder / "own").glob("temporal*")}
        folder = (cli.folder / "own").stat().st_mode & 0o777
        os.kill(process.pid, signal.SIGTERM)
        code = process.wait(20)

    assert lines[0] == f"Temporal  127.0.0.1:{port}\n"
    assert lines[3] == f"commands  export TEMPORAL_ADDRESS=127.0.0.1:{port}\n"
    assert lines[4].startswith("longhaul worker: polling")
    assert ran.out == "Served.\n"
    assert second.code == 1
    assert f"port {port} of 127.0.0.1 cannot be used" in second.err
    assert (beside.code, "another `longhaul dev` has its database in" in beside.err) == (1, True), beside.err
    assert code == 0
    assert servers
    assert b"PATH=" in known
    assert not any(key.encode() in known for key in keys.values())
    assert folder == 0o700
    assert set(modes.values()) == {0o600}, modes
    assert own("sessions").code == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_dev_is_stopped_while_it_fetches_or_builds_what_it_needs(cli: Cli, number: signal.Signals) -> None:
    builds = cli.folder / "bin" / "go"
    builds.parent.mkdir()
    builds.write_text(f"#!/bin/sh\necho $$ > {cli.folder}/builds\nexec sleep 1000\n")
    builds.chmod(0o755)
    nowhere = {
        "XDG_CACHE_HOME": str(cli.folder / "cache"),
        "PATH": f"{builds.parent}:/bin",
        "LONGHAUL_TEMPORAL_CLI": "",
    }
    away = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}

    with subprocess.Popen(
        [*CLI, "dev"], env=cli.environment | nowhere | away, cwd=cli.folder, stderr=subprocess.PIPE, text=True
    ) as process:
        assert cli.waits_for("builds")
        process.send_signal(number)
        code = process.wait(SURE_SECONDS)

    assert code == 130
    assert not Path(f"/proc/{(cli.folder / 'builds').read_text().strip()}").exists()


@pytest.mark.proves("X4")
async def test_a_session_whose_workers_are_gone_does_not_hold_up_the_inbox(cli: Cli, app: Longhaul) -> None:
    await app.client.start_workflow(
        WORKFLOW,
        SessionStart(session_id="left-alone"),
        id="longhaul/left-alone",
        task_queue="nobody-polls-here",
        search_attributes=TypedSearchAttributes(
            [SearchAttributePair(STATUS, "waiting"), SearchAttributePair(SESSION, "left-alone")]
        ),
    )
    spec = AgentSpec(model=cli.script(*WANTS_TO_EDIT))
    await app.session("asks-in-time", agent=spec).reply("Greet the moon")

    inbox = cli("inbox", "--json")

    assert inbox.code == 0
    assert "asks-in-time" in [call["session"] for call in inbox.document]
    assert "no worker answers for them: " in inbox.err
    assert "left-alone" in inbox.err


async def test_sessions_are_listed_by_each_status_that_there_is(cli: Cli, app: Longhaul) -> None:
    session = app.session("resting", agent=AgentSpec(model=cli.script({"text": "Noted."})))
    await session.reply("Hi")
    await session.pause(by="ana", why="the database is being moved")

    def paused() -> list[str]:
        return [row["session_id"] for row in cli("sessions", "--status", "paused", "--json").document]

    deadline = time.monotonic() + SURE_SECONDS
    while "resting" not in paused() and time.monotonic() < deadline:  # noqa: ASYNC110  it happens in the server
        await asyncio.sleep(0.2)

    assert "resting" in paused()
    assert [cli("sessions", "--status", status).code for status in ("idle", "working", "waiting", "held")] == [
        0,
        0,
        0,
        2,
    ]
