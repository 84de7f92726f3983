"""The box around a command: which sandbox it runs in, and what bubblewrap and the kernel are told for it."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from longhaul.activities.process.container import (
    SETTING,
    Container,
    Image,
    Limits,
    NotStarted,
    container,
    run_contained,
)
from longhaul.activities.process.program_run import Ending, Sink, run_supervised
from longhaul.activities.process.sandbox_view import HOLDING, TMP_BYTES, files_of, unseeable, view_of
from longhaul.agent.permission.call_analysis import Boundary, Confined
from longhaul.agent.plain.errors import BadSetup
from longhaul.agent.values.spec.workspace import SANDBOXES, Sandbox, Seal

TRY_SECONDS = 10.0
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_EMPTY = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media")  # noqa: S108  emptied, not used
"""Folders of people, of other programs' sockets, and of mounted disks."""
_SECRET_FILES = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_RESOLVER = Path("/etc/resolv.conf")
_OF_IMAGES = frozenset({"/usr", "/usr/local"})
"""Python's, where it is the system's: an image has its own there, which its programs need."""


class CantConfine(BadSetup):
    """A box is demanded, and there can be none; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class SandboxPolicy:
    """What a worker, and then an agent, wants around commands."""

    sandbox: Sandbox = "off"
    network: bool = False
    """Of a command that a person, a rule or the mode allowed; one that runs unasked has none."""
    limits: Limits = field(default_factory=Limits)
    hidden: tuple[Path, ...] = ()
    """Folders and files of the worker beside those that are always hidden."""
    shown: tuple[Path, ...] = ()
    """Folders that what was allowed in another way than by proof may read, also where they lie in hidden ones."""
    images: tuple[Image, ...] = ()
    """Those that agents may name."""
    image: str = ""
    """The one that an agent has named: its commands run in containers of it."""

    def narrowed(self, sandbox: Sandbox, network: bool | None) -> "SandboxPolicy":  # noqa: FBT001  None: the agent says nothing
        """With what an agent says of it: the stricter of both holds."""
        strictest = max(self.sandbox, sandbox, key=SANDBOXES.index)
        wanted = self.network if network is None else network
        allowed = wanted and (self.sandbox != "all" or self.network)
        return replace(self, sandbox=strictest, network=allowed)

    def note(self) -> str:
        """For the model, as a line of the tool's description; empty where nothing is confined."""
        if self.sandbox == "off":
            return ""
        unasked = (
            "\n- What runs without anybody being asked runs in a sandbox: only the workspace and installed programs "
            "are there, no network, no home folder and no other process; what only reads can write nothing at all."
        )
        if self.sandbox == "proven":
            return unasked
        network = "The network can be reached." if self.network else "There is no network."
        return (
            f"{unasked} Everything else runs in one where the workspace can be written and the rest of the system only "
            f"read; the home folder is empty, and /tmp is new for each call. {network}"
        )


@dataclass(frozen=True, slots=True)
class Sandboxed:
    """A command as it is to be started."""

    command: tuple[str, ...]
    limits: str = ""
    """For the supervisor; empty: none."""
    sandbox: Literal["off", "read", "edit", "all"] = "off"
    """Around it: of what is proven to read, or to edit; `all`: of what was allowed in another way."""
    root: Path | None = None
    empty: tuple[Path, ...] = ()
    opened: tuple[Path, ...] = ()
    contained: Container | None = None
    """In which it runs, instead of under bubblewrap."""

    def hides(self, folder: Path) -> bool:
        """Whether the command can't see this folder of the machine."""
        if self.root is None or any(folder.is_relative_to(one) for one in (self.root, *self.opened)):
            return False
        return any(folder.is_relative_to(place) for place in self.empty)


def boundary_of(sandbox: SandboxPolicy, root: Path) -> tuple[Boundary, str]:
    """What would hold a command in this workspace to its proof, and why there is nothing that could."""
    if sandbox.sandbox == "off":
        return "off", ""
    problem = _problem(sandbox, root)
    return ("none", problem) if problem else (sandbox.sandbox, "")


def sandboxed(
    sandbox: SandboxPolicy,
    command: Sequence[str],
    root: Path,
    cwd: Path,
    confined: Confined = "",
    opened: Sequence[Path] = (),
) -> Sandboxed:
    """Put the box around a command. Raises CantConfine where one is demanded and can't be had.

    `opened`: folders beside the root that a confined command sees as it sees the root.
    """
    if sandbox.sandbox == "off" or (sandbox.sandbox == "proven" and not confined):
        return Sandboxed(tuple(command))
    if problem := boundary_of(sandbox, root)[1]:
        raise CantConfine(f"commands run in a sandbox alone here, and there is none: {problem}")
    if sandbox.image:
        return _contained(sandbox, command, root, cwd, opened, confined)
    limits = sandbox.limits.words()
    if confined:
        seen = view_of(root, cwd, opened, sandbox.hidden, writing=confined == "edit")
        return Sandboxed((_bwrap(), *seen, *HOLDING, "--chdir", str(cwd), "--", *command), limits, confined)
    empty = tuple(_empty_folders(sandbox))
    shown = [word for folder in sandbox.shown for word in ("--ro-bind", str(folder), str(folder))]
    covered = [*_system(sandbox, empty), *shown, "--bind", str(root), str(root), *_secrets(sandbox, root)]
    where = root if Sandboxed((), root=root, empty=empty).hides(cwd) else cwd
    isolated = (*HOLDING, "--share-net") if sandbox.network else HOLDING
    whole = (_bwrap(), *covered, *isolated, "--chdir", str(where), "--", *command)
    return Sandboxed(whole, limits, "all", root, empty)


def sealed(  # noqa: PLR0913, PLR0917  as of `sandboxed`, and what else is to be seen
    sandbox: SandboxPolicy,
    seal: Seal,
    command: Sequence[str],
    root: Path,
    cwd: Path,
    opened: Sequence[Path],
    also: Mapping[str, str],
) -> Sandboxed:
    """The same around all tools of a workspace: nothing but that, and the programs, is there. Raises CantConfine."""
    named = replace(
        sandbox, image=seal.image, network=seal.network and sandbox.network, limits=sandbox.limits.within(seal)
    )
    if problem := _problem(named, root):
        raise CantConfine(f"this workspace is a sandbox, and none can be made here: {problem}")
    if named.image:
        return _contained(named, command, root, cwd, opened, "", also)
    seen = view_of(root, cwd, opened, sandbox.hidden, writing=True, guarded=False, also=also)
    isolated = (*HOLDING, "--share-net") if named.network else HOLDING
    asks_names = named.network and _RESOLVER.exists()
    resolver = ("--ro-bind", str(_RESOLVER.resolve()), str(_RESOLVER)) if asks_names else ()
    whole = (_bwrap(), *seen[:-2], *resolver, *seen[-2:], *isolated, "--chdir", str(cwd), "--", *command)
    return Sandboxed(whole, named.limits.words(), "all", root, tuple(map(Path, _EMPTY)))


def _contained(  # noqa: PLR0913, PLR0917  as of `sealed`
    sandbox: SandboxPolicy,
    command: Sequence[str],
    root: Path,
    cwd: Path,
    opened: Sequence[Path],
    confined: Confined,
    also: Mapping[str, str] | None = None,
) -> Sandboxed:
    """`sandbox` has an image that this worker has."""
    image = next(one for one in sandbox.images if one.name == sandbox.image)
    own = {path: how for path, how in (also or {}).items() if path not in _OF_IMAGES}
    writing, guarded = confined != "read", bool(confined)
    mounts, _ = files_of(root, opened, sandbox.hidden, writing=writing, guarded=guarded, also=own)
    network = sandbox.network and not confined
    try:
        made = container(image, mounts, cwd, sandbox.limits, network=network)
    except NotStarted as why:
        raise CantConfine(str(why)) from None
    return Sandboxed(tuple(command), "", confined or "all", root, (Path("/"),), (*opened, *map(Path, own)), made)


def _problem(sandbox: SandboxPolicy, root: Path) -> str:
    """Why neither it nor its container can be made around this workspace; empty where it can."""
    return (_image_problem(sandbox) if sandbox.image else bwrap_problem()) or unseeable(root)


def _image_problem(sandbox: SandboxPolicy) -> str:
    """Whether its engine answers is seen when a call begins: nothing runs then either."""
    if any(image.name == sandbox.image for image in sandbox.images):
        return ""
    return f"this worker has no image {sandbox.image!r}; its operator lists those that agents may name in {SETTING}"


async def run_sandboxed(
    sandboxed: Sandboxed, cwd: Path, environment: Mapping[str, str], timeout_seconds: float, output: Sink
) -> Ending:
    """As `run_supervised`. Raises NotStarted where there should be a container and is none."""
    if sandboxed.contained is None:
        return await run_supervised(sandboxed.command, cwd, environment, timeout_seconds, output, sandboxed.limits)
    return await run_contained(sandboxed.contained, sandboxed.command, cwd, environment, timeout_seconds, output)


@functools.cache
def bwrap_problem() -> str:
    """Why no sandbox can be made on this machine; empty when one can. Tried once, for real: versions tell nothing of
    what a container or a policy forbids."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    here = Path(__file__).resolve().parent
    command = [_bwrap(), *view_of(here, here, (), (), writing=False), *HOLDING, "--", "/bin/bash", "-c", "true"]
    try:
        tried = subprocess.run(command, capture_output=True, timeout=TRY_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap could not be tried ({type(error).__name__})"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap does not work here: {said[0][:200] if said else f'it ended with {tried.returncode}'}"


@functools.cache
def _found_bwrap(path: str) -> str:
    return shutil.which("bwrap", path=path) or "bwrap"


def _bwrap() -> str:
    return _found_bwrap(os.environ.get("PATH", os.defpath))


def _empty_folders(sandbox: SandboxPolicy) -> Iterator[Path]:
    """Real folders, the outer ones first: a mount inside of another one has to come after it."""
    named = [*(Path(place) for place in _EMPTY), Path.home(), *(path for path in sandbox.hidden if path.is_dir())]
    real = {path.resolve() for path in named if path.is_dir()}
    yield from sorted(path for path in real if path != Path("/"))


def _system(sandbox: SandboxPolicy, empty: Sequence[Path]) -> Iterator[str]:
    yield from _SYSTEM
    for folder in empty:
        yield from ("--size", TMP_BYTES, "--tmpfs", str(folder))
    if sandbox.network and _RESOLVER.exists():
        # Often a link into /run.
        yield from ("--ro-bind", str(_RESOLVER.resolve()), str(_RESOLVER.resolve()))
    for name in (*_SECRET_FILES, *(str(path) for path in sandbox.hidden if path.is_file())):
        if os.path.isfile(name) and not any(Path(name).resolve().is_relative_to(folder) for folder in empty):  # noqa: PTH113  a name
            yield from ("--ro-bind", "/dev/null", str(Path(name).resolve()))


def _secrets(sandbox: SandboxPolicy, root: Path) -> Iterator[str]:
    """What the workspace brings into view again when it holds the home folder or the worker's own data."""
    for path in sandbox.hidden:
        if path.exists() and path.resolve().is_relative_to(root) and path.resolve() != root:
            real = str(path.resolve())
            yield from ("--tmpfs", real) if path.is_dir() else ("--ro-bind", "/dev/null", real)
    for name in (".ssh", ".aws", ".gnupg", ".config/gcloud", ".kube", ".docker"):
        folder = Path.home() / name
        if folder.is_dir() and folder.resolve().is_relative_to(root):
            yield from ("--tmpfs", str(folder.resolve()))
