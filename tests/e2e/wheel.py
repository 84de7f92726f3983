"""The wheel as a stranger has it: built from a copy of the sources, installed beside what it asks for alone."""

import importlib.metadata
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
SOURCES = ("longhaul", "activities", "starter", "workflows", "worker.py", "pyproject.toml", "LICENSE")
INSTALL = ("--quiet", "--disable-pip-version-check", "--no-index", "--no-deps")


def build(folder: Path) -> Path:
    """The wheel's file. Built away from the checkout, where a build leaves folders of its own."""
    copy, out = folder / "sources", folder / "out"
    copy.mkdir()
    for name in SOURCES:
        source, target = ROOT / name, copy / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy2(source, target)
    command = [sys.executable, "-m", "pip", "wheel", *INSTALL, "--no-build-isolation", "-w", str(out), str(copy)]
    subprocess.run(command, check=True, timeout=120)
    (wheel,) = out.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment that has the wheel, its requirements, and those of some extras."""

    folder: Path

    @classmethod
    def of(cls, wheel: Path, folder: Path, extras: set[str]) -> "Installed":
        venv.create(folder, with_pip=False)
        made = cls(folder)
        into = ["--python", str(made.python), "install", *INSTALL, str(wheel)]
        subprocess.run([sys.executable, "-m", "pip", *into], check=True, timeout=120)
        home, ours = made._packages, Path(sysconfig.get_path("purelib"))
        wanted = importlib.metadata.PathDistribution(next(home.glob("longhaul_agents-*.dist-info")))
        for name in {part for one in _needed(wanted, extras) for part in _parts(one)}:
            if not (home / name).exists():
                (home / name).symlink_to(ours / name)
        return made

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def _packages(self) -> Path:
        (found,) = (self.folder / "lib").glob("python3*/site-packages")
        return found


def _needed(one: importlib.metadata.Distribution, extras: set[str]) -> dict[str, importlib.metadata.Distribution]:
    """By name all that it requires, and what those require, as they are installed here."""
    found = dict[str, importlib.metadata.Distribution]()
    open_ = [(one, frozenset(extras))]
    seen = set(open_)
    while open_:
        distribution, asked = open_.pop()
        for wanted in map(Requirement, distribution.requires or ()):
            markers = [{"extra": extra} for extra in (asked or {""})]
            if wanted.marker and not any(wanted.marker.evaluate(each) for each in markers):
                continue
            own = wanted.name == one.metadata["Name"]
            there = one if own else importlib.metadata.distribution(wanted.name)
            found |= {} if own else {wanted.name: there}
            further = (there, frozenset(wanted.extras))
            if further not in seen:
                seen.add(further)
                open_.append(further)
    return found


def _parts(name_and_distribution: str) -> Iterator[str]:
    """What a distribution has put at the top of the packages' folder."""
    distribution = importlib.metadata.distribution(name_and_distribution)
    tops = {file.parts[0] for file in distribution.files or ()}
    return iter(tops - {"..", "__pycache__", "bin"})
