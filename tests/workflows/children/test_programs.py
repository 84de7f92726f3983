"""Programs that a model writes: their calls are judged, shown and recorded one by one, and no kill repeats one."""

import json
from typing import Any

import pytest

from longhaul.agent.values.conversation.messages import ToolResultState
from tests.e2e.processes import worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, next_call, results, until

pytestmark = pytest.mark.server


def runs(program: str) -> dict[str, Any]:
    return calls("RunProgram", program=program)


FIFTY = """
found = []
for number in range(50):
    text = Read(file_path=f"day-{number}.txt")
    if "fog" in text:
        found.append(number)
print(len(found), "days of fog")
found[:3]
"""


async def test_fifty_reads_cost_one_turn(stage: Stage) -> None:
    for number in range(50):
        (stage.workspace / f"day-{number}.txt").write_text("fog\n" if number % 7 == 0 else "sun\n")
    session = stage.session(
        {**runs(FIFTY), "expect": {"tools": ["RunProgram", "Read"]}},
        {"text": "Eight.", "expect": {"messages": 3}},
        tools=("RunProgram", "Read"),
    )

    done = await session.reply("On how many days was there fog?")

    assert results(done) == [(ToolResultState.SUCCESS, "8 days of fog\n[0, 7, 14]")]
    assert done.get_text_content() == "Eight."


MANY = """
print(send(to="Ana"))
try:
    send(to="Eve")
except RuntimeError as error:
    print("refused:", error)
texts = together([("fetch", {"page": 7}), ("fetch", {"page": 8})])
print(len(texts), call("fetch", page=9)[:9])
"""


async def test_each_call_is_judged_by_itself_and_listed_with_its_path(stage: Stage) -> None:
    session = stage.session(runs(MANY), {"text": "Done."}, tools=("RunProgram", "send", "fetch"))

    reply = await session.submit("Write to both")

    async def waits() -> bool:
        return bool(await session.pending())

    await until(waits)
    (to_ana,) = await session.pending()
    await session.confirm(to_ana, allow=True, approver="bo")
    to_eve = await next_call(session, to_ana)
    await session.confirm(to_eve, allow=False, reason="not to her")
    done = await session.wait(reply)

    assert (to_ana.path, json.loads(to_ana.input)) == ("lamp › program › send", {"to": "Ana"})
    assert json.loads(to_eve.input) == {"to": "Eve"}
    ((state, text),) = results(done)
    assert state is ToolResultState.SUCCESS
    sent, refused, fetched = text.splitlines()
    assert sent == "sent '' to Ana"
    assert refused.startswith("refused: send: denied: ")
    assert "not to her" in refused
    assert fetched == "2 <<page 9>"


async def test_rules_of_the_session_hold_within_a_program(stage: Stage) -> None:
    rules = [
        {"tool_name": "send", "behavior": "allow"},
        {"tool_name": "fetch", "behavior": "deny"},
    ]
    session = stage.session(
        runs('print(send(to="Ana"))\nfetch(page=1)'),
        {"text": "Done."},
        tools=("RunProgram", "send", "fetch"),
        permission={"rules": rules},
    )

    ((state, text),) = results(await session.reply("Go"))

    assert state is ToolResultState.ERROR
    assert "fetch: denied" in text
    assert "It had printed:\nsent '' to Ana" in text


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("for", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("fly(to=1)", "there is no tool 'fly'"),
        ("RunProgram(program='1')", "there is no tool 'RunProgram'"),
    ],
)
async def test_a_program_that_fails_says_where(program: str, why: str, stage: Stage) -> None:
    session = stage.session(runs(program), {"text": "Done."}, tools=("RunProgram", "fetch"))

    ((state, text),) = results(await session.reply("Go"))

    assert state is ToolResultState.ERROR
    assert why in text


WRITES = """
for number in range(40):
    try:
        Bash(command=f"echo {number} >> log.txt")
    except RuntimeError as error:
        print("unsure:", number, error)
"""


@pytest.mark.timeout(200)
async def test_after_a_kill_it_goes_on_and_repeats_no_call(unserved: Stage) -> None:
    session = unserved.session(
        runs(WRITES),
        {"text": "Written."},
        tools=("RunProgram", "Bash"),
        permission={"rules": [{"tool_name": "Bash", "behavior": "allow"}]},
    )
    log = unserved.workspace / "log.txt"
    async with worker(unserved.worker_settings) as first:
        reply = await session.submit("Count")

        async def has_come() -> bool:
            return log.exists() and log.read_text().count("\n") >= 15

        await until(has_come)
        await first.kill()
    async with unserved.another_worker():
        done = await session.wait(reply)

        ((state, text),) = results(done)
        assert state is ToolResultState.SUCCESS
        written = [int(line) for line in log.read_text().split()]
        assert sorted(set(written)) == sorted(written), "none of them twice"
        missing = {*range(40)} - {*written}
        unsure = {int(line.split()[1]) for line in text.splitlines() if line.startswith("unsure:")}
        assert missing <= unsure
        assert len(unsure) <= 1
