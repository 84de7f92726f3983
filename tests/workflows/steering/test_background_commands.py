"""Commands in the background on the real server: answered at once, shown, stopped, and never lost in silence."""

import asyncio

import pytest
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError

from longhaul.activities.attempt.workspaces import Elsewhere
from longhaul.activities.contract import AWAIT_COMMAND
from longhaul.activities.tool import Place, ToolOutput
from longhaul.activities.tools.bash import Outputs
from longhaul.agent.decisions import continue_as_new
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.starter.client.session import Session
from tests.e2e.processes import a_while, running_with, worker
from tests.workflows.conftest import Line, Stage
from tests.workflows.operations import recorded, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

TOOLS = ("Bash", "BashOutput", "KillShell")
BYPASS = PermissionContext(mode=PermissionMode.BYPASS)
STUBBORN = "trap '' TERM; (trap '' TERM; setsid sleep {0} & wait) & sleep {0}"
"""What ignores SIGTERM, and has a child in a session of its own."""


def started(call_id: str, command: str) -> Line:
    return {"tool_calls": [{"id": call_id, "name": "Bash", "input": {"command": command, "run_in_background": True}}]}


def call(call_id: str, name: str, **given: str) -> Line:
    return {"tool_calls": [{"id": call_id, "name": name, "input": given}]}


def session_of(stage: Stage, *lines: Line, permission: PermissionContext = BYPASS) -> Session:
    return stage.session(*lines, tools=TOOLS, permission=permission)


async def hints(session: Session) -> list[str]:
    told = [str(block.hint) async for m in session.transcript() for block in m.content if block.type == "hint"]
    return [hint for hint in told if "command in the background" in hint]


async def fates(session: Session) -> list[str]:
    return [command.fate for command in (await session.status()).commands]


@pytest.mark.proves("F4")
async def test_its_end_wakes_the_idle_session_once_with_what_it_printed(stage: Stage) -> None:
    go = stage.workspace / "go"
    wait = "echo ready; while [ ! -e go ]; do sleep 0.05; done; echo gone; exit 3"
    session = session_of(
        stage, started("b1", wait), call("o1", "BashOutput", bash_id="b1"), {"text": "I wait."}, {"text": "Heard."}
    )

    done = await session.reply("Go")
    told = {result.name: result.get_text() for result in done.get_tool_results()}
    assert "its id is 'b1'" in told["Bash"]
    assert told["BashOutput"] in ("ready\n", "(no output so far)")
    assert await fates(session) == [""]
    go.touch()

    async def woken() -> bool:
        last = [m.get_text_content() async for m in session.transcript() if m.role == "assistant"]
        return last[-1] == "Heard." and (await session.status()).status == "idle"

    await until(woken)
    (hint,) = await hints(session)
    assert "'b1' is over: error." in hint
    assert "ready\ngone\nexit code 3" in hint
    assert await fates(session) == ["ended"]
    assert await failure_of_replay(stage, session) is None


async def test_one_that_ignores_its_end_is_stopped_with_all_that_it_started(stage: Stage) -> None:
    mark = a_while()
    session = session_of(
        stage,
        started("b1", f"echo up; {STUBBORN.format(mark)}"),
        call("k1", "KillShell", shell_id="b1"),
        call("k2", "KillShell", shell_id="b1"),
        call("o1", "BashOutput", bash_id="b9"),
        {"text": "Done."},
    )
    done = await session.reply("Go")

    async def stopped() -> bool:
        return await fates(session) == ["stopped"]

    await until(stopped)
    assert running_with(mark) == []
    told = [result.get_text() for result in done.get_tool_results()]
    assert "'b1' is being stopped" in told[1]
    assert "does not run any more" in told[2]
    assert "bash_id: there is no command 'b9' in the background" in told[3]

    async def heard() -> bool:
        return len(await hints(session)) == 1

    await until(heard)
    assert "'b1' is over: stopped. What follows" in (await hints(session))[0]
    assert "stopped, with all that it had started" in (await hints(session))[0]
    assert (await session.status()).status == "idle"


async def test_an_interrupt_ends_them_and_begins_no_reply(stage: Stage) -> None:
    mark = a_while()
    session = session_of(stage, started("b1", STUBBORN.format(mark)), {"text": "Never.", "delay_ms": 20_000})
    reply = await session.submit("Go")

    async def runs() -> bool:
        return bool(running_with(mark))

    await until(runs)
    await session.interrupt()
    await session.wait(reply)

    async def stopped() -> bool:
        return await fates(session) == ["stopped"]

    await until(stopped)
    assert running_with(mark) == []
    assert len([entry for entry in await recorded(stage, session) if entry.kind == "started"]) == 1


@pytest.mark.proves("F4")
async def test_a_worker_that_is_killed_takes_it_along_and_that_is_said(unserved: Stage) -> None:
    mark = a_while()
    stage = unserved
    settings = stage.worker_settings
    session = session_of(stage, started("b1", STUBBORN.format(mark)), {"text": "I wait."}, {"text": "Heard."})
    async with worker(settings) as first:
        assert (await session.reply("Go")).get_text_content() == "I wait."

        async def runs() -> bool:
            return bool(running_with(mark))

        await until(runs)
        await first.kill()

        async def gone() -> bool:
            return not running_with(mark)

        await until(gone)
    async with stage.another_worker():

        async def told() -> bool:
            return await fates(session) == ["unknown"] and (await session.status()).status == "idle"

        await until(told)
        (hint,) = await hints(session)
        assert "'b1' is over: unknown." in hint
        assert "Outcome unknown" in hint


@pytest.mark.proves("F4")
async def test_it_outlives_the_run_that_began_it_and_its_end_is_heard_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many operations come that the run has to end, as with the two thousand updates that the server allows in
    one."""
    mark = a_while()
    monkeypatch.setattr(continue_as_new, "CONTINUE_AS_NEW_EVENTS", 60)
    go, said = stage.workspace / "go", stage.workspace / "said"
    session = session_of(
        stage,
        started("b1", "echo ready; touch said; while [ ! -e go ]; do sleep 0.05; done; echo gone"),
        started("b2", f"echo up; {STUBBORN.format(mark)}"),
        {"text": "I wait."},
        call("o1", "BashOutput", bash_id="b1"),
        call("k1", "KillShell", shell_id="b2"),
        {"text": "Still there."},
        {"text": "Heard."},
    )
    await session.reply("Go")
    handle = stage.handle(session)
    first = (await handle.describe()).run_id
    while (await handle.describe()).run_id == first:
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update("nonsense", {})
    monkeypatch.undo()

    async def has_said() -> bool:
        return said.exists()

    await until(has_said)
    later = await session.reply("And now?")
    told = {result.name: result.get_text() for result in later.get_tool_results()}
    assert told["BashOutput"] == "ready\n"
    assert running_with(mark) == [] or "is being stopped" in told["KillShell"]
    go.touch()

    async def both_over() -> bool:
        return sorted(await fates(session)) == ["ended", "stopped"] and (await session.status()).status == "idle"

    await until(both_over)
    assert running_with(mark) == []
    hints_told = await hints(session)
    (ended,) = [hint for hint in hints_told if "'b1' is over" in hint]
    (stopped,) = [hint for hint in hints_told if "'b2' is over" in hint]
    assert "success." in ended
    assert "ready\ngone" in ended
    assert "stopped, with all that it had started" in stopped
    assert await failure_of_replay(stage, session) is None


async def test_one_that_is_to_stop_before_its_worker_was_asked_is_said_to_be_stopped_when_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run asks workers that do not have it, between attempts, when the command is to stop."""
    mark = a_while()
    monkeypatch.setattr(continue_as_new, "CONTINUE_AS_NEW_EVENTS", 60)
    reached, found = Outputs.end_of, asyncio.Event()
    asked: list[bool] = []

    async def end_of(outputs: Outputs, place: Place, call_id: str, *, unwanted: bool = False) -> ToolOutput:
        if activity.info().activity_type == AWAIT_COMMAND and not found.is_set():
            asked.append(unwanted)
            raise Elsewhere("another worker was asked")
        return await reached(outputs, place, call_id, unwanted=unwanted)

    monkeypatch.setattr(Outputs, "end_of", end_of)
    session = session_of(
        stage,
        started("b1", f"echo up; {STUBBORN.format(mark)}"),
        {"text": "I wait."},
        call("k1", "KillShell", shell_id="b1"),
        {"text": "Delivered."},
    )
    await session.reply("Go")
    handle = stage.handle(session)
    first = (await handle.describe()).run_id
    while (await handle.describe()).run_id == first:
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update("nonsense", {})
    monkeypatch.setattr(continue_as_new, "CONTINUE_AS_NEW_EVENTS", 10_000)

    async def is_asked() -> bool:
        return bool(asked)

    await until(is_asked)
    await session.reply("Stop it")

    async def is_asked_to_stop() -> bool:
        return any(asked)

    await until(is_asked_to_stop)
    assert await fates(session) == [""]
    found.set()

    async def stopped() -> bool:
        return await fates(session) == ["stopped"]

    await until(stopped)
    assert running_with(mark) == []
    assert "stopped, with all that it had started" in (await hints(session))[0]
    assert await failure_of_replay(stage, session) is None


async def test_permission_and_number_are_as_for_any_command(stage: Stage) -> None:
    session = session_of(stage, started("b1", "touch made"), {"text": "So be it."}, permission=PermissionContext())
    reply = await session.submit("Go")

    async def asked() -> bool:
        return bool(await session.pending())

    await until(asked)
    (waiting,) = await session.pending()
    await session.confirm(waiting, allow=False, reason="not now")
    assert "not now" in str((await session.wait(reply)).get_tool_results()[0].get_text())
    assert await fates(session) == []
    assert not (stage.workspace / "made").exists()
