"""What runs unasked is held to its proof: the lines here are none that would pass, run as if they had."""

# ruff: noqa: ASYNC240  the loop has nothing else to do

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from longhaul.activities import repository
from longhaul.activities.process.sandbox import SandboxPolicy, bwrap_problem
from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.bash import REFUSED, Bash
from longhaul.agent.permission.call_analysis import Confined
from tests.activities.corpora.harness import listening
from tests.activities.corpora.stage import git
from tests.activities.tools.calls import called
from tests.activities.tools.holding import PROVEN, SECRET, held, said

pytestmark = pytest.mark.usefixtures("bubblewrap")

ELSEWHERE = ("/usr", "/etc", "/", "/dev", "/bin", "/lib", "/root", "/home", "/var", "/var/tmp", "/run", "/proc", "/opt")


@pytest.fixture(autouse=True)
def tidy() -> Iterator[None]:
    yield
    bwrap_problem.cache_clear()


@pytest.mark.parametrize("folder", ELSEWHERE)
@pytest.mark.parametrize("confined", ["read", "edit"])
async def test_outside_of_the_workspace_nothing_is_written(place: Place, folder: str, confined: Confined) -> None:
    name = f"{folder}/longhaul-{os.getpid()}"

    output = await held(place, f"touch {name} && echo reached", confined)

    assert output.failed
    assert "reached" not in str(output.output)
    assert not os.path.lexists(name)


@pytest.mark.parametrize(
    "command",
    [
        "touch new", "echo x > file", "echo x >> file", "rm file", "mv file other", "mkdir made", "ln -s / link",
        "chmod 777 file", "truncate -s 0 file", "cp /etc/passwd file", "sed -i s/a/b/ file", "git init made",
    ],
)  # fmt: skip
async def test_what_only_reads_writes_nothing_in_the_workspace_either(place: Place, command: str) -> None:
    (place.root / "file").write_text("as it was")

    output = await held(place, command)

    assert output.failed
    assert str(output.output).endswith(REFUSED["read"])
    assert [(path.name, path.read_text()) for path in place.root.iterdir()] == [("file", "as it was")]


async def test_tmp_is_its_own_and_gone_with_it(place: Place) -> None:
    name = f"/tmp/longhaul-{os.getpid()}"

    assert await said(place, f"echo x > {name}; cat {name}; echo $TMPDIR") == "x\n/tmp"
    assert not os.path.lexists(name)


@pytest.mark.parametrize("confined", ["read", "edit"])
async def test_there_is_no_network_and_no_socket(place: Place, confined: Confined, tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    listener.listen()
    hidden = socket.socket(socket.AF_UNIX)
    hidden.bind(f"\0longhaul-{os.getpid()}")
    hidden.listen()
    call = "import socket; socket.socket(socket.AF_UNIX).connect"
    async with listening() as heard:
        said_ = await said(
            place,
            f"(: > /dev/tcp/127.0.0.1/{heard.port}) && echo reached; "
            f"python3 -c \"{call}('{tmp_path}/socket')\" && echo reached; "
            f"python3 -c \"{call}('\\0longhaul-{os.getpid()}')\" && echo reached; cat /proc/net/dev | grep -c :",
            confined,
        )
        calls = heard.calls
    listener.close()
    hidden.close()

    assert "reached" not in said_
    assert said_.splitlines()[-1] == "1", "the loopback alone"
    assert calls == 0


@pytest.mark.parametrize("confined", ["read", "edit"])
async def test_homes_data_and_other_workspaces_are_not_there(
    place: Place, home: Path, confined: Confined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # programs in a home folder are seen, and take long to look through
    data, other = tmp_path / "data", place.root.parent / "other"
    for folder in (data, other):
        folder.mkdir()
        (folder / "kept").write_text(SECRET)
    sandbox = replace(PROVEN, hidden=(data,))
    links = {"to-home": home, "to-key": home / ".ssh/id_rsa", "to-other": other, "to-root": Path("/"), "up": Path("..")}
    for name, target in links.items():
        (place.root / name).symlink_to(target)
    passing_by = "--exclude-dir=proc --exclude-dir=dev --exclude-dir=usr"
    places = f"{home} {data} {other} /home /root /run /var /srv /mnt /media /boot /sys /etc/shadow /etc/ssh {tmp_path}"

    seen = await said(
        place,
        f"grep -raso {passing_by} {SECRET} {places} to-* up . ; cat to-key to-home/notes; ls -A {places}",
        confined,
        sandbox,
    )

    assert SECRET not in seen
    assert {"notes", "kept", "shadow", "other", "data"}.isdisjoint(seen.split())


async def test_only_its_own_processes_are_there(place: Place) -> None:
    every = "import glob; print([open(f'{one}/comm').read().strip() for one in glob.glob('/proc/[0-9]*')])"

    seen = await said(place, f'python3 -c "{every}"')

    assert seen == "['bwrap', 'bash', 'python3']"


async def test_it_can_gain_no_rights(place: Place) -> None:
    seen = await said(
        place, "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status; unshare -m true; mount -t tmpfs x /"
    )

    assert seen.count("\t0000000000000000") == 2
    assert "NoNewPrivs:\t1" in seen
    assert "must be superuser" in seen or "permission denied" in seen.lower()


async def test_secrets_of_the_workspace_read_as_empty_but_for_those_that_git_tracks(place: Place) -> None:
    root = place.root
    for name in (".env", "deep/.npmrc", "deep/er/id_rsa", ".gnupg/ring", "tracked.key"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"PRIVATE KEY token {SECRET}")
    git(root, "init", "-q")
    git(root, "add", "tracked.key")
    git(root, "commit", "-qm", "first")

    seen = await said(
        place, f"grep -rl {SECRET} .; git status --short tracked.key; ls -A .gnupg; test -f .env; echo $?"
    )

    assert seen == "./tracked.key\n0"


async def test_the_working_directory_persists(place: Place) -> None:
    (place.root / "a b").mkdir()

    output = await held(place, "cd 'a b' && ls")

    assert output.cwd == place.root / "a b"
    assert output.metadata["sandbox"] == "read"


async def test_output_is_cut_and_time_is_up_as_without(place: Place) -> None:
    flood = await held(place, "yes | head -c 3000000; head -c 200 /dev/zero | tr '\\0' z")
    bash = Bash(sandbox=PROVEN)
    late_call = {"command": "sleep 5.0993 & sleep 5.0993", "timeout": 300}
    analysis = await bash.examine(late_call, place)
    late = await bash.run(replace(called(late_call, place, analysis), confined="read"))

    assert flood.metadata["output_bytes"] == 3_000_200
    assert len(str(flood.output)) < 40_000
    assert str(flood.output).endswith("z")
    assert late.metadata["ended"] == "timeout"


PROTECTED = (
    ".git/config", ".git/hooks/pre-commit", ".github/workflows/ci.yml", ".gitlab-ci.yml", "agents/coder.toml",
    "Makefile", "AGENTS.md", ".vscode/tasks.json", ".npmrc", "deep/conftest.py", "deep/er/.envrc",
    ".longhaul/workspace",
)  # fmt: skip


@pytest.mark.parametrize("name", PROTECTED)
@pytest.mark.parametrize(
    "command", ["echo evil > {}", "rm -f {}", "cp plain {}", "mv plain {}", "sed -i s/was/evil/ {}"]
)
async def test_what_others_run_is_not_edited(place: Place, name: str, command: str) -> None:
    parts = tuple(name.split("/"))
    assert repository.danger_by_name(parts, "write") or repository.danger_to_others(parts)
    (place.root / name).parent.mkdir(parents=True, exist_ok=True)
    (place.root / name).write_text("as it was")
    (place.root / "plain").write_text("evil")

    output = await held(place, command.format(name), "edit")

    assert str(output.output).endswith(REFUSED["edit"])
    assert (place.root / name).read_text() == "as it was"


@pytest.mark.parametrize("name", [*PROTECTED, "deep/.env", "deep/er/id_rsa", "deep/er/still/Makefile"])
@pytest.mark.parametrize("command", ["mv {} moved", "mv -T {} moved", "mv {}/ plain", "cd {}/.. && mv {name} moved"])
async def test_nor_moved_away_with_a_folder_above_it(place: Place, name: str, command: str) -> None:
    (place.root / name).parent.mkdir(parents=True, exist_ok=True)
    (place.root / name).write_text("as it was")
    (place.root / "plain").mkdir()
    folder = name.partition("/")[0]

    for path in (name, folder, str(Path(name).parent)):
        line = command.format(path, name=Path(path).name)
        await held(place, f"{line}; mkdir -p {Path(name).parent}; echo evil > {name}", "edit")

    assert (place.root / name).read_text() == "as it was"


async def test_beside_what_others_run_files_are_edited_and_moved(place: Place) -> None:
    for name in ("deep/er/Makefile", "deep/er/app.py", "deep/other.py", "src/x.py"):
        (place.root / name).parent.mkdir(parents=True, exist_ok=True)
        (place.root / name).write_text("as it was")

    output = await held(
        place, "mv deep/er/app.py deep/b.py; mv deep/other.py src/y.py; mv src deep/er/src; mkdir deep/new", "edit"
    )

    assert not output.failed
    files = sorted(str(path.relative_to(place.root)) for path in place.root.rglob("*") if path.is_file())
    assert files == ["deep/b.py", "deep/er/Makefile", "deep/er/src/x.py", "deep/er/src/y.py"]
    assert (place.root / "deep/new").is_dir()


async def test_the_rest_of_the_workspace_is_edited(place: Place) -> None:
    (place.root / "src").mkdir()
    (place.root / "src/app.py").write_text("a\n")
    git(place.root, "init", "-q")

    await held(place, "sed -i s/a/b/ src/app.py; mkdir -p x/y; mv src/app.py x/y; touch x/new; git status", "edit")

    assert (place.root / "x/y/app.py").read_text() == "b\n"
    assert (place.root / "x/new").exists()


async def test_an_edit_runs_no_program_that_a_repository_names(place: Place) -> None:
    git(place.root, "init", "-q")
    git(place.root, "config", "core.fsmonitor", "touch ran; echo ran;:")

    await held(place, "touch x && git status", "edit")
    await held(place, "touch y && git status", "edit", SandboxPolicy("off"))

    assert sorted(path.name for path in place.root.iterdir()) == [".git", "x", "y"]


@pytest.mark.parametrize("confined", ["read", "edit"])
async def test_what_can_not_be_held_here_is_decided_on_again(
    place: Place, confined: Confined, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = Bash(sandbox=PROVEN)
    call = called({"command": "touch ran"}, place, await bash.examine({"command": "touch ran"}, place))
    monkeypatch.setenv("PATH", "/nowhere")
    bwrap_problem.cache_clear()

    for worker, boundary in ((bash, "none"), (Bash(sandbox=SandboxPolicy("off")), "off")):
        with pytest.raises(NeedsDecision) as asked:
            await worker.run(replace(call, confined=confined))
        assert asked.value.analysis.boundary == boundary
    assert not (place.root / "ran").exists()


async def test_where_the_operator_does_without_it_runs_as_it_is(place: Place) -> None:
    output = await held(place, "touch ran; pwd", sandbox=SandboxPolicy("off"))

    assert output.metadata["sandbox"] == "off"
    assert (place.root / "ran").exists()


async def test_what_a_person_allowed_runs_outside_unless_all_is_to_be_held(place: Place, tmp_path: Path) -> None:
    there = tmp_path.resolve() / "there"

    outside = await held(place, f"touch {there}", "")
    inside = await held(place, f"touch {there}/more", "", SandboxPolicy("all"))

    assert there.exists()
    assert [output.metadata["sandbox"] for output in (outside, inside)] == ["off", "all"]
    assert inside.failed


async def test_a_sandbox_that_can_not_be_made_is_no_result_of_the_command(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bin/bwrap"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\ncase "$*" in *ls) echo "bwrap: no room" >&2; exit 1;; esac\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    bwrap_problem.cache_clear()

    with pytest.raises(ToolError, match=r"nothing ran, for its sandbox could not be made: bwrap: no room"):
        await held(place, "ls")


@pytest.mark.parametrize("confined", ["read", "edit"])
def test_an_ordinary_user_is_held_as_root_is(confined: str, tmp_path: Path) -> None:
    """As another user where the tests run as root: the rights of root must not be what holds."""
    root = Path(f"/tmp/longhaul-user-{os.getpid()}-{confined}")
    root.mkdir()
    root.chmod(0o777)
    program = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from longhaul.activities.tools.bash import Bash
from longhaul.activities.process.sandbox import SandboxPolicy
from tests.activities.tools.calls import called, place_at
arguments = {"command": "touch new /etc/x; id -u; ls -A ~; cat /proc/net/dev | grep -c :"}
bash, place = Bash(sandbox=SandboxPolicy("proven")), place_at(Path(sys.argv[1]))
analysis = asyncio.run(bash.examine(arguments, place))
print(analysis.boundary, analysis.no_boundary)
print(asyncio.run(bash.run(replace(called(arguments, place, analysis), confined=sys.argv[2]))).output)
"""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    user = "65534" if become else str(os.getuid())
    minor = f"/usr/bin/python3.{sys.version_info.minor}"
    tried = {name: [*become, "/bin/sh", "-c", f"{name} -c 1"] for name in (sys.executable, minor)}
    # One that lies in somebody's home folder is not for everybody.
    able = (name for name, command in tried.items() if not subprocess.run(command, check=False).returncode)
    modules = os.pathsep.join(sys.path)
    done = subprocess.run(
        [*become, next(able), "-c", program, str(root), confined],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": modules},
    )  # fmt: skip
    made = (root / "new").exists()
    (root / "new").unlink(missing_ok=True)
    root.rmdir()

    lines = done.stdout.splitlines()
    assert lines[0].strip() == "proven", done.stderr
    assert user in lines
    assert "1" in lines
    assert made is (confined == "edit")
    assert "cannot touch '/etc/x': Read-only file system" in done.stdout


async def test_many_run_at_once(place: Place) -> None:
    outputs = await asyncio.gather(*(said(place, f"echo {number}") for number in range(8)))

    assert outputs == [str(number) for number in range(8)]
