"""Engines of containers for the tests, and an image for them: of this machine's own programs, for none is fetched."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pydantic_core

from longhaul.activities.process.container import Image
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.debian import find_program
from tests.servers.local import ServerUnavailable

REFERENCE = "localhost/longhaul-tests:1"
NO_ENGINE = "no engine of containers works here"
PROGRAMS = ("bash", "sh", "cat", "ls", "id", "sleep", "kill", "touch", "stat", "head", "wc", "true", "setsid", "chmod")


def make_image(engine: str, folder: Path, say: Say) -> Image:
    """One with few programs and no Python, known to the engine. Raises ServerUnavailable."""
    if engine == "podman":
        find_program(["podman"], "podman", say)
    if shutil.which(engine) is None or _run(engine, "info").returncode:
        raise ServerUnavailable(f"{engine}: {NO_ENGINE}")
    whole = folder / "root.tar"
    with tarfile.open(whole, "w") as tar:
        of_programs = {found for program in PROGRAMS for found in _with_libraries(shutil.which(program) or "")}
        for name in sorted(of_programs | set(_of_python())):
            tar.add(os.path.realpath(name), name)
    made = _run(engine, "import", str(whole), REFERENCE)
    tried = _run(engine, "run", "--rm", "--network", "none", *_bounds(), REFERENCE, "/bin/bash", "-c", "true")
    if made.returncode or tried.returncode:
        raise ServerUnavailable(f"{engine}: {made.stderr[-300:]}{tried.stderr[-300:]}: {NO_ENGINE}")
    return Image("tools", engine, REFERENCE)


def _bounds() -> Iterator[str]:
    """Podman asks for more open files than a machine may grant it."""
    yield from ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


def _with_libraries(program: str) -> Iterator[str]:
    yield f"/bin/{Path(program).name}"
    yield from _libraries(program)


def _libraries(file: str) -> list[str]:
    return re.findall(r"(/\S+) \(0x", _run("ldd", file).stdout)


def _of_python() -> Iterator[str]:
    """What the worker's own needs of a system, which is mounted; all of it where it is the system's own."""
    own = Path(sys.base_prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}")
    if sys.base_prefix in ("/usr", "/usr/local"):
        yield from (os.path.realpath(sys.executable), str(own))
    wanted = [*own.glob("lib-dynload/*.so"), *Path(str(pydantic_core.__file__)).parent.glob("*.so")]
    for file in (os.path.realpath(sys.executable), *map(str, wanted)):
        yield from (name for name in _libraries(file) if not name.startswith(sys.base_prefix + "/lib/lib"))


def _run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, capture_output=True, text=True, check=False)
