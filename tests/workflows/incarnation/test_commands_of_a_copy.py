"""A copy of a session with commands in the background: it has none of them, is told so, and ends its own alone."""

import pytest

from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from tests.e2e.processes import a_while, running_with
from tests.workflows.conftest import Stage
from tests.workflows.operations import recorded, until
from tests.workflows.roomy import failure_of_replay
from tests.workflows.steering.test_background_commands import STUBBORN, call, fates, hints, session_of, started

pytestmark = pytest.mark.server

FIRST, OWN = a_while(), a_while()


async def at_work(mark: str) -> None:
    async def runs() -> bool:
        return len(running_with(f"sleep\0{mark}")) >= 2

    await until(runs)


async def last_hint(session: Session) -> str:
    return [str(block.hint) async for m in session.context() for block in m.content if block.type == "hint"][-1]


BEFORE = (started("b1", f"echo up; {STUBBORN.format(FIRST)}"), {"text": "I wait."})


@pytest.mark.proves("X10")
async def test_a_copy_has_no_command_of_the_first_session_and_its_stop_ends_none(stage: Stage) -> None:
    session = session_of(stage, *BEFORE)
    own_words = stage.script(
        *BEFORE,
        call("o1", "BashOutput", bash_id="b1"),
        call("k1", "KillShell", shell_id="b1"),
        started("b1", f"echo up; {STUBBORN.format(OWN)}"),
        {"text": "Started again."},
    )
    await session.reply("Go")
    await at_work(FIRST)

    copy = await session.stored.fork(f"{session.id}-copy", by="ana")

    stays = "the command 'b1'"
    assert f"belongs to the first one, and nothing of it comes here: {stays}" in await last_hint(copy)
    assert f"in the background at that point stays with that session: {stays}" in (await copy.status()).note
    assert (await copy.status()).commands == ()
    assert await copy.stop_background(by="ana") == {}
    with pytest.raises(Refused, match="has the id 'b1'; nothing works there now"):
        await copy.stop_background("b1", by="ana")
    await copy.configure(model=own_words)
    await copy.reply("Stop it")
    said = {each.id: each.get_text() async for m in copy.transcript() for each in m.get_tool_results()}
    assert "there is no command 'b1' in the background" in said["o1"]
    assert "there is no command 'b1' in the background" in said["k1"]
    assert await fates(session) == [""]

    await at_work(OWN)
    (own,) = (await copy.status()).commands
    assert await copy.stop_background(by="ana") == {own.call_id: "stopped"}

    assert running_with(f"sleep\0{OWN}") == []
    assert len(running_with(f"sleep\0{FIRST}")) >= 2, "the first session's works on"
    assert await fates(session) == [""]
    assert [entry.kind for entry in await recorded(stage, session) if entry.kind == "stop_asked"] == []
    assert await session.stop_background(by="ben") == {"b1": "stopped"}
    assert running_with(f"sleep\0{FIRST}") == []
    assert len(await hints(session)) == 1
    assert "'ana'" in (await hints(copy))[-1]
    assert [await failure_of_replay(stage, one) for one in (session, copy)] == [None, None]


async def test_the_end_of_one_before_the_copy_was_made_is_told_there_as_what_it_was(stage: Stage) -> None:
    go = stage.workspace / "go"
    waits = "echo up; while [ ! -e go ]; do sleep 0.05; done; echo gone"
    session = session_of(stage, started("b1", waits), {"text": "I wait."}, {"text": "Heard."})
    await session.reply("Go")
    go.touch()

    async def heard() -> bool:
        return await fates(session) == ["ended"] and (await session.status()).status == "idle"

    await until(heard)
    now = await session.stored.fork(f"{session.id}-now")
    earlier = await session.stored.fork(f"{session.id}-earlier", at=1)

    assert [hint for hint in await hints(now) if "is over: success." in hint] != []
    assert "stays with that session" not in (await now.status()).note
    told = await last_hint(earlier)
    assert "nothing of it comes here: the command 'b1'. What became of it since is not known here." in told
    for words in (told, (await earlier.status()).note):
        assert "worked in the background at" in words, "it ran at that step, and has ended since"
        assert "works in the background" not in words
    assert (await earlier.status()).commands == (await now.status()).commands == ()
