"""Bash in a sandbox and under limits: real commands in real namespaces, where this machine allows them."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from longhaul.activities.process.container import Limits
from longhaul.activities.process.sandbox import SandboxPolicy, bwrap_problem, sandboxed
from longhaul.activities.tool import Place, ToolError, ToolOutput
from longhaul.activities.tools.bash import DESCRIPTION, Bash
from longhaul.agent.permission.call_analysis import Confined
from longhaul.agent.values.spec.workspace import Sandbox
from tests.activities.tools.calls import called, place_at, text_of, use
from tests.limits import SURE_SECONDS

IN_SANDBOX = SandboxPolicy("all")
SMALL = Limits(cpu_seconds=1, file_mb=1, memory_mb=256)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder with a secret, outside of what is always hidden."""
    folder = Path("/var/lib") if os.access("/var/lib", os.W_OK) else tmp_path
    place = folder / f"longhaul-home-{os.getpid()}"
    place.mkdir(exist_ok=True)
    (place / "key").write_text("marmalade")
    monkeypatch.setenv("HOME", str(place))
    yield place
    shutil.rmtree(place)


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    yield
    bwrap_problem.cache_clear()


@pytest.mark.usefixtures("bubblewrap")
async def test_the_workspace_is_written_and_the_rest_is_not(place: Place) -> None:
    said = await text_of(
        Bash(sandbox=IN_SANDBOX),
        place,
        command="echo here > in.txt; echo there > /usr/out.txt; touch /etc/x; ls /usr/bin/env",
    )

    assert (place.root / "in.txt").read_text() == "here\n"
    assert said.count("Read-only file system") == 2
    assert said.endswith("/usr/bin/env")


@pytest.mark.usefixtures("bubblewrap")
async def test_the_sandbox_holds_a_command_in_the_background_too(place: Place) -> None:
    command = "echo here > in.txt; cd /usr; touch /usr/out.txt"
    output = await use(Bash(sandbox=IN_SANDBOX), place, command=command, run_in_background=True)

    assert (place.root / "in.txt").read_text() == "here\n"
    assert "Read-only file system" in str(output.output)
    assert output.cwd is None


@pytest.mark.usefixtures("bubblewrap")
async def test_home_secrets_and_the_workers_own_files_are_not_seen(place: Place, home: Path, tmp_path: Path) -> None:
    own, secrets = tmp_path / "data", home / "key"
    own.mkdir()
    (own / "blob").write_text("someone else's")
    sandbox = replace(IN_SANDBOX, hidden=(own, secrets))

    said = await text_of(
        Bash(sandbox=sandbox),
        place,
        command=f"cat {secrets} {own}/blob /etc/shadow /root/x; ls -A ~ /run; wc -c </etc/shadow",
    )

    assert "marmalade" not in said
    assert "someone" not in said
    assert "root:" not in said
    assert said.count("No such file") == 3


@pytest.mark.usefixtures("bubblewrap")
async def test_secrets_stay_hidden_in_a_workspace_that_is_the_home_folder(home: Path) -> None:
    (home / ".ssh").mkdir(exist_ok=True)
    (home / ".ssh" / "id_ed25519").write_text("marmalade")

    said = await text_of(
        Bash(sandbox=replace(IN_SANDBOX, hidden=(home / "key",))), place_at(home), command="cat key; ls -A .ssh; pwd"
    )

    assert "marmalade" not in said
    assert "id_ed25519" not in said
    assert said.endswith(str(home))


@pytest.mark.usefixtures("bubblewrap")
async def test_there_is_no_network_and_no_process_but_its_own(place: Place) -> None:
    said = await text_of(
        Bash(sandbox=IN_SANDBOX),
        place,
        command="ls /sys/class/net >/dev/null; cat /proc/net/dev | grep -c :; ls -d /proc/[0-9]* | wc -l; id -u",
    )
    joined = await text_of(
        Bash(sandbox=replace(IN_SANDBOX, network=True)), place, command="cat /proc/net/dev | grep -c :"
    )

    assert said.splitlines()[0] == "1", "the loopback alone"
    assert int(said.splitlines()[1]) < 8
    assert joined == await text_of(Bash(), place, command="cat /proc/net/dev | grep -c :")


@pytest.mark.usefixtures("bubblewrap")
async def test_tmp_is_new_for_each_call_and_no_folder_to_stay_in(place: Place, tmp_path: Path) -> None:
    bash = Bash(sandbox=IN_SANDBOX)

    first = await use(bash, place, command="mkdir /tmp/deep && cd /tmp/deep && pwd")
    second = await text_of(bash, place, command="ls -A /tmp | grep -v pytest; mkdir -p sub && cd sub")
    moved = await use(bash, place, command="cd sub")
    lost = await use(bash, Place(place.root, tmp_path), command="pwd")

    assert (first.output, first.cwd) == ("/tmp/deep", None)
    assert second == "(no output)"
    assert moved.cwd == place.root / "sub"
    assert (lost.failed, lost.cwd) == (True, place.root)


@pytest.mark.usefixtures("bubblewrap")
async def test_it_ends_as_outside_of_the_sandbox(place: Place) -> None:
    bash = Bash(sandbox=IN_SANDBOX)

    code = await use(bash, place, command="echo a; exit 44")
    late = await use(bash, place, command="sleep 5.0651 & setsid sleep 5.0651", timeout=300)

    assert code.output == "a\nexit code 44"
    assert "killed: not done after its timeout" in str(late.output)
    assert running("5.0651") == []


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("confined", ["read", "edit", ""])
def test_kill_9_of_the_worker_leaves_no_process(confined: str, tmp_path: Path) -> None:
    mark = f"6{os.getpid()}.07{len(confined)}"
    program = f"""
import asyncio, sys
from pathlib import Path
from dataclasses import replace
from longhaul.activities.tools.bash import Bash
from longhaul.activities.process.sandbox import SandboxPolicy
from tests.activities.tools.calls import called, place_at
command = "setsid sleep " + ".".join({mark.split(".")!r}) + " & sleep " + ".".join({mark.split(".")!r})
bash, place = Bash(sandbox=SandboxPolicy("all")), place_at(Path({str(tmp_path)!r}))
analysis = asyncio.run(bash.examine(dict(command=command), place))
asyncio.run(bash.run(replace(called(dict(command=command), place, analysis), confined={confined!r})))
"""
    worker = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[3])
    while len(running(mark)) < 2:
        assert worker.poll() is None
        time.sleep(0.02)

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    deadline = time.monotonic() + SURE_SECONDS
    while running(mark):
        assert time.monotonic() < deadline, running(mark)
        time.sleep(0.02)


@pytest.fixture
def without_bwrap(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which bubblewrap is there, and the kernel does not let it work."""
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    bwrap_problem.cache_clear()


@pytest.mark.usefixtures("without_bwrap")
async def test_nothing_runs_where_all_is_to_be_confined_and_can_not_be(place: Place) -> None:
    with pytest.raises(ToolError) as refusal:
        await use(Bash(sandbox=IN_SANDBOX), place, command="touch ran")

    assert str(refusal.value) == (
        "commands run in a sandbox alone here, and there is none: bubblewrap does not work here: "
        "bwrap: No permissions to create new namespace"
    )
    assert not (place.root / "ran").exists()


async def test_nor_where_bubblewrap_is_missing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(place.root))
    bwrap_problem.cache_clear()

    with pytest.raises(ToolError, match="bubblewrap is not installed"):
        await use(Bash(sandbox=IN_SANDBOX), place, command="true")


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("confined", ["read", "edit", ""])
@pytest.mark.parametrize(
    ("command", "limited"),
    [
        ("head -c 3000000 /dev/zero > /tmp/big; stat -c %s /tmp/big", "1048576"),
        ("while :; do :; done", "exit code 137"),
        ("python3 -c 'bytearray(400_000_000)'", "MemoryError"),
    ],
)
async def test_the_kernel_limits_a_command_in_the_sandbox(
    place: Place, command: str, limited: str, confined: Confined
) -> None:
    bash = Bash(sandbox=SandboxPolicy("all", limits=SMALL))
    analysis = await bash.examine({"command": command}, place)

    output: ToolOutput = await bash.run(replace(called({"command": command}, place, analysis), confined=confined))

    assert limited in str(output.output)


def test_the_model_is_told_what_holds() -> None:
    assert Bash().description == DESCRIPTION
    assert "without anybody being asked runs in a sandbox" in Bash(sandbox=SandboxPolicy("proven")).description
    assert "There is no network" in Bash(sandbox=IN_SANDBOX).description
    assert "can be reached" in Bash(sandbox=replace(IN_SANDBOX, network=True)).description


@pytest.mark.parametrize(
    ("worker", "agent", "holds"),
    [
        (("off", False), ("off", None), ("off", False)),
        (("off", False), ("all", True), ("all", True)),
        (("off", False), ("proven", None), ("proven", False)),
        (("all", False), ("off", True), ("all", False)),
        (("all", True), ("proven", None), ("all", True)),
        (("proven", True), ("all", False), ("all", False)),
    ],
)
def test_the_stricter_of_worker_and_agent_holds(
    worker: tuple[Sandbox, bool], agent: tuple[Sandbox, bool | None], holds: tuple[Sandbox, bool]
) -> None:
    sandbox = SandboxPolicy(*worker).narrowed(*agent)

    assert (sandbox.sandbox, sandbox.network) == holds


@pytest.mark.usefixtures("without_bwrap")
async def test_an_agent_can_ask_for_more_than_its_worker(place: Place) -> None:
    bash, place = Bash(), replace(place, sandbox="all")

    with pytest.raises(ToolError, match="there is none"):
        await use(bash, place, command="true")


def test_without_a_sandbox_a_command_is_started_as_it_is(tmp_path: Path) -> None:
    assert sandboxed(SandboxPolicy(), ("/bin/true",), tmp_path, tmp_path).command == ("/bin/true",)


def running(mark: str) -> list[int]:
    """Processes whose command line holds the mark as a word."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if mark.encode() in words:
            found.append(int(entry.name))
    return found
