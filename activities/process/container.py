"""The box around a command where it is a container: what Podman or Docker is told, and how the call comes to its end.

Each call has a container of its own, as it has a sandbox of its own with bubblewrap. Its first process is a shell that
holds the supervisor's leash: when that is let go, also by `kill -9` of the worker, the shell ends, and with it the
kernel ends all that is in the container, whoever its engine's processes belong to.

The share of the machine that a command in a sandbox may take, as supervisors and engines are told.
"""

import asyncio
import os
import re
import resource
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longhaul.activities.process.program_run import Ending, Sink, run_supervised
from longhaul.activities.process.supervisor import NOTE_CAP_BYTES, NOTE_FD
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.spec.workspace import IMAGE_NAME, Seal


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each process of a call, but for `processes`: of all that belong to the worker's user."""

    cpu_seconds: int = 3_600
    file_mb: int = 4_096
    processes: int = 4_096
    memory_mb: int = 8_192
    """Of its data; address space that is only reserved does not count."""

    def within(self, seal: Seal) -> "Limits":
        """The lower ones of both."""
        return replace(
            self,
            file_mb=min(self.file_mb, seal.file_mb or self.file_mb),
            processes=min(self.processes, seal.processes or self.processes),
            memory_mb=min(self.memory_mb, seal.memory_mb or self.memory_mb),
        )

    def words(self) -> str:
        """As the supervisor takes them: names of `resource`, and bytes."""
        mb = 1 << 20
        return f"CPU={self.cpu_seconds} FSIZE={self.file_mb * mb} NPROC={self.processes} DATA={self.memory_mb * mb}"

    def of_container(self) -> Iterator[str]:
        """As engines take them; memory and processes are then those of the whole call."""
        yield from ("--memory", f"{self.memory_mb}m", "--pids-limit", str(self.processes))
        yield from ("--ulimit", f"cpu={self.cpu_seconds}:{self.cpu_seconds}")
        yield from ("--ulimit", f"fsize={self.file_mb << 20}:{self.file_mb << 20}")
        for name, most in {"nofile": 1 << 16, "nproc": 1 << 15}.items():
            # An engine's own figures may be above what this machine grants it.
            value = _granted(name, most)
            yield from ("--ulimit", f"{name}={value}:{value}")

    def of_shell(self) -> str:
        """For `ulimit`, where an engine may have no cgroups: memory of each process, and how many its user has."""
        return f"-d {_granted('data', self.memory_mb << 20) >> 10} -u {_granted('nproc', self.processes)}"


def _granted(name: str, most: int) -> int:
    granted = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
    return most if granted == resource.RLIM_INFINITY else min(most, granted)


SETTING = "LONGHAUL_IMAGES"
ENGINES = ("podman", "docker")
TRY_SECONDS = 5.0
LEASH = "LEASH=5"
"""For the supervisor: the engine gets these seconds to take the container away."""
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,400}")
_OF_THE_ENGINE = (
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
    *("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
)
_ITS_OWN = frozenset({"PATH", "HOME", "PWD", "SHELL", "USER", "LOGNAME", *_OF_THE_ENGINE})
"""Variables that the image has of its own, or that say where the engine is."""
_STARTED = "started\n"
_FIRST = f"""exec 9<&0 </dev/null {NOTE_FD}>"$1"
[ -z "$2" ] || ulimit $2 || exit
echo started >&{NOTE_FD}
shift 2
# Without it what runs in the background is deaf to SIGINT.
set -m
{{ read -r -u 9; }} {NOTE_FD}>&- & leash=$!
trap 'exit 143' TERM
trap 'kill -0 "$leash" 2>/dev/null || exit 137' CHLD
"$@" 9<&- 2>&1 &
wait "$!"
exit
"""
"""The container's first process, which nothing in the container can kill. It ends when the command ends, when its input
closes, and when what waits for that is killed."""


class BadImages(BadSetup):
    """The operator's list of images can't be read; the sentence says where, and what to write."""


class NotStarted(Exception):
    """The engine has started nothing; the text is what it said."""


@dataclass(frozen=True, slots=True)
class Image:
    """One that agents may name."""

    name: str
    engine: str
    reference: str


@dataclass(frozen=True, slots=True)
class Container:
    """The one that a command is to run in."""

    image: Image
    options: tuple[str, ...]
    ulimits: str
    """What its shell is held to before it runs anything: without root Podman may ignore limits that need cgroups."""


def read_images(setting: str) -> tuple[Image, ...]:
    """From `build=podman:localhost/team/build:3, lint=docker:team/lint`. Raises BadImages."""
    return tuple(_images(setting))


def _images(setting: str) -> Iterator[Image]:
    for part in filter(None, (part.strip() for part in setting.split(","))):
        name, _, rest = (half.strip() for half in part.partition("="))
        engine, _, reference = rest.partition(":")
        if not re.fullmatch(IMAGE_NAME, name) or engine not in ENGINES or not _REFERENCE.fullmatch(reference):
            raise BadImages(f"{SETTING}: {part!r} names no image; write NAME=podman:IMAGE or NAME=docker:IMAGE")
        yield Image(name, engine, reference)


def container(image: Image, shown: Sequence[str], cwd: Path, limits: Limits, *, network: bool) -> Container:
    """`shown`: mounts in the words of bubblewrap. Raises NotStarted for a name that an engine can't be told."""
    mounts = [word for one in _mounts(shown) for word in one]
    rootless = image.engine == "podman" and os.getuid() != 0
    words = (
        *("--rm", "--interactive", "--pull", "never", "--label", "longhaul=call", "--log-driver", "none"),
        *("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"),
        # What is mounted keeps the labels that it has outside: it is not this program's to give it others.
        *("--security-opt", "label=disable"),
        *("--user", f"{os.getuid()}:{os.getgid()}"),
        *(("--userns", "keep-id") if rootless else ()),
        *(() if network else ("--network", "none")),
        *("--tmpfs", "/tmp:rw,exec,nosuid,nodev,size=256m,mode=1777", "--env", "HOME=/tmp"),  # noqa: S108  its own
        *limits.of_container(),
        *mounts,
        *("--workdir", str(cwd), "--entrypoint", "/bin/bash"),
    )
    return Container(image, words, limits.of_shell() if rootless else "")


def _mounts(shown: Sequence[str]) -> Iterator[tuple[str, str]]:
    words = iter(shown)
    for how in words:
        path = next(words)
        if how == "--tmpfs":
            yield ("--mount", f"type=tmpfs,dst={_plain(path)},ro")
            continue
        target = next(words)
        if not (how.endswith("-try") and not os.path.lexists(path)):
            reading = ",ro" if how.startswith("--ro-") else ""
            yield ("--mount", f"type=bind,src={_plain(path)},dst={_plain(target)}{reading}")


def _plain(path: str) -> str:
    if any(sign in path for sign in ',"\n\r'):
        raise NotStarted(f"a container engine cannot take {path!r}: it has a comma, a quote or a line end in it")
    return path


async def run_contained(
    where: Container,
    command: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    timeout_seconds: float,
    output: Sink,
) -> Ending:
    """As `run_supervised`, in a container of its own. Raises NotStarted, with what the engine said."""
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="longhaul-container-"))
    try:
        note, complaint = folder / "note", folder / "complaint"
        note.touch(mode=0o600)
        # Their values are read from the client's own environment: as arguments everybody could see them.
        names = [word for name in environment if name not in _ITS_OWN for word in ("--env", name)]
        words = (
            *(
                "/bin/sh",
                "-c",
                'exec "$@" 2>"$0"',
                str(complaint),
                (shutil.which(where.image.engine) or where.image.engine),
                "run",
                *where.options,
                *names,
            ),
            *("--mount", f"type=bind,src={note},dst={note}", where.image.reference),
            *("-c", _FIRST, "longhaul", str(note), where.ulimits, *command),
        )
        outside = {
            **environment,
            **{name: os.environ[name] for name in ("PATH", "HOME", *_OF_THE_ENGINE) if name in os.environ},
        }
        ending = await run_supervised(words, cwd, outside, timeout_seconds, output, LEASH)
        with note.open("rb") as file:
            said = file.read(len(_STARTED) + NOTE_CAP_BYTES).decode("utf-8", "surrogateescape")
        if not said.startswith(_STARTED) and ending.how == "exited":
            try:
                complained = complaint.read_bytes()[-500:].decode("utf-8", "replace").strip()
            except OSError:
                complained = ""
            raise NotStarted(f"{where.image.engine} started nothing: {complained or ending.status}")
        return replace(ending, note=said.removeprefix(_STARTED).encode("utf-8", "surrogateescape"))
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def image_problem(image: Image, limits: Limits) -> str:
    """Why no command can run in it; empty where one just did."""
    if shutil.which(image.engine) is None:
        return f"{image.engine} is not installed"
    here = container(image, (), Path("/"), limits, network=False)
    try:
        ending = await run_contained(here, ("/bin/bash", "-c", ":"), Path("/"), {}, TRY_SECONDS, _Nothing())
    except NotStarted as why:
        return str(why)
    return "" if ending.how == "exited" and not ending.status else f"its first command ended with {ending.status}"


class _Nothing:
    """What nobody reads."""

    total_bytes, full = 0, False

    def add(self, chunk: bytes) -> None: ...
