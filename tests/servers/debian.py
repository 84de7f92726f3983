"""Programs of the distribution: found, or installed where that is ours to do."""

import glob
import os
import shutil
from collections.abc import Sequence

from longhaul.starter.dev_server.processes import run_within
from longhaul.starter.dev_server.progress import Progress
from longhaul.starter.dev_server.temporal_cli import Say
from tests.servers.local import ServerUnavailable

APT_SECONDS = 300.0


def find_program(places: Sequence[str], package: str, say: Say) -> str:
    """Return the first program of `places` (names on PATH, or patterns of absolute paths) that is there.

    Installs `package` with apt-get when we are root and none is. Raises ServerUnavailable.
    """
    if found := _first(places):
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise ServerUnavailable(f"no {places[0]} here; install it (Debian: apt-get install {package})")
    say(f"installing {package} with apt-get")
    quietly = {"DEBIAN_FRONTEND": "noninteractive"}
    run_within(APT_SECONDS, ["apt-get", "update"], quietly, Progress(say, "reading the list of packages"))
    install = ["apt-get", "install", "-y", "--no-install-recommends", package]
    complaint = run_within(APT_SECONDS, install, quietly, Progress(say, "installing it"))
    if found := _first(places):
        return found
    raise ServerUnavailable(f"apt-get could not install {package}: {complaint}")


def _first(places: Sequence[str]) -> str | None:
    for place in places:
        # The newest of several versions: PostgreSQL's lie in folders of their own, off PATH.
        found = max(glob.glob(place), default=None) if place.startswith("/") else shutil.which(place)  # noqa: PTH207
        if found:
            return found
    return None
