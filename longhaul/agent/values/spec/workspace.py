"""The workspace of an agent: which folder its tools work in, and which workers see it.

Liveness says how soon the death of a worker is noticed, in seconds, and with it what running calls cost.

Each call sends heartbeats, which are written down and billed. The number is the workers': it comes into a session with
what is prepared for each reply, for the session schedules the calls.
"""

import hashlib
import re
from typing import Literal, assert_never

from pydantic import model_validator

from longhaul.agent.plain.values import Value, sparse
from longhaul.agent.values.conversation.tools import Effect

HOST = r"[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_HOST = 100
Sandbox = Literal["off", "proven", "all"]
"""Around which commands there is a box: none, those that run because of what is proven of them, all."""
SANDBOXES: tuple[Sandbox, ...] = ("off", "proven", "all")
"""From the least strict one up."""
IMAGE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


class Seal(Value):
    """The sandbox that all tools of a workspace work in. Of limits the lower one holds, the worker's or its own."""

    network: bool = sparse(False)
    """Whether they reach it, where the worker allows that too."""
    memory_mb: int | None = sparse(None, ge=64, le=10**12)
    """Of each process."""
    processes: int | None = sparse(None, ge=1, le=10**12)
    """Of the worker's user; it binds no worker that runs as root."""
    file_mb: int | None = sparse(None, ge=1, le=10**12)
    """Of each file that is written. What is not in the workspace lies in memory, 256 MB of it."""
    workspace_mb: int | None = sparse(None, ge=1, le=10**12)
    """Of all files in it together: above, calls that may write are refused."""
    image: str = sparse("", pattern=rf"^({IMAGE_NAME})?$")
    """Name of one that the workers' operator lists: each call has a container of it. Empty: bubblewrap, and the
    programs of the worker's machine."""


class Workspace(Value):
    """Where the tools work. Each worker that touches it proves by a marker file that it sees the same files."""

    root: str
    """Absolute path on the worker's machines."""
    place: Literal["shared", "local", "worktree", "sandbox"] = sparse("shared")
    """`shared`: all workers of the queue see it. `local`: only those of one host, for which it waits. `worktree`: the
    session works in a git working tree of its own, on a branch of its own, of the repository at `root`; a sub-agent
    may leave the root out, and means that of the session that starts it. `sandbox`: all tools work in a sandbox in
    which nothing but the root is there."""
    seal: Seal = sparse(Seal())
    """Of a sandbox."""
    host: str = sparse("", max_length=LONGEST_HOST)
    """Of a local one: the name under which its workers run (`LONGHAUL_HOST`). A working tree may lie on one too."""
    at: str = sparse("", pattern=r"^([0-9a-f]{40}|files)?$")
    """Of a working tree: the commit whose files it begins with, or the clone of a folder that is no repository; `files`
    = as they are at `root` when it is made, also what is not committed; empty = what is checked out there."""
    snapshots: bool = sparse(False)
    """Where the root is a git repository, or on a file system with reflinks: its files are kept before each call that
    may change any, for copies of the session that go back to a step."""

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


FAST_SECONDS = 2.0
CHEAP_SECONDS = 30.0
SHORTEST_SECONDS, LONGEST_SECONDS = 1.0, 600.0

_IDEMPOTENT_SECONDS = 5.0
"""At least: it is done once more."""
_ONCE_SECONDS = 30.0
"""At least, and twice what holds for others: a worker that only stalls must not turn a call that ran into an unknown
outcome."""


def heartbeat_seconds(liveness: float, effect: Effect = Effect.READ) -> float:
    """Until the worker of a running call counts as dead that was not heard of. A model call is as one that reads."""
    match effect:
        case Effect.READ:
            return liveness
        case Effect.IDEMPOTENT:
            return max(liveness, _IDEMPOTENT_SECONDS)
        case Effect.ONCE:
            return max(2 * liveness, _ONCE_SECONDS)
        case _ as never:
            assert_never(never)
