"""All calls of a turn that ask are one list: seen together, answered together, and each answer for what was seen."""

import json
from typing import Any

import pytest

from longhaul.activities.notify.notifications import KEY
from longhaul.agent.operations.bodies import ConfirmResult, UserConfirmResultEvent
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.activities.middlewares.hook_server import hook_server
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import results, until

pytestmark = pytest.mark.server


def turn(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A line of a script: these calls."""
    return {"tool_calls": [{"name": name, "input": given} for name, given in made]}


def bash(*commands: str) -> dict[str, Any]:
    return turn(*(("Bash", {"command": command}) for command in commands))


async def shown(session: Session) -> list[str]:
    return [call.call_id for call in await session.pending()]


@pytest.mark.proves("A9", "X16")
async def test_three_commands_are_one_stop_and_one_operation(stage: Stage) -> None:
    session = stage.session(bash("touch a", "touch b", "touch c"), {"text": "Made."}, tools=["Bash"])
    waiting = await session.reply("Make them")
    pending = await session.pending()

    assert await session.confirm_all(pending, allow=True, approver="bo") == {}
    done = await session.wait(waiting.id)

    assert [call.call_id for call in pending] == ["call_0_0", "call_0_1", "call_0_2"]
    assert waiting.metadata == {"waiting_for": ["call_0_0", "call_0_1", "call_0_2"]}
    assert [state for state, _ in results(done)] == [ToolResultState.SUCCESS] * 3
    assert sorted(path.name for path in stage.workspace.iterdir() if len(path.name) == 1) == ["a", "b", "c"]
    kinds = [event.type for event in (await session.events()).events]
    assert (kinds.count("REQUIRE_USER_CONFIRM"), kinds.count("USER_CONFIRM_RESULT")) == (1, 1)


async def test_the_events_of_agentscope_answer_a_list_each_call_by_itself(stage: Stage) -> None:
    session = stage.session(bash("touch a", "touch b", "touch c"), {"text": "Made."}, tools=["Bash"])
    waiting = await session.reply("Make them")
    (asked,) = [event for event in (await session.events()).events if event.type == "REQUIRE_USER_CONFIRM"]
    words = [
        ConfirmResult(confirmed=confirmed, tool_call=block)
        for confirmed, block in zip((True, False, True), asked.tool_calls, strict=True)
    ]

    done = await session.reply(UserConfirmResultEvent(reply_id=waiting.id, confirm_results=tuple(words)))

    assert {result.id: result.state for result in done.get_tool_results()} == {
        "call_0_0": ToolResultState.SUCCESS,
        "call_0_1": ToolResultState.DENIED,
        "call_0_2": ToolResultState.SUCCESS,
    }


async def test_the_second_edit_of_a_file_is_asked_again_when_the_first_has_changed_it(stage: Stage) -> None:
    note = stage.workspace / "note"
    note.write_text("red\nblue\n", encoding="utf-8")
    edits = [
        {"file_path": str(note), "old_string": old, "new_string": new}
        for old, new in (("red", "rose"), ("blue", "navy"))
    ]
    session = stage.session(
        turn(("Read", {"file_path": str(note)})),
        turn(*(("Edit", edit) for edit in edits)),
        {"text": "Edited."},
        tools=["Read", "Edit"],
    )
    waiting = await session.reply("Edit it")
    first, second = await session.pending()

    await session.confirm_all([first, second], allow=True, approver="bo")

    async def is_asked_again() -> bool:
        return await shown(session) == [second.call_id]

    await until(is_asked_again)
    (again,) = await session.pending()
    assert note.read_text(encoding="utf-8") == "rose\nblue\n"
    assert "What it would touch has changed since it was approved" in again.reason
    assert (" red" in second.notice, " rose" in again.notice) == (True, True), "the change is shown as it is by now"
    with pytest.raises(Refused, match="the file has changed"):
        await session.confirm(second, allow=True, approver="bo")
    await session.confirm(again, allow=True, approver="bo")
    await session.wait(waiting.id)
    assert note.read_text(encoding="utf-8") == "rose\nnavy\n"


async def test_a_read_between_calls_that_ask_has_its_place(stage: Stage) -> None:
    note = stage.workspace / "note"
    session = stage.session(
        turn(
            ("Bash", {"command": "echo first > note"}),
            ("Read", {"file_path": str(note)}),
            ("Bash", {"command": "echo second > note"}),
        ),
        {"text": "Written."},
        tools=["Bash", "Read"],
    )
    waiting = await session.reply("Write")
    assert await shown(session) == ["call_0_0", "call_0_2"]

    await session.confirm("call_0_2", allow=True, approver="bo")
    assert not note.exists(), "nothing overtakes what waits before it"
    await session.confirm("call_0_0", allow=True, approver="bo")
    done = await session.wait(waiting.id)

    read = next(result for result in done.get_tool_results() if result.id == "call_0_1")
    assert "first" in read.get_text()
    assert note.read_text(encoding="utf-8") == "second\n"


async def test_a_denial_of_the_first_ends_the_list_where_the_agent_says_so(stage: Stage) -> None:
    session = stage.session(
        bash("touch a", "touch b"), {"text": "No."}, tools=["Bash"], react_config={"stop_on_reject": True}
    )
    waiting = await session.reply("Make them")

    await session._sending.update(  # noqa: SLF001  two words in one operation
        "confirm",
        {"decisions": [{"call_id": "call_0_0", "decision": "deny"}, {"call_id": "call_0_1", "decision": "allow"}]},
    )
    done = await session.wait(waiting.id)

    assert [state for state, _ in results(done)] == [ToolResultState.DENIED, ToolResultState.INTERRUPTED]
    assert not (stage.workspace / "b").exists()


async def test_a_list_where_one_can_not_be_taken_is_not_decided_at_all(stage: Stage) -> None:
    session = stage.session(bash("touch a", "touch b"), {"text": "Made."}, tools=["Bash"])
    await session.reply("Make them")

    with pytest.raises(Refused, match="'call_9_9' does not wait"):
        await session.confirm_all(["call_0_0", "call_9_9"], allow=True)

    assert await shown(session) == ["call_0_0", "call_0_1"]


async def test_an_interrupt_ends_a_list_of_which_a_part_is_approved(stage: Stage) -> None:
    session = stage.session(bash("touch a", "touch b", "touch c"), {"text": "Made."}, tools=["Bash"])
    waiting = await session.reply("Make them")
    await session.confirm("call_0_1", allow=True, approver="bo")

    await session.interrupt()
    done = await session.wait(waiting.id)

    assert [state for state, _ in results(done)] == [ToolResultState.INTERRUPTED] * 3
    assert not (stage.workspace / "b").exists()


async def test_people_are_told_of_a_list_once(unserved: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "violet-violet-violet")
    box = unserved.folder / "box"
    with hook_server() as hook:
        stage = unserved
        stage.settings = stage.settings.model_copy(update={"notify": [hook.url, f"maildir:{box}?to=ops@example.com"]})
        deadline = {"remind_after": 2, "expire_after": 600}
        session = stage.session(
            bash("touch a", "touch b", "touch c"), {"text": "Made."}, tools=["Bash"], permission={"deadline": deadline}
        )
        async with stage.another_worker():
            await session.reply("Make them")

            async def all_told() -> bool:
                return len(hook.posts) == 2

            await until(all_told)
            await session.status()

    first, again = (json.loads(body) for _, body in hook.posts)
    assert (first["event"], again["event"]) == ("waits", "reminded")
    assert [each["call_id"] for each in (first, *first["more"])] == ["call_0_0", "call_0_1", "call_0_2"]
    assert [each["arguments"] for each in first["more"]] == ["command: touch b", "command: touch c"]
    assert len(list((box / "new").iterdir())) == 2


def settings_of(stage: Stage) -> WorkerSettings:
    return WorkerSettings(address=stage.address, task_queue=stage.name, directory=stage.settings.data_dir)


async def test_decisions_outlive_the_worker_that_took_the_first(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(bash("touch a", "touch b", "touch c"), {"text": "Made."}, tools=["Bash"])
    async with worker(settings_of(stage)) as first:
        waiting = await session.reply("Make them")
        pending = await session.pending()
        await session.confirm(pending[2], allow=True, approver="bo")
        await first.kill()
    async with worker(settings_of(stage)) as second:
        assert await session.pending() == pending[:2]
        await session.confirm(pending[0], allow=True, approver="bo")
        await until(lambda: has_ended(session, "call_0_0"))
        await second.kill()
    async with worker(settings_of(stage)):
        await session.confirm(pending[1].call_id, allow=False, approver="bo")
        done = await session.wait(waiting.id)

    states = {result.id: result.state for result in done.get_tool_results()}
    assert states == {
        "call_0_0": ToolResultState.SUCCESS,
        "call_0_1": ToolResultState.DENIED,
        "call_0_2": ToolResultState.SUCCESS,
    }
    assert [(stage.workspace / name).exists() for name in "abc"] == [True, False, True]


async def has_ended(session: Session, call_id: str) -> bool:
    """Whether its result is recorded. A worker that dies before costs the half minute of a `once` call."""
    ended = [event.tool_call_id for event in (await session.events()).events if event.type == "TOOL_RESULT_END"]
    return call_id in ended
