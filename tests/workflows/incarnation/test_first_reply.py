"""A new session's first reply is prepared by the activity that looks for an earlier incarnation, if nothing comes
between."""

import shutil
from pathlib import Path

import pytest

from longhaul.activities.contract import PREPARE_REPLY
from longhaul.starter.client.session import Session
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, recorded, until
from tests.workflows.roomy import failure_of_replay

pytestmark = pytest.mark.server

OURS = "longhaul."


async def activities(stage: Stage, session: Session) -> list[str]:
    """Those that were asked for, in their order."""
    return [name.removeprefix(OURS) for name in await stage.scheduled(session)]


def take_away_the_store(stage: Stage) -> Path:
    """Until the returned file is deleted, no session can find out what was there before it."""
    folder = stage.settings.data_dir / "sessions"
    shutil.rmtree(folder, ignore_errors=True)  # the worker has left its mark there
    folder.write_text("no directory")
    return folder


async def begins(stage: Stage, session: Session, name: str) -> None:
    """Wait until this activity was scheduled."""

    async def started() -> bool:
        return name in await activities(stage, session)

    await until(started)


async def test_the_first_reply_costs_no_preparation_of_its_own(stage: Stage) -> None:
    session = stage.session(calls("fetch", page=7), {"text": "Read."}, {"text": "Again."})

    await session.reply("Read page 7")
    first = await activities(stage, session)
    await session.reply("And again")
    prepared = [entry for entry in await recorded(stage, session) if entry.kind == "prepared"]

    assert first[:4] == ["restore", "call_model", "fetch", "call_model"]
    assert "prepare_reply" not in first
    assert (await stage.within_tasks(session)).count(PREPARE_REPLY) == 1  # of the second one
    assert len(prepared) == 2
    assert (await session.status()).workspace_root == str(stage.workspace)
    assert await failure_of_replay(stage, session) is None


async def test_what_comes_while_a_session_looks_back_holds_for_its_first_reply(stage: Stage) -> None:
    session = stage.session({"text": "Delivered by the model of before."})
    in_the_way = take_away_the_store(stage)
    reply = await session.submit("Tell Ana")
    await begins(stage, session, "restore")

    await session.configure(model=stage.script({"text": "Delivered by another model."}))
    in_the_way.unlink()
    message = await session.wait(reply)

    assert message.get_text_content() == "Delivered by another model."
    assert (await activities(stage, session))[:2] == ["restore", "call_model"]
    assert PREPARE_REPLY in await stage.within_tasks(session)  # again
    assert await failure_of_replay(stage, session) is None


async def test_a_preparation_that_fails_beside_is_made_by_its_own_activity(stage: Stage) -> None:
    in_the_way = stage.folder / "harbour"
    in_the_way.write_text("no directory")
    session = stage.session({"text": "Two."}, workspace={"root": str(in_the_way)})
    reply = await session.submit("How high is the tide?")

    await begins(stage, session, "prepare_reply")
    in_the_way.unlink()
    in_the_way.mkdir()

    assert (await session.wait(reply)).get_text_content() == "Two."
    assert await failure_of_replay(stage, session) is None


async def test_a_middleware_that_no_worker_has_is_said_by_the_preparation_not_by_the_look_back(stage: Stage) -> None:
    session = stage.session({"text": "Two."}, middlewares=["nobodys"])
    await session.submit("How high is the tide?")

    await begins(stage, session, "prepare_reply")
    assert (await session.status()).quarantine == ""
