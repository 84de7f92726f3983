"""The command line where agents start agents: what waits is listed with its path, and answered as it is shown."""

import json
import re
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli
from tests.e2e.terminal import Terminal, at_a_terminal
from tests.workflows.operations import until

pytestmark = pytest.mark.server

QUESTION = "[q] later:"


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
    brief, inbox = cli("inbox", "--user", "ute").out, cli("inbox", "--user", "ute", "--long").out
    shown = cli("show", "moon-log").out
    (row,) = cli("inbox", "--user", "ute", "--json").document
    (approval,) = re.findall(r"longhaul (approve moon-log w1 --seen=.*)", inbox)
    approved = cli(*shlex.split(approval))
    done = await session.wait(reply)
    after = cli("show", "moon-log").out

    assert re.search(r"\d+ s +moon-log +ute +w1 +lead › scribe › Write moon.txt\n$", brief), brief
    assert inbox.startswith("moon-log of ute, ")
    assert "  of lead › scribe › Write\n" in inbox
    assert (row["session"], row["sub_session"], row["path"]) == ("moon-log", "moon-log.t1", "lead › scribe › Write")
    assert approval in shown
    assert "sub-agent scribe: at work\n  longhaul show moon-log.t1 --user ute --agent scribe\n" in shown
    assert (approved.code, done.get_text_content()) == (0, "Done by the scribe.")
    assert "sub-agent scribe: success\n" in after
    assert "longhaul approve" not in after
    assert "sub-agent: lead › scribe\n" in cli("show", "moon-log.t1").out


def two_scribes(tmp_path: Path, *, sleeps: bool = False) -> str:
    """An agent file: a lead with two tasks for scribes, of which the second one sleeps, or asks as the first one."""
    first, second = ({"id": f"w{n}", "name": "Write", "input": {"file_path": f"{n}.txt", "content": n}} for n in "12")
    naps = {"id": "n1", "name": "sleep", "input": {"for": "1h"}}
    tasks = [{"id": f"t{n}", "name": "Agent", "input": {"agent": f"scribe{n}", "task": "Write."}} for n in "12"]
    lines = ['name = "lead"', "tools = []"]
    model = script(tmp_path / "lead.jsonl", {"tool_calls": tasks}, {"text": "Both have written."})
    lines.append(f'model = "{model}"')
    for number, calls in (("1", [first]), ("2", [naps if sleeps else second])):
        own = script(tmp_path / f"{number}.jsonl", {"tool_calls": calls}, {"text": "Written."})
        lines += [f"[agents.scribe{number}]", f'model = "{own}"', 'tools = ["Write", "sleep"]']
    (tmp_path / "lead.toml").write_text("\n".join(lines))
    return str(tmp_path / "lead.toml")


def test_without_a_terminal_it_is_said_what_sub_agents_ask_and_nothing_is_waited_for_that_nobody_answers(
    cli: Cli, tmp_path: Path
) -> None:
    ended = cli("run", "Write", "--session", "two", "--agent", two_scribes(tmp_path))
    again = cli("run", "More", "--session", "three", "--agent", two_scribes(tmp_path), "--json")

    assert ended.code == again.code == 3
    assert ended.out.count("of lead › scribe") == 2
    approvals = re.findall(r"longhaul (approve two.t\d w\d --seen=.*)", ended.out)
    assert len(approvals) == 2
    assert sorted(call["path"] for call in again.document["pending"]) == [
        "lead › scribe1 › Write",
        "lead › scribe2 › Write",
    ]
    for approval in approvals:
        assert cli(*shlex.split(approval)).code == 0
    give_up = time.monotonic() + 20
    while not (tmp_path / "1.txt").exists() and time.monotonic() < give_up:
        time.sleep(0.05)  # the command ends when the decision is taken down, and the call runs after it
    assert (tmp_path / "1.txt").read_text() == "1"


def test_a_sub_agent_gets_more_budget_by_the_command_that_was_printed(cli: Cli, tmp_path: Path) -> None:
    task = {"id": "t1", "name": "Agent", "input": {"agent": "scribe", "task": "write it down"}}
    model = script(tmp_path / "lead.jsonl", {"tool_calls": [task]}, {"text": "Done by the scribe."})
    looks = {"tool_calls": [{"id": "g1", "name": "Glob", "input": {"pattern": "*"}}]}
    below = script(tmp_path / "scribe.jsonl", looks, {"text": "It is empty."})
    agent = tmp_path / "lead.toml"
    agent.write_text(
        f'name = "lead"\nmodel = "{model}"\ntools = ["Glob"]\n[budget]\nmax_calls = 9\n'
        f'[agents.scribe]\nmodel = "{below}"\ntools = ["Glob"]\n[agents.scribe.budget]\nmax_calls = 1\n'
    )

    parked = cli("run", "Write", "--session", "poor", "--agent", str(agent))
    (command,) = re.findall(r"longhaul (budget .* --raise-calls N .*)", parked.out)
    raised = cli(*shlex.split(command.replace(" N ", " 3 ")))
    again = cli("run", "And?", "--session", "poor", "--agent", str(agent))

    assert parked.code == 3, parked.out
    assert raised.code == 0, raised.err
    assert again.code == 0, again.out


def test_at_a_terminal_sub_agents_ask_on_the_spot(cli: Cli, tmp_path: Path) -> None:
    seen = at_a_terminal(
        cli,
        "run",
        "Write",
        "--session",
        "spot",
        "--agent",
        two_scribes(tmp_path),
        answers=[(QUESTION, "y"), (QUESTION, "y")],
    )

    assert seen.code == 0, seen.text
    assert "of lead › scribe1 › Write" in seen.shown
    assert "of lead › scribe2 › Write" in seen.shown
    assert "Both have written." in seen.shown


def test_at_a_terminal_the_calls_of_a_program_ask_on_the_spot(cli: Cli, tmp_path: Path) -> None:
    program = "for n in '12': Write(file_path=n + '.txt', content=n)\nprint('written')"
    runs = {"id": "p1", "name": "RunProgram", "input": {"program": program}}
    model = script(tmp_path / "lead.jsonl", {"tool_calls": [runs]}, {"text": "Both have been written."})
    (tmp_path / "lead.toml").write_text(f'name = "lead"\nmodel = "{model}"\ntools = ["RunProgram", "Write"]\n')

    answers = [(QUESTION, "y"), (QUESTION, "y")]
    agent = str(tmp_path / "lead.toml")
    seen = at_a_terminal(cli, "run", "Write", "--session", "loop", "--agent", agent, answers=answers)

    assert seen.code == 0, seen.text
    assert seen.shown.count("of lead › program › Write") == 2
    assert "Both have been written." in seen.shown
    assert (tmp_path / "2.txt").read_text() == "2"


def test_what_is_left_for_later_is_not_asked_again_while_another_sleeps(cli: Cli, tmp_path: Path) -> None:
    """It is interrupted in the end: a sleeper wakes by itself, so that the reply waits for it."""
    agent = two_scribes(tmp_path, sleeps=True)
    with Terminal(cli, "run", "Write", "--session", "later", "--agent", agent) as terminal:
        terminal.until(QUESTION)
        terminal.presses("q")
        terminal.until("longhaul approve later.t1 w1")
        terminal.presses("\x03")
        seen = terminal.end()

    assert seen.shown.count("may it do this?") == 1
    assert seen.code == 130
