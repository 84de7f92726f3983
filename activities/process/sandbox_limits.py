"""The share of the machine that a command in a sandbox may take, as supervisors and engines are told."""

import resource
from collections.abc import Iterator
from dataclasses import dataclass, replace

from longhaul.agent.values.spec.workspace import Seal


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
