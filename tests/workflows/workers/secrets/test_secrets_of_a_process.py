"""A worker as a process of its own: what it prints and logs holds no secret, and Bash in bubblewrap holds its own."""

from pathlib import Path

import pytest

from longhaul.activities.masker import Masker
from tests.e2e.processes import WorkerSettings, worker
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, results
from tests.workflows.workers.secrets.test_secrets import KEY

pytestmark = pytest.mark.server

MASKER = Masker({"GATE_KEY": KEY})


def settings_of(stage: Stage, tools: str) -> WorkerSettings:
    """Of a worker that has the key from a file, and says all that it can say."""
    file = stage.folder / "secrets.toml"
    file.write_text(f'GATE_KEY = "{KEY}"\n')
    file.chmod(0o600)
    further = {"LONGHAUL_SECRETS_FILE": str(file), "LONGHAUL_LOG": "DEBUG"}
    return WorkerSettings(
        address=stage.address,
        task_queue=stage.name,
        directory=stage.settings.data_dir,
        tools=tools,
        further=further,
    )


async def test_whatever_a_tool_prints_logs_or_raises_a_workers_output_holds_no_secret(unserved: Stage) -> None:
    stage = unserved
    session = stage.session(
        calls("blurt"),
        {"text": "It failed."},
        tools=["blurt"],
        permission={"mode": "bypass"},
        secrets={"allow": ["GATE_KEY"]},
    )
    async with worker(settings_of(stage, "tests.workflows.careless")) as process:
        done = await session.reply("Open the gate")
        history = (await stage.handle(session).fetch_history()).to_json()
        process.ask_to_stop()
        await process.wait()
        printed, logged = await process.rest_of_stdout(), process.log.read_text()

    assert results(done)[0][1] == "RuntimeError: raised [secret GATE_KEY]"
    for what, text in {"stdout": printed, "stderr": logged, "the history": history}.items():
        assert not MASKER.found(text), f"{what} holds it: {MASKER.masked(text)[-2000:]}"
    assert [printed.count(words) for words in ("blurted [secret GATE_KEY]", "in a link")] == [1, 1]
    for words in ("in base64", "in bytes", "logged", "printed", "raised"):
        assert words in logged, words
    assert logged.count("[secret GATE_KEY]") >= 6


async def test_a_sandboxed_agent_works_in_its_workspace_and_gets_nowhere_else(
    unserved: Stage, bubblewrap: None, tmp_path: Path
) -> None:
    stage = unserved
    host, port = stage.address.rsplit(":", 1)
    kept = tmp_path / "kept"
    kept.write_text("plain sight\n")
    tries = (
        f'cat {kept}; cat {stage.folder}/secrets.toml; ls -A {stage.settings.data_dir}; echo "home: $(ls -A ~)."; '
        f"(: > /dev/tcp/{host}/{port}) && echo reached; touch /usr/here {kept}; ls -d /proc/[0-9]* | wc -l; "
        'printf %s "$GATE_KEY" | tee key | base64; cat key; sleep 600 & echo written > inside'
    )
    session = stage.session(
        calls("Bash", command=tries),
        calls("Bash", command="cat inside; rm inside"),
        {"text": "Done."},
        tools=["Bash"],
        permission={"mode": "bypass"},
        secrets={"allow": ["GATE_KEY"]},
        sandbox="all",
    )
    async with worker(settings_of(stage, "")) as process:
        done = await session.reply("Look around")
        history = (await stage.handle(session).fetch_history()).to_json()
        await process.kill()

    (_, first), (_, second) = results(done)
    assert "GATE_KEY =" not in first
    assert "reached" not in first
    assert "home: ." in first
    assert first.count("[secret GATE_KEY]") == 2, "the command has its secret, and nobody reads it"
    assert first.count("Read-only file system") >= 1
    assert second.strip() == "written"
    assert (stage.workspace / "key").read_text() == KEY
    assert kept.read_text() == "plain sight\n"
    assert not MASKER.found(history + process.log.read_text())
