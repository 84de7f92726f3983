"""The workspace of an agent: which folder its tools work in, and which workers see it.

Liveness says how soon the death of a worker is noticed, in seconds, and with it what running calls cost.

Each call sends heartbeats, which are written down and billed. The number is the workers': it comes into a session with
what is prepared for each reply, for the session schedules the calls.
"""

import hashlib
import re
from typing import Literal

from pydantic import model_validator

from longhaul.agent.plain.values import Value, sparse

HOST = r"[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_HOST = 100
Sandbox = Literal["off", "proven", "all"]
"""Around which commands there is a box: none, those that run because of what is proven of them, all."""
SANDBOXES: tuple[Sandbox, ...] = ("off", "proven", "all")
"""From the least strict one up."""
IMAGE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


class Seal(Value):
    """Limits of the sandbox in which all tools of a workspace work. The lower of the worker's limit and this one
    counts."""

    network: bool = sparse(False)
    """Tools may reach the network, if the worker allows that too."""
    memory_mb: int | None = sparse(None, ge=64, le=10**12)
    """Memory of each process."""
    processes: int | None = sparse(None, ge=1, le=10**12)
    """Processes of the worker's user. The limit does not bind a worker that runs as root."""
    file_mb: int | None = sparse(None, ge=1, le=10**12)
    """Size of each file that is written. Files outside the workspace are in memory, 256 MB in all."""
    workspace_mb: int | None = sparse(None, ge=1, le=10**12)
    """Size of all files in the workspace together. Above it, calls that may write are refused."""
    image: str = sparse("", pattern=rf"^({IMAGE_NAME})?$")
    """Name of a container image that the workers' operator lists; each call gets a container of it. Empty: bubblewrap,
    with the programs of the worker's machine."""


class Workspace(Value):
    """Folder in which the tools work. A marker file proves that each worker sees the same files."""

    root: str
    """Absolute path on the workers' machines."""
    place: Literal["shared", "local", "worktree", "sandbox"] = sparse("shared")
    """`shared`: all workers of the queue see the folder. `local`: only workers of one host see it, and the session
    waits for them. `worktree`: the session works in its own git working tree, on its own branch, of the repository at
    `root`. A sub-agent may leave out `root`; it then means its lead's. `sandbox`: all tools work in a sandbox that
    contains nothing but `root`."""
    seal: Seal = sparse(Seal())
    """Limits of the sandbox, for `sandbox`."""
    host: str = sparse("", max_length=LONGEST_HOST)
    """Name of the host, for `local`: its workers run with this `LONGHAUL_HOST`. A working tree may be on one host
    too."""
    at: str = sparse("", pattern=r"^([0-9a-f]{40}|files)?$")
    """Where a working tree starts: a commit, or the clone of a folder that is no repository. `files` = the files at
    `root` when the tree is created, uncommitted ones included. Empty = what is checked out there."""
    snapshots: bool = sparse(False)
    """Longhaul saves the files before each call that may change any, so that a copy of the session can go back to a
    step. `root` must be a git repository, or on a file system with reflinks."""

    @model_validator(mode="after")
    def _the_same_for_every_worker(self) -> "Workspace":
        if self.place == "worktree" and not self.root:
            return self
        if not self.root.startswith("/") or "\0" in self.root:
            raise ValueError("root: it has to be an absolute path: workers run in folders of their own")
        if self.place == "local" and not re.fullmatch(HOST, self.host):
            raise ValueError(
                f"host: {self.host!r} is no name of a host; give the one that its workers have as LONGHAUL_HOST"
            )
        if self.host and (self.place == "shared" or not re.fullmatch(HOST, self.host)):
            raise ValueError(f"host: {self.host!r} is for place = 'local'; leave it out, or set the place")
        if self.seal != Seal() and self.place != "sandbox":
            raise ValueError("seal: it is for place = 'sandbox'; leave it out, or set the place")
        if self.snapshots and self.place == "sandbox":
            raise ValueError(
                "snapshots: there are none of a sandbox, for a copy with files of its own would be outside of it; "
                "leave them out, or set another place"
            )
        if self.at and self.place != "worktree":
            raise ValueError("at: it is for place = 'worktree'; leave it out, or set the place")
        return self


BRANCHES = "longhaul/"
"""What branches of working trees of sessions begin with."""
FILES_NOW = "files"


def branch_of(session_key: str) -> str:
    """The branch of a session's own working tree. `session_key`: the id of its workflow."""
    return BRANCHES + hashlib.sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def host_queue(task_queue: str, host: str) -> str:
    """Name of the task queue of one host's workers."""
    return f"{task_queue}@{host}"


def host_of(task_queue: str) -> str:
    """Of `host_queue`; empty for a queue that is no host's."""
    return task_queue.rpartition("@")[2] if "@" in task_queue else ""
