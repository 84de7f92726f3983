"""The workspace of an agent: which folder its tools work in, and which workers see it."""

import re
from typing import Literal

from pydantic import model_validator

from longhaul.agent.plain.values import Value, sparse

HOST = r"[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_HOST = 100


class Workspace(Value):
    """Where the tools work. Each worker that touches it proves by a marker file that it sees the same files."""

    root: str
    """Absolute path on the worker's machines."""
    place: Literal["shared", "local"] = sparse("shared")
    """`shared`: all workers of the queue see it. `local`: only those of one host, for which it waits."""
    host: str = sparse("", max_length=LONGEST_HOST)
    """Of a local one: the name under which its workers run (`LONGHAUL_HOST`)."""

    @model_validator(mode="after")
    def _the_same_for_every_worker(self) -> "Workspace":
        if not self.root.startswith("/") or "\0" in self.root:
            raise ValueError("root: it has to be an absolute path: workers run in folders of their own")
        if self.place == "local" and not re.fullmatch(HOST, self.host):
            raise ValueError(
                f"host: {self.host!r} is no name of a host; give the one that its workers have as LONGHAUL_HOST"
            )
        if self.place != "local" and self.host:
            raise ValueError(f"host: {self.host!r} is for place = 'local'; leave it out, or set the place")
        return self


def host_queue(task_queue: str, host: str) -> str:
    """Name of the task queue of one host's workers."""
    return f"{task_queue}@{host}"
