"""An environment for each peer and for the plot, made from its lock file, apart from ours and from each other's."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from longhaul.starter.dev_server.temporal_cli import cache_directory

LOCKS = Path(__file__).parent
PACKAGES = {
    "pydantic_ai": ("pydantic-ai-slim", "temporalio"),
    "openai_agents": ("temporalio-openai-agents", "openai-agents", "temporalio"),
    "plot": ("matplotlib",),
}
"""Environment to what it is about, for the page to name with its version."""

INSTALL = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r")


def python_of(name: str, say: Callable[[str], None]) -> Path:
    """The Python of that environment; built again when its lock file has changed.

    Raises subprocess.CalledProcessError when pip cannot install, after pip has said why.
    """
    lock = LOCKS / f"{name}.lock"
    home = cache_directory().parent / "peers" / name
    python, stamp = home / "bin" / "python", home / "installed"
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        say(f"installing {lock.name} into {str(home)!r}")
        shutil.rmtree(home, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, *INSTALL, lock], check=True)
        stamp.write_text(digest)  # Last, so that half an environment is never taken for a whole one.
    return python


def versions(name: str) -> dict[str, str]:
    """Package to version, as that environment's lock file pins them."""
    pins = dict(line.split(";")[0].strip(" \\").split("==") for line in _pinned(LOCKS / f"{name}.lock"))
    return {package: pins[package] for package in PACKAGES[name]}


def _pinned(lock: Path) -> list[str]:
    return [line for line in lock.read_text().splitlines() if "==" in line and not line.startswith(" ")]
