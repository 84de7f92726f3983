"""Reads from the environment what a command's words mean: homes, and where programs lie."""

import os
from pathlib import Path

from longhaul.activities.shell.words import Word


def at_home(word: Word) -> str:
    return home_written_out(word.text) if word.tilde else word.text


def home_written_out(text: str) -> str:
    """`text` with a leading `~` as the shell replaces it."""
    if text != "~" and not text.startswith("~/"):
        return text
    return (os.environ.get("HOME") or Path("~").expanduser().as_posix()) + text[1:]


def folders_with(program: str) -> list[str]:
    """Those of PATH that have a program of this name."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [folder for folder in folders if folder.startswith("/") and os.path.lexists(f"{folder}/{program}")]


def lies_in(folder: str, root: Path) -> bool:
    """As it is spelt, or where it leads now."""
    return Path(folder).is_relative_to(root) or Path(os.path.realpath(folder)).is_relative_to(root)
