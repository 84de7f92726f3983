"""A workspace whose sandbox is a container: the same tools, held by Podman or Docker."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.process.container import ENGINES, BadImages, Image, Limits, image_problem, read_images
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.tool import GivenUp, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.registry import default_tools, load_modules
from longhaul.activities.tools.sandbox_call import Sandboxes
from longhaul.agent.permission.call_analysis import Confined
from longhaul.agent.values.spec.workspace import Seal
from tests.activities.tools.test_sandbox_call import SECRET
from tests.conftest import found
from tests.e2e.processes import a_while
from tests.limits import SURE_SECONDS
from tests.servers.containers import make_image
from tests.workflows.operations import until

SEAL = Seal(image="tools")


slow = pytest.mark.chaos
"""Not of the tests that always run: half a second for each container, and an engine is not everywhere."""


@pytest.fixture(scope="module", params=[pytest.param(engine, marks=slow) for engine in ENGINES])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    return found(request.param, lambda say: make_image(request.param, tmp_path_factory.mktemp("image"), say))


@pytest.fixture
def sandbox(image: Image) -> SandboxPolicy:
    return SandboxPolicy("proven", limits=Limits(), images=(image,))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "poem.txt").write_text("Rose\n")
    (root / ".env").write_text(SECRET)
    (tmp_path / "outside.txt").write_text(SECRET)
    return root


async def run(sandbox: SandboxPolicy, name: str, root: Path, seal: Seal = SEAL, **arguments: Any) -> ToolOutput:
    tools: list[Tool] = [*default_tools(sandbox=sandbox), *load_modules("tests.activities.tools.sealed_tools")]
    tool, place = next(one for one in tools if one.name == name), Place(root=root, cwd=root, seal=seal)
    call = ToolCall("call-1", arguments, place, await tool.examine(arguments, place), secrets={"KEY": "abc"})
    return await Sandboxes(sandbox).run(tool, call)


@pytest.mark.proves("E12")
async def test_all_tools_work_in_it_and_nothing_else_is_there(sandbox: SandboxPolicy, root: Path) -> None:
    outside = root.parent / "outside.txt"
    read = await run(sandbox, "Read", root, file_path=str(root / "poem.txt"))
    await run(sandbox, "Write", root, file_path=str(root / "new.txt"), content="one\n")
    await run(sandbox, "Edit", root, file_path=str(root / "poem.txt"), old_string="Rose", new_string="Tulip")
    grep = await run(sandbox, "Grep", root, pattern="Tul", path=str(root), output_mode="content")
    glob = await run(sandbox, "Glob", root, pattern="*.txt", path=str(root))
    bash = await run(
        sandbox, "Bash", root, command=f"cat poem.txt {outside}; echo $KEY > key; ls /etc /home /root; id -u"
    )
    own = await run(sandbox, "run_program", root, command="cat poem.txt")
    with pytest.raises(ToolError, match=r"outside.txt' does not exist"):
        await run(sandbox, "Read", root, file_path=str(outside))

    assert ("Rose" in str(read.output), "Tulip" in str(grep.output), "new.txt" in str(glob.output)) == (True,) * 3
    assert ((root / "poem.txt").read_text(), (root / "new.txt").read_text()) == ("Tulip\n", "one\n")
    assert ("Tulip" in str(bash.output), SECRET in str(bash.output)) == (True, False)
    assert ((root / "key").read_text(), (root / "key").stat().st_uid) == ("abc\n", os.getuid())
    assert str(own.output) == "Tulip\n, with 3 letters"


@pytest.mark.proves("E12")
async def test_it_has_no_network_no_rights_and_no_system_that_can_be_written(
    sandbox: SandboxPolicy, root: Path
) -> None:
    said = await run(
        sandbox,
        "Bash",
        root,
        command=f"echo a > /bin/a; echo b > /etc/b; kill -0 {os.getpid()}; cat /proc/self/status /proc/net/dev",
    )

    told = str(said.output)
    assert told.count("Read-only file system") == 2
    assert f"({os.getpid()}) - No such process" in told
    assert "CapBnd:\t0000000000000000" in told
    assert "NoNewPrivs:\t1" in told
    assert [line.split(":")[0].strip() for line in told.splitlines() if ":" in line and "0    0" in line] == ["lo"]


async def test_a_proven_command_can_change_nothing_and_sees_no_secret(sandbox: SandboxPolicy, root: Path) -> None:
    (root / ".git").mkdir()
    spoil = "cat poem.txt .env; echo a > new.txt; echo b > .git/config"

    read, edited = await confined(sandbox, root, spoil, "read"), await confined(sandbox, root, spoil, "edit")

    assert (read.metadata["sandbox"], edited.metadata["sandbox"]) == ("read", "edit")
    for output, refused in ((read.output, 2), (edited.output, 1)):
        assert ("Rose" in str(output), SECRET in str(output)) == (True, False)
        assert str(output).count(": Read-only file system") == refused, output
    assert (root / "new.txt").read_text() == "a\n"


async def confined(sandbox: SandboxPolicy, root: Path, command: str, to: Confined) -> ToolOutput:
    """As if it had been proven."""
    bash, place, wanted = Bash(sandbox=sandbox), Place(root=root, cwd=root, seal=SEAL), {"command": command}
    analysis = await bash.examine(wanted, place)
    assert analysis.boundary == "all"
    return await bash.run(ToolCall("call-1", wanted, place, analysis, confined=to))


async def test_its_limits_are_those_of_the_call(sandbox: SandboxPolicy, root: Path) -> None:
    small = Seal(image="tools", memory_mb=64, processes=20, file_mb=1)
    full = await run(sandbox, "Bash", root, small, command="head -c 3000000 /dev/zero > big; stat -c %s big")
    many = await run(sandbox, "Bash", root, small, command="for i in {1..40}; do sleep 2 & done; wait")
    fat = await run(sandbox, "Bash", root, small, command="a=$(head -c 200000000 /dev/zero | cat -v); echo done")
    with pytest.raises(GivenUp, match="ended in its sandbox without an answer"):
        await run(sandbox, "die", root)

    assert "1048576" in str(full.output)
    assert "fork" in str(many.output)
    assert "done" not in str(fat.output)


async def test_the_folder_that_a_command_went_to_is_kept_if_it_is_in_the_workspace(
    sandbox: SandboxPolicy, root: Path
) -> None:
    (root / "inner").mkdir()

    moved = await run(sandbox, "Bash", root, command="cd inner; exit 3")
    away = await run(sandbox, "Bash", root, command="cd /bin")

    assert (moved.cwd, moved.metadata["exit_code"], away.cwd) == (root / "inner", 3, None)


def runs(command: str) -> bool:
    return not subprocess.run(["pgrep", "-f", command], check=False, stdout=subprocess.DEVNULL).returncode


def exists(path: Path) -> Callable[[], Awaitable[bool]]:
    async def there() -> bool:
        return await asyncio.to_thread(path.exists)

    return there


def left(image: Image) -> str:
    listed = ["ps", "--all", "--quiet", "--filter", "label=longhaul=call"]
    return subprocess.run([image.engine, *listed], capture_output=True, text=True, check=True).stdout


async def test_nothing_outlives_a_call_its_time_or_its_interruption(
    sandbox: SandboxPolicy, image: Image, root: Path
) -> None:
    mark = a_while()
    deaf = f"trap '' TERM INT; setsid sleep {mark} & sleep {mark}"

    timed = await run(sandbox, "Bash", root, command=deaf, timeout=1_500)
    stopped = asyncio.ensure_future(run(sandbox, "Bash", root, command=f"touch started; {deaf}"))
    await until(exists(root / "started"))
    stopped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopped
    await run(sandbox, "Bash", root, command=f"sleep {mark} & echo behind")

    assert timed.metadata["ended"] == "timeout"
    assert not runs(f"sleep {mark}")
    assert left(image) == ""


RUNS = """
import asyncio, sys
from pathlib import Path
from longhaul.activities.process.sandbox import SandboxPolicy
from longhaul.activities.process.container import read_images
from longhaul.agent.permission.call_analysis import Confined
from longhaul.agent.values.spec.workspace import Seal
from tests.activities.tools.test_contained import run
sandbox = SandboxPolicy(images=read_images(sys.argv[1]))
asyncio.run(run(sandbox, "Bash", Path(sys.argv[2]), command=f"touch started; sleep {sys.argv[3]}"))
"""


@pytest.mark.proves("E12")
def test_a_worker_that_is_killed_leaves_no_container(image: Image, root: Path) -> None:
    mark = a_while()
    named = f"tools={image.engine}:{image.reference}"
    with subprocess.Popen(
        [sys.executable, "-c", RUNS, named, str(root), mark], cwd=Path(__file__).parents[3]
    ) as worker:
        give_up = time.monotonic() + SURE_SECONDS
        while not (root / "started").exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        worker.kill()
    while left(image) and time.monotonic() < give_up:
        time.sleep(0.1)

    assert (root / "started").exists()
    assert left(image) == ""
    assert not runs(f"sleep {mark}")


async def test_an_image_that_is_not_there_runs_nothing(sandbox: SandboxPolicy, image: Image, root: Path) -> None:
    gone = SandboxPolicy("proven", images=(replace(image, reference="localhost/longhaul-tests:none"),))
    with pytest.raises(ToolError, match=f"nothing ran, .*{image.engine} started nothing: .*longhaul-tests:none"):
        await run(gone, "Bash", root, command="touch made")
    with pytest.raises(ToolError, match=f"nothing ran, .*{image.engine} started nothing"):
        await run(gone, "Write", root, file_path=str(root / "made"), content="")

    assert not (root / "made").exists()
    assert await image_problem(image, sandbox.limits) == ""


@pytest.mark.parametrize("name", ["Bash", "Write"])
async def test_an_image_that_is_not_listed_runs_nothing(root: Path, name: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "Bash": {"command": "touch made"},
        "Write": {"file_path": str(root / "made"), "content": ""},
    }
    with pytest.raises(ToolError, match=r"has no image 'tools'; its operator lists .* LONGHAUL_IMAGES"):
        await run(SandboxPolicy("proven"), name, root, **given[name])

    assert not (root / "made").exists()


def test_images_are_listed_by_name_engine_and_reference() -> None:
    listed = read_images("build=podman:localhost/team/build:3, lint = docker:team/lint@sha256:00")

    assert listed == (
        Image("build", "podman", "localhost/team/build:3"),
        Image("lint", "docker", "team/lint@sha256:00"),
    )
    for wrong in ("build", "build=runc:x", "=podman:x", "build=podman:", "build=podman:--privileged"):
        with pytest.raises(BadImages, match="names no image; write NAME=podman:IMAGE"):
            read_images(wrong)
