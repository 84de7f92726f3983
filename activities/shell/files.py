"""Reads from the environment what a command's words mean: homes, and where programs lie."""

import os
import shutil
from pathlib import Path

from longhaul.activities.shell.words import Word
from longhaul.agent.plain.text import names

_SYSTEM = ("/usr/", "/bin/", "/sbin/")
_NATIVE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs begin that the machine itself runs: of Linux, and of macOS for one processor and for several."""
_VERSION_MANAGERS = names("mise rtx asdf volta volta-shim proto proto-shim fnm vfox aqua aqua-proxy rustup shim")


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


def is_of_the_system(program: str) -> bool:
    """Whether PATH leads to a program of the machine's own folders that is no script: it looks for no other one."""
    found = shutil.which(program) or ""
    real = os.path.realpath(found)
    return found.startswith(_SYSTEM) and real.startswith(_SYSTEM) and _is_native(real)


def chooses_by_folder(program: str) -> bool:
    """Whether PATH may lead to a version manager, which runs what files of the folder it stands in name: a script from
    outside of the machine's own folders, or a link to a manager."""
    found = shutil.which(program) or ""
    real = os.path.realpath(found)
    if not found or os.path.basename(real) in _VERSION_MANAGERS:  # noqa: PTH119  a text alone
        return bool(found)
    return not (found.startswith(_SYSTEM) and real.startswith(_SYSTEM)) and not _is_native(real)


def _is_native(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4) in _NATIVE
    except OSError:
        return False


def lies_in(folder: str, root: Path) -> bool:
    """As it is spelt, or where it leads now."""
    return Path(folder).is_relative_to(root) or Path(os.path.realpath(folder)).is_relative_to(root)
