"""The program that reads compose files as `docker compose` does: around its own loader, built with Go and kept."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.progress import LinesCounted
from longhaul.starter.dev_server.temporal_cli import Say, cache_directory
from tests.servers.local import ServerUnavailable

SOURCES = Path(__file__).with_name("compose_loader")
BUILD_SECONDS = 300.0
BUILT_PACKAGES = 166
"""With Go's own; those that Go has compiled before are not compiled again."""


class UnreadableCompose(Exception):
    """What the loader says is wrong with a file."""


def find_compose_loader(say: Say) -> Path:
    """Return the loader's program. Raises ServerUnavailable."""
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(SOURCES.iterdir()))).hexdigest()
    kept = cache_directory() / f"compose-loader-{digest[:16]}"
    if kept.exists():
        return kept
    if shutil.which("go") is None:
        raise ServerUnavailable("no go on PATH; install Go 1.25 or newer to build what reads compose files")
    say("building the reader of compose files with Go")
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=".building-") as room:
        built = Path(room) / "loader"
        # A user's GOFLAGS=-mod=vendor would make Go look for the sources in this checkout.
        command = ["go", "build", "-C", str(SOURCES), "-v", "-ldflags=-s -w", "-o", str(built), "."]
        compiled = LinesCounted(say, "packages compiled", total=BUILT_PACKAGES)
        complaint = run_within(BUILD_SECONDS, command, {"GOFLAGS": "-mod=readonly"}, compiled)
        if not built.exists():
            raise ServerUnavailable(f"the reader of compose files could not be built: {complaint}")
        built.replace(kept)
    return kept


def read_by(loader: Path, *files: Path, shell: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A compose file, and those that override it, as compose takes them where the shell has these variables. Raises
    UnreadableCompose."""
    known = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        [str(loader), *map(str, files)],
        cwd=files[0].parent,
        env=known | dict(shell or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UnreadableCompose(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document
