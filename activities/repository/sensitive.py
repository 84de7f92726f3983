"""Names of files that other programs run, and what is to be said of one path, where it may hold secrets too.

A name is all that can be judged without reading. The tables fail closed on the side of asking: a file that only looks
like one of these can still be read after a person has agreed.
"""

import os
import stat
from pathlib import Path
from typing import Literal

from longhaul.agent.permission.secret_files import is_env_file, is_secret
from longhaul.agent.permission.suggestions import names

Access = Literal["read", "write"]

_CONFIGURATION_FOLDERS = frozenset({".git", ".ssh", ".vscode", ".idea", ".longhaul", ".husky", ".gnupg"})
_CONFIGURATION_FILES = names(
    ".envrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .netrc .npmrc .pypirc .gitconfig .gitmodules .mcp.json .inputrc .vimrc .tmux.conf"
)
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", ".pnpm", ".venv", ".git"})
"""Folders in which package managers and git give one file many names."""


def danger_by_name(parts: tuple[str, ...], access: Access) -> str:
    """Why touching a path of these parts is a reason to ask; empty when it is none."""
    lower = tuple(part.lower() for part in parts)
    if not lower:
        return ""
    name = lower[-1]
    secret = f"{name} may hold secrets" if is_secret(lower) else ""
    if access == "read":
        return secret
    folder = next((part for part in lower if part in _CONFIGURATION_FOLDERS), None)
    if folder is not None:
        return f"{folder} is configuration that can run code or open doors"
    if name in _CONFIGURATION_FILES or is_env_file(name):
        return f"{name} is configuration that can run code or open doors"
    return secret


def danger_by_kind(path: Path) -> str:
    """Why what lies there is no plain file of one name: a pipe would block, another name may lie anywhere."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return ""
    if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return f"{path.name} is a pipe or a socket"
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and _PACKAGES.isdisjoint(path.parts):
        return f"{path.name} has a second name (a hard link), which may lie outside of the workspace"
    return ""
