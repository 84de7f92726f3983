"""The box around a command: bubblewrap where it is wanted and works, the kernel's limits with it or in its place."""

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

Sandbox = Literal["off", "auto", "bwrap"]
STRICTNESS: tuple[Sandbox, ...] = ("off", "auto", "bwrap")

TRY_SECONDS = 10.0
_ISOLATED = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_EMPTY = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media")  # noqa: S108  emptied, not used
"""Folders of people, of other programs' sockets, and of mounted disks."""
_SECRET_FILES = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers")
_RESOLVER = Path("/etc/resolv.conf")

_UNDER_LIMITS = 'for limit in $1; do ulimit ${limit/=/ } 2>/dev/null; done; shift; exec "$@"'
"""A limit that the machine sets lower already stays as it is."""


class CantConfine(Exception):
    """A box is demanded, and there can be none; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of each process of a call, but for `processes`: of all that belong to the worker's user."""

    cpu_seconds: int = 3_600
    file_mb: int = 4_096
    processes: int = 4_096
    memory_mb: int = 8_192
    """Of its data; address space that is only reserved does not count."""

    def words(self) -> str:
        """As `ulimit` takes them."""
        return f"-t={self.cpu_seconds} -f={self.file_mb * 1024} -u={self.processes} -d={self.memory_mb * 1024}"


@dataclass(frozen=True, slots=True)
class Box:
    """What a worker, and then an agent, wants around each command."""

    sandbox: Sandbox = "off"
    network: bool = False
    limits: Limits = field(default_factory=Limits)
    hidden: tuple[Path, ...] = ()
    """Folders and files of the worker beside those that are always hidden."""

    def narrowed(self, sandbox: Sandbox, network: bool | None) -> "Box":  # noqa: FBT001  None: the agent says nothing
        """With what an agent says of it: the stricter of both holds."""
        strictest = max(self.sandbox, sandbox, key=STRICTNESS.index)
        wanted = self.network if network is None else network
        allowed = wanted and (self.sandbox == "off" or self.network)
        return replace(self, sandbox=strictest, network=allowed)

    def note(self) -> str:
        """For the model, as a line of the tool's description; empty where nothing is confined."""
        if self.sandbox == "off":
            return ""
        if self.sandbox == "auto" and bwrap_problem():
            return "\n- There is no sandbox here; CPU time, file size, processes and memory of a command are limited."
        network = "The network can be reached." if self.network else "There is no network."
        return (
            "\n- Commands run in a sandbox: the workspace can be written, the rest of the system only read. The home "
            f"folder is empty, and /tmp is new for each call. {network}"
        )


@dataclass(frozen=True, slots=True)
class Boxed:
    """A command as it is to be started."""

    command: tuple[str, ...]
    root: Path | None = None
    """The one place that can be written, in a sandbox; None = there is none."""
    empty: tuple[Path, ...] = ()

    def hides(self, folder: Path) -> bool:
        """Whether the command can't see this folder of the machine."""
        if self.root is None or folder.is_relative_to(self.root):
            return False
        return any(folder.is_relative_to(place) for place in self.empty)


def boxed(box: Box, command: Sequence[str], root: Path, cwd: Path) -> Boxed:
    """Put the box around a command. Raises CantConfine where `bwrap` is demanded and can't be had."""
    if box.sandbox == "off":
        return Boxed(tuple(command))
    limited = ("/bin/bash", "--noprofile", "--norc", "-p", "-c", _UNDER_LIMITS, "limits", box.limits.words())
    if problem := bwrap_problem():
        if box.sandbox == "bwrap":
            raise CantConfine(f"commands run in a sandbox alone here, and there is none: {problem}")
        return Boxed((*limited, *command))
    empty = tuple(_empty_folders(box))
    covered = [*_system(box, empty), "--bind", str(root), str(root), *_secrets(box, root)]
    where = root if Boxed((), root, empty).hides(cwd) else cwd
    return Boxed((*limited, _bwrap(), *covered, *_isolated(box), "--chdir", str(where), "--", *command), root, empty)


@functools.cache
def bwrap_problem() -> str:
    """Why no sandbox can be made on this machine; empty when one can. Tried once."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    command = [_bwrap(), *_SYSTEM, "--tmpfs", "/tmp", *_ISOLATED, "--", "/bin/true"]  # noqa: S108  the box's own
    try:
        tried = subprocess.run(command, capture_output=True, timeout=TRY_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap could not be tried ({type(error).__name__})"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
    return f"bubblewrap does not work here: {said[0][:200] if said else f'it ended with {tried.returncode}'}"


def _bwrap() -> str:
    return shutil.which("bwrap") or "bwrap"


def _isolated(box: Box) -> tuple[str, ...]:
    return (*_ISOLATED, "--share-net") if box.network else _ISOLATED


def _empty_folders(box: Box) -> Iterator[Path]:
    """Real folders, the outer ones first: a mount inside of another one has to come after it."""
    named = [*(Path(place) for place in _EMPTY), Path.home(), *(path for path in box.hidden if path.is_dir())]
    real = {path.resolve() for path in named if path.is_dir()}
    yield from sorted(path for path in real if path != Path("/"))


def _system(box: Box, empty: Sequence[Path]) -> Iterator[str]:
    yield from _SYSTEM
    for folder in empty:
        yield from ("--tmpfs", str(folder))
    if box.network and _RESOLVER.exists():
        # Often a link into /run.
        yield from ("--ro-bind", str(_RESOLVER.resolve()), str(_RESOLVER.resolve()))
    for name in (*_SECRET_FILES, *(str(path) for path in box.hidden if path.is_file())):
        if os.path.isfile(name) and not any(Path(name).resolve().is_relative_to(folder) for folder in empty):  # noqa: PTH113  a name
            yield from ("--ro-bind", "/dev/null", str(Path(name).resolve()))


def _secrets(box: Box, root: Path) -> Iterator[str]:
    """What the workspace brings into view again when it holds the home folder or the worker's own data."""
    for path in box.hidden:
        if path.exists() and path.resolve().is_relative_to(root) and path.resolve() != root:
            real = str(path.resolve())
            yield from ("--tmpfs", real) if path.is_dir() else ("--ro-bind", "/dev/null", real)
    for name in (".ssh", ".aws", ".gnupg", ".config/gcloud", ".kube", ".docker"):
        folder = Path.home() / name
        if folder.is_dir() and folder.resolve().is_relative_to(root):
            yield from ("--tmpfs", str(folder.resolve()))
