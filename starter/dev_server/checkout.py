"""`python3 -m longhaul.starter.dev_server.checkout FOLDER LOCK`: the environment of a checkout, as `make` calls it.

It runs before anything is installed, so it needs Python and its standard library alone. A lock file names each package
with its hashes. `uv` installs them where it is on PATH, otherwise pip does; what they print is shown only if they fail.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from longhaul.starter.dev_server.processes import run_watched
from longhaul.starter.dev_server.progress import Progress

INSTALL_SECONDS = 3600.0
SHOWN_LINES = 40
"""Of what a failed installer said."""

UV_NAMES: Mapping[str, str] = {
    "PIP_NO_INDEX": "UV_NO_INDEX",
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
}
"""pip's settings of where packages lie, under the names by which uv knows them."""


class NotInstalled(Exception):
    """What the last installer said."""


class Packages(Progress):
    """Counts what pip fetches, then what it or uv has installed."""

    def __init__(self, say: Callable[[str], None], lock: Path, environment: Path) -> None:
        super().__init__(say, "packages fetched", total=len(list(pins(lock))))
        self._folders = list(environment.glob("lib/python*/site-packages"))
        self._before = self._installed()

    def heard(self, line: str) -> None:
        """A line of pip; uv prints none that tells about one package."""
        match line.split(maxsplit=1):
            case ["Ignoring", _]:  # it is for another system
                self.total -= 1
            case ["Requirement", rest] if "(from -r " in rest:  # an earlier installation has brought it
                self.total -= 1
            case ["Collecting", _]:
                self.done += 1
            case _:
                pass
        if installed := self._installed() - self._before:
            self.work, self.done = "packages installed", installed

    def _installed(self) -> int:
        return sum(1 for folder in self._folders for _ in folder.glob("*.dist-info"))


def pins(lock: Path) -> Iterator[str]:
    """The packages that a lock file names, as `name==version`."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if "==" in line and line[:1].isalnum():
            yield line.split()[0].rstrip(";")


def make(environment: Path, lock: Path, say: Callable[[str], None]) -> None:
    """The environment with the lock's packages and an editable installation of the checkout that we stand in. Raises
    NotInstalled."""
    python = environment / "bin" / "python"
    if not python.exists():
        say(f"making {environment} with Python {sys.version.split()[0]}")
        _run([sys.executable, "-m", "venv", str(environment)], {}, Progress(say, "making it"))
    for at, (name, install) in enumerate(installers := list(_installers(python))):
        start = time.monotonic()
        packages = Packages(say, lock, environment)
        say(f"installing the {packages.total} packages of {lock.name} with {name}")
        settings = uv_settings(os.environ) if name == "uv" else {}
        try:
            # The lock names all of them. pip would look for the newest of one that another needs without the extras of
            # its pin, and refuse it for having no hash.
            _run([*install, "--no-deps", "--require-hashes", "-r", str(lock)], settings, packages)
            itself = ["--no-build-isolation", "--no-deps", "-e", "."]
            _run([*install, *itself], settings, Progress(say, "installing longhaul itself"))
        except NotInstalled as error:
            if at + 1 == len(installers):
                raise
            say(f"{name} could not: {str(error).splitlines()[-1]}")
            continue
        say(f"installed in {time.monotonic() - start:.0f} s")
        return


def uv_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Of pip's settings those that uv does not read under pip's names, unless uv's own are set."""
    settings = dict[str, str]()
    for of_pip, of_uv in UV_NAMES.items():
        if (value := environment.get(of_pip, "").strip()) and of_uv not in environment:
            settings[of_uv] = value
    if "UV_FIND_LINKS" in settings:
        # pip parts them by blanks, and passes over folders that are not there; uv wants commas, and gives up.
        places = settings.pop("UV_FIND_LINKS").split()
        if there := [place for place in places if "://" in place or Path(place).exists()]:
            settings["UV_FIND_LINKS"] = ",".join(there)
    return settings


def _installers(python: Path) -> Iterator[tuple[str, Sequence[str]]]:
    """Each by its name and the head of its command, the fastest first. Both compile what they install: a shell that
    forbids Python to keep bytecode would else compile everything at each start."""
    if uv := shutil.which("uv"):
        yield "uv", [uv, "pip", "install", "--compile-bytecode", "--python", str(python)]
    yield "pip", [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar", "off"]


def _run(command: Sequence[str], settings: Mapping[str, str], progress: Progress) -> None:
    status, said = run_watched(INSTALL_SECONDS, command, settings, progress, whole=True)
    if status != 0:
        ending = f"no end after {INSTALL_SECONDS:.0f} s" if status is None else f"exit status {status}"
        raise NotInstalled("\n".join([*said[-SHOWN_LINES:], f"{' '.join(command[:4])} …: {ending}"]))


def main() -> int:
    environment, lock = map(Path, sys.argv[1:3])
    try:
        make(environment, lock, lambda sentence: print(sentence, flush=True))
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
