"""The program that reads compose files as `docker compose` does: its own loader, built with Go and kept."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from longhaul.starter.provision.processes import run_within
from longhaul.starter.provision.temporal_cli import Say, cache_directory
from tests.servers.local import ServerUnavailable

GO_MODULE = "github.com/compose-spec/compose-go/v2/cmd@v2.16.2"
BUILD_SECONDS = 300.0


def find_compose_loader(say: Say) -> Path:
    """Return the loader's program. Raises ServerUnavailable."""
    kept = cache_directory() / f"compose-loader-{GO_MODULE.partition('@')[2]}"
    if kept.exists():
        return kept
    if shutil.which("go") is None:
        raise ServerUnavailable("no go on PATH; install Go 1.25 or newer to build what reads compose files")
    say("building the reader of compose files with Go")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as room:
        # A user's GOFLAGS=-mod=vendor would make Go look for the sources in this checkout.
        settings = {"GOBIN": room, "GOFLAGS": "-mod=mod"}
        complaint = run_within(BUILD_SECONDS, ["go", "install", "-ldflags=-s -w", GO_MODULE], settings)
        built = Path(room) / "cmd"
        if not built.exists():
            raise ServerUnavailable(f"the reader of compose files could not be built: {complaint}")
        built.replace(kept)
    return kept


def read_by(loader: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """What the loader says of a compose file: all of it as JSON, or, with a status other than 0, what is wrong."""
    command = [str(loader), "-format", "json", str(file)]
    return subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
