"""What makes a Python client of an OpenAPI document, in an environment of its own: it wants an older typer."""

import hashlib
import shutil
import sys
from pathlib import Path

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.progress import Progress
from longhaul.starter.dev_server.temporal_cli import Say, cache_directory
from tests.servers.local import ServerUnavailable

LOCK = Path(__file__).with_suffix(".lock")
"""With the digests of all that is installed."""
INSTALL_SECONDS = 180.0
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r")


def find_openapi_generator(say: Say) -> Path:
    """The generator's program; installed again when its lock file has changed. Raises ServerUnavailable."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    home = cache_directory() / f"openapi-generator-{digest[:16]}"
    program, whole = home / "bin" / "openapi-python-client", home / "installed"
    if whole.exists():
        return program
    say("installing the generator of clients with pip")
    shutil.rmtree(home, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", str(home)], [str(home / "bin" / "python"), *PIP, str(LOCK)]):
        if complaint := run_within(INSTALL_SECONDS, command, {}, Progress(say, "installing it")):
            raise ServerUnavailable(f"{LOCK.name} could not be installed: {complaint}")
    whole.touch()  # Last, so that half an environment is never taken for a whole one.
    return program
