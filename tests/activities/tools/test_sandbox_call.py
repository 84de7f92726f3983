"""A workspace that is a sandbox: every tool works in it, and none gets out."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.process.container import Limits
from longhaul.activities.process.sandbox import SandboxPolicy, bwrap_problem
from longhaul.activities.tool import GivenUp, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.activities.tools.registry import default_tools, load_modules
from longhaul.activities.tools.sandbox_call import Sandboxes
from longhaul.agent.values.spec.workspace import Seal

pytestmark = pytest.mark.skipif(bool(bwrap_problem()), reason="there is no bubblewrap")

SANDBOX = SandboxPolicy("proven", limits=Limits())
TOOLS = {
    tool.name: tool for tool in (*default_tools(sandbox=SANDBOX), *load_modules("tests.activities.tools.sealed_tools"))
}
SECRET = "the-neighbours-words"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "poem.txt").write_text("Rose\n")
    (tmp_path / "outside.txt").write_text(SECRET)
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    return root


async def run(name: str, root: Path, seal: Seal | None = None, **arguments: Any) -> ToolOutput:
    """Run it as it was allowed: with the findings of this moment."""
    return await run_in(Place(root=root, cwd=root, seal=seal or Seal()), TOOLS[name], arguments)


async def run_in(place: Place, tool: Tool, arguments: dict[str, Any], sandbox: SandboxPolicy = SANDBOX) -> ToolOutput:
    call = ToolCall("call-1", arguments, place, await tool.examine(arguments, place), secrets={"KEY": "abc"})
    return await Sandboxes(sandbox).run(tool, call)


async def test_the_file_tools_work_in_it(root: Path) -> None:
    read = await run("Read", root, file_path=str(root / "poem.txt"))
    await run("Write", root, file_path=str(root / "new" / "a.txt"), content="one\n")
    await run("Edit", root, file_path=str(root / "poem.txt"), old_string="Rose", new_string="Tulip")
    grep = await run("Grep", root, pattern="Tul", path=str(root), output_mode="content")
    glob = await run("Glob", root, pattern="**/*.txt", path=str(root))
    bash = await run("Bash", root, command="cat poem.txt; echo more > more.txt")

    assert "Rose" in str(read.output)
    assert ((root / "poem.txt").read_text(), (root / "new" / "a.txt").read_text()) == ("Tulip\n", "one\n")
    assert "Tulip" in str(grep.output)
    assert "a.txt" in str(glob.output)
    assert (bash.output, (root / "more.txt").read_text()) == ("Tulip", "more\n")
    assert {one.metadata["sandbox"] for one in (read, grep, glob, bash)} == {"all"}


@pytest.mark.proves("E12")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Read", {"file_path": "{outside}"}),
        ("Read", {"file_path": "{root}/link.txt"}),
        ("Read", {"file_path": "/proc/{pid}/environ"}),
        ("Edit", {"file_path": "{outside}", "old_string": "the", "new_string": "THE"}),
        ("Write", {"file_path": "{outside}", "content": "spoilt"}),
        ("Grep", {"pattern": "neighbours", "path": "{folder}", "output_mode": "content"}),
        ("Glob", {"pattern": "**/outside.txt", "path": "{folder}"}),
        ("Bash", {"command": "cat {outside} link.txt /proc/{pid}/environ; echo spoilt > {outside}"}),
    ],
)
async def test_no_tool_reads_or_writes_outside_of_it(root: Path, name: str, arguments: dict[str, str]) -> None:
    outside = root.parent / "outside.txt"
    about = {"outside": outside, "root": root, "folder": root.parent, "pid": os.getpid()}
    given: dict[str, Any] = {key: value.format(**about) for key, value in arguments.items()}

    try:
        told = str((await run(name, root, **given)).output)
    except ToolError as error:
        told = str(error)

    assert SECRET not in told
    assert f"{outside}\n" not in f"{told}\n" or name != "Glob"
    assert "PATH=" not in told
    assert outside.read_text() == SECRET


@pytest.fixture
def listening() -> Iterator[tuple[str, int]]:
    """A socket in the file system and a port, which both answer."""
    path = Path("/var/tmp") / f"longhaul-{os.getpid()}.sock"
    with socket.socket(socket.AF_UNIX) as one, socket.create_server(("127.0.0.1", 0)) as other:
        one.bind(str(path))
        one.listen()
        yield str(path), other.getsockname()[1]
    path.unlink()


@pytest.fixture
def neighbour() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["/bin/sleep", "60"])
    yield process
    process.kill()
    process.wait()


async def test_a_tool_of_ones_own_reaches_no_file_process_socket_or_network(
    root: Path, listening: tuple[str, int], neighbour: "subprocess.Popen[bytes]"
) -> None:
    about: dict[str, Any] = {
        "outside": str(root.parent / "outside.txt"),
        "listening": listening[0],
        "port": listening[1],
    }
    found = await run("look_around", root, pid=neighbour.pid, **about)

    told = str(found.output).split()
    assert len(told) == 5
    assert "reached" not in told
    assert neighbour.poll() is None


async def test_a_command_reaches_no_socket_process_or_network_either(
    root: Path, listening: tuple[str, int], neighbour: "subprocess.Popen[bytes]"
) -> None:
    there, port = listening
    found = await run(
        "Bash",
        root,
        command=f"test -e {there} && echo reached; (echo > /dev/tcp/127.0.0.1/{port}) && echo reached; "
        f"kill {neighbour.pid} && echo reached; ls -d /proc/[0-9]* | wc -l",
    )

    assert "reached" not in str(found.output)
    assert int(str(found.output).split()[-1]) < 10, "the processes of the sandbox alone"
    assert neighbour.poll() is None


def test_each_tool_is_in_the_sandbox_or_touches_no_file_of_the_workspace() -> None:
    """One that is new fails here until it is said where it works."""
    elsewhere = {
        "Bash": "makes the sandbox itself, tests above",
        "BashOutput": "reads what the worker has kept of a command in the background",
        "Skill": "reads the operator's skills",
    }
    own = {tool.name for tool in load_modules("tests.activities.tools.sealed_tools")}

    assert {name for name, tool in TOOLS.items() if not tool.sandboxed_from} == {*elsewhere}
    assert own <= {name for name, tool in TOOLS.items() if tool.sandboxed_from}


async def test_a_tool_of_ones_own_runs_programs_in_it_with_its_secrets(root: Path) -> None:
    found = await run("run_program", root, command="cat poem.txt; echo made > made.txt; ls /home /root")

    assert "Rose" in str(found.output)
    assert str(found.output).endswith("with 3 letters")
    assert (root / "made.txt").read_text() == "made\n"


async def test_limits_hold_and_a_tool_that_dies_is_told_as_given_up(root: Path) -> None:
    small = Seal(memory_mb=256, file_mb=1)
    full = await run("Bash", root, small, command="head -c 3000000 /dev/zero > big; stat -c %s big")
    with pytest.raises(ToolError, match="MemoryError"):
        await run("take_memory", root, small, megabytes=400)
    with pytest.raises(GivenUp, match="ended in its sandbox without an answer"):
        await run("die", root)

    assert (root / "big").stat().st_size <= 1 << 20
    assert "1048576" in str(full.output)


async def test_where_no_sandbox_can_be_made_nothing_runs() -> None:
    with pytest.raises(ToolError, match="this workspace is a sandbox, and none can be made here"):
        await run("Read", Path("/"), file_path="/etc/passwd")
    assert Bash(sandbox=SANDBOX).sandboxed_from == ""


def spoilt(root: Path) -> Path:
    """The workspace under a name that is imported, and with modules that tell when they are."""
    root = root.rename(root.with_name("pydantic"))
    (root / "inner").mkdir()
    for name in ("asyncio", "json", "pydantic", "sitecustomize", "longhaul", "__init__"):
        for folder in (root, root / "inner"):
            (folder / f"{name}.py").write_text("import os; os.mkdir(f'{__file__}.ran')\nraise SystemExit(1)\n")
    return root


@pytest.mark.parametrize("started", ["elsewhere", "in the workspace", "above it"])
async def test_no_module_of_the_workspace_is_imported(
    root: Path, monkeypatch: pytest.MonkeyPatch, started: str
) -> None:
    root = spoilt(root)
    if started != "elsewhere":
        monkeypatch.syspath_prepend(str(root if started == "in the workspace" else root.parent))

    for cwd in (root, root / "inner"):
        place = Place(root=root, cwd=cwd, seal=Seal())
        read = await run_in(place, TOOLS["Read"], {"file_path": str(root / "poem.txt")})
        ran = await run_in(place, TOOLS["run_program"], {"command": "pwd"})
        assert "Rose" in str(read.output)
        assert str(ran.output).startswith(f"{cwd}\n")
    assert not list(root.rglob("*.ran"))


async def test_a_worker_that_lies_in_the_workspace_runs_nothing_in_it() -> None:
    with pytest.raises(ToolError, match="the worker's own Python lies in it"):
        await run("Read", Path(sys.prefix), file_path=str(Path(sys.prefix, "pyvenv.cfg")))


async def test_beside_a_module_of_one_file_nothing_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operators = root.parent / "operators"
    package = operators / "shed"
    package.mkdir(parents=True)
    kept = [operators / ".env", operators / ".longhaul" / "key", package / ".longhaul" / "key"]
    for secret in kept:
        secret.parent.mkdir(exist_ok=True)
        secret.write_text(SECRET)
    source = (Path(__file__).parent / "sealed_tools.py").read_text()
    (operators / "hut.py").write_text(source)
    (package / "__init__.py").write_text(source)
    monkeypatch.syspath_prepend(str(operators))
    sandbox = SandboxPolicy("proven", limits=Limits(), hidden=(operators / ".longhaul", package / ".longhaul"))

    for module in ("hut", "shed"):
        tool = next(one for one in load_modules(module) if one.name == "run_program")
        command = "cat poem.txt " + " ".join(map(str, kept))
        found = await run_in(Place(root=root, cwd=root, seal=Seal()), tool, {"command": command}, sandbox)
        assert "Rose" in str(found.output)
        assert SECRET not in str(found.output)


async def test_limits_hold_for_a_command_that_runs_unasked_too(root: Path) -> None:
    place, command = Place(root=root, cwd=root, seal=Seal(file_mb=1)), {"command": "ulimit -f"}
    bash = TOOLS["Bash"]
    call = ToolCall("call-1", command, place, await bash.examine(command, place), confined="read")

    assert (await Sandboxes(SANDBOX).run(bash, call)).output == "1024"
