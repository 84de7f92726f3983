"""Finds the search program that `Grep` runs."""

import shutil
import sysconfig


def find_ripgrep() -> str | None:
    """The path of `rg`: the one that was installed with Longhaul, else the first on PATH; None without either."""
    return shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg")
