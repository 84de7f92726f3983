"""Finds, downloads or builds the `temporal` command on a machine that may not have it."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from longhaul.agent.plain.errors import Unavailable
from longhaul.starter.dev_server.processes import TICK_SECONDS, run_within
from longhaul.starter.dev_server.progress import LinesCounted, Progress

GO_MODULE = "github.com/temporalio/cli/cmd/temporal@v1.5.1"
"""Newer modules of the CLI carry `replace` lines, which `go install` refuses."""

DOWNLOAD_SECONDS = 20.0
"""Where the download host cannot be reached, this is all that a first start loses by asking."""

BUILD_SECONDS = 2400.0
"""Two busy cores have taken 19 minutes."""
BUILT_PACKAGES = 1300
"""What the module needs with Go's own packages; those that Go has compiled before are not compiled again."""

Say = Callable[[str], None]

# The SDK can fetch the CLI only by starting it, so a server is started and stopped in a process of its own:
# a download that hangs can then be killed, and nothing of it is left in ours.
_SDK_DOWNLOAD = """
import asyncio, sys
from temporalio.testing import WorkflowEnvironment

async def main():
    environment = await WorkflowEnvironment.start_local(download_dest_dir=sys.argv[1], dev_server_log_level="never")
    await environment.shutdown()

asyncio.run(main())
"""


class TemporalCliMissing(Unavailable, RuntimeError):
    """No `temporal` command was found and none could be had; the message says what to install."""


def find_temporal(say: Say) -> Path:
    """Return a `temporal` that starts: named by LONGHAUL_TEMPORAL_CLI, on PATH, cached, downloaded or built.

    The last two put it into the cache, so they happen once. `say` hears about what takes time or went wrong.
    Raises TemporalCliMissing.
    """
    if named := os.environ.get("LONGHAUL_TEMPORAL_CLI"):
        if starts(Path(named)):
            return Path(named)
        raise TemporalCliMissing(
            f"LONGHAUL_TEMPORAL_CLI={named!r} is not a temporal command that starts; fix or unset it"
        )
    for candidate in _already_here():
        if starts(candidate):
            return candidate
        say(f"{str(candidate)!r} does not start, looking further")
    cached = cache_directory() / "temporal"
    with _one_at_a_time(cached, say):
        if starts(cached) or _download(cached, say) or _build(cached, say):
            return cached
    raise TemporalCliMissing(
        "no temporal command: it is not on PATH, its download did not answer and it could not be built; "
        "install Temporal's CLI (https://docs.temporal.io/cli), or Go 1.25 or newer so that it can be built"
    )


def cache_directory() -> Path:
    """Where a fetched or built CLI is kept for every checkout of this user."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "longhaul" / "bin"


def starts(temporal: Path) -> bool:
    """Whether `temporal --version` answers as Temporal's CLI does."""
    try:
        answer = subprocess.run([temporal, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.startswith("temporal version")


def _already_here() -> Iterator[Path]:
    if on_path := shutil.which("temporal"):
        yield Path(on_path)
    cached = cache_directory() / "temporal"
    if cached.exists():
        yield cached


@contextmanager
def _one_at_a_time(cached: Path, say: Say) -> Iterator[None]:
    """Two builds at once take more than twice as long. The lock ends with its process, whatever ends that."""
    cached.parent.mkdir(parents=True, exist_ok=True)
    with (cached.parent / "fetching.lock").open("w") as lock:
        if not _is_ours(lock):
            say("another process fetches Temporal's command line; waiting for it")
            waiting = Progress(say, "waiting")
            while not _is_ours(lock):
                waiting.tick()
                time.sleep(TICK_SECONDS)
            waiting.end()
        yield


def _is_ours(lock: IO[str]) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _download(cached: Path, say: Say) -> bool:
    say(f"fetching Temporal's command line (at most {DOWNLOAD_SECONDS:.0f} seconds)")
    with _room_beside(cached) as room:
        waiting = Progress(say, "fetching it", most_seconds=DOWNLOAD_SECONDS)
        run_within(DOWNLOAD_SECONDS, [sys.executable, "-c", _SDK_DOWNLOAD, room], {}, waiting)
        return _keep(next(Path(room).glob("temporal*"), None), cached)


def _build(cached: Path, say: Say) -> bool:
    if shutil.which("go") is None:
        return False
    say("no download; building Temporal's command line with Go (two to twenty minutes, once)")
    with _room_beside(cached) as room:
        # A user's GOFLAGS=-mod=vendor would make Go look for Temporal's sources in this checkout.
        settings = {"GOBIN": room, "GOFLAGS": "-mod=mod"}
        compiled = LinesCounted(say, "packages compiled", total=BUILT_PACKAGES)
        command = ["go", "install", "-v", "-ldflags=-s -w", GO_MODULE]
        complaint = run_within(BUILD_SECONDS, command, settings, compiled)
        if _keep(Path(room) / "temporal", cached):
            return True
    say(f"the build failed: {complaint}")
    return False


def _room_beside(cached: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=cached.parent, prefix=".fetching-")


def _keep(fetched: Path | None, cached: Path) -> bool:
    """Move what was fetched into the cache; only a whole file that starts ever gets the cache's name."""
    if fetched is None or not starts(fetched):
        return False
    fetched.replace(cached)
    return True
