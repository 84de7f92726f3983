"""A session whose workspace is a sandbox: its tools work there, and what lies outside is not there for them."""

from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.process.container import ENGINES
from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.agent.values.conversation.messages import ToolResultState
from longhaul.agent.values.spec.workspace import Seal, Workspace
from longhaul.starter.cli.doctor.server_checks import environment
from tests.conftest import found
from tests.servers.containers import make_image
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results

pytestmark = [pytest.mark.server, pytest.mark.skipif(bool(bwrap_problem()), reason="there is no bubblewrap")]

FREE: dict[str, Any] = {"mode": "bypass"}


@pytest.mark.proves("E12")
async def test_whatever_a_session_does_in_a_sandbox_stays_in_it(stage: Stage) -> None:
    await stays_in_it(stage, Seal())


@pytest.mark.proves("E12")
@pytest.mark.chaos
@pytest.mark.parametrize("engine", ENGINES)
async def test_whatever_a_session_does_in_a_container_stays_in_it(stage: Stage, engine: str, tmp_path: Path) -> None:
    image = found(engine, lambda say: make_image(engine, tmp_path, say))
    listed = {"images": f"tools={engine}:{image.reference}", "task_queue": f"{stage.name}-contained"}
    other = stage.with_settings(**listed)

    async with other.another_worker():
        await stays_in_it(other, Seal(image="tools"))


async def test_the_doctor_has_the_worker_try_each_image(unserved: Stage) -> None:
    listed = {"images": "gone=podman:localhost/longhaul-tests:none"}
    unserved.settings = unserved.settings.model_copy(update=listed)
    async with unserved.another_worker():
        found = {check.name: check async for check in environment(unserved.client, unserved.settings)}

    image = found["worker's image gone"]
    assert (image.ok, image.detail.startswith("podman ")) == (False, True), image
    assert image.fix == "start its engine there, and build or load the image; no worker fetches one"


async def stays_in_it(stage: Stage, seal: Seal) -> None:
    outside = stage.folder / "outside.txt"
    outside.write_text("the-neighbours-words")
    (stage.workspace / "poem.txt").write_text("Rose\n")
    lines = [
        calls("Read", file_path="poem.txt"),
        calls("Read", file_path=str(outside)),
        calls("Edit", file_path=str(outside), old_string="words", new_string="lies"),
        calls("Bash", command=f"cat {outside}; echo more >> poem.txt"),
        calls("send", to="Ana", text="from the sandbox"),
        {"text": "Done."},
    ]
    session = stage.session(
        *lines,
        tools=("Read", "Edit", "Bash", "send"),
        permission=FREE,
        workspace=Workspace(root=str(stage.workspace), place="sandbox", seal=seal),
    )

    done = await session.reply("Begin")

    (ok, read), (_, outer), (edit, _), (_, bash), (sent, said) = results(done)
    assert (ok, sent) == (ToolResultState.SUCCESS,) * 2
    assert ("Rose" in read, "sent 'from the sandbox' to Ana" in said) == (True, True)
    assert (edit, "neighbours" in f"{outer}{bash}") == (ToolResultState.ERROR, False)
    assert (outside.read_text(), (stage.workspace / "poem.txt").read_text()) == ("the-neighbours-words", "Rose\nmore\n")
