"""What tests run that comes from npm, pinned with its digests by the committed lock file."""

import shutil
from pathlib import Path

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.progress import Progress
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.local import ServerUnavailable

PACKAGE = Path(__file__).parents[1] / "mockserver"
NPM_SECONDS = 180.0


def installed(say: Say) -> Path:
    """The folder of the installed packages. Raises ServerUnavailable."""
    modules = PACKAGE / "node_modules"
    there, wanted = modules / ".package-lock.json", PACKAGE / "package-lock.json"
    if there.exists() and there.stat().st_mtime >= wanted.stat().st_mtime:
        return modules
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise ServerUnavailable("no node and npm on PATH; install Node.js 20 or newer")
    say("installing the provider mock, axe-core, vocabularies and MCP servers with npm")
    install = ["npm", "ci", "--prefix", str(PACKAGE), "--ignore-scripts", "--no-audit", "--no-fund"]
    if complaint := run_within(NPM_SECONDS, install, {}, Progress(say, "installing them")):
        raise ServerUnavailable(f"npm could not install {PACKAGE}: {complaint}")
    return modules
