"""Paths that a model names: where they lead at this moment, and what is dangerous about going there.

Nothing is granted here. A path outside the workspace is a fact (`inside=False`) on which permission decides.
"""

import errno
import os
from pathlib import Path
from typing import Literal

from activities.tools.tool import Place, ToolError
from agent.permission.facts import PathFact

Access = Literal["read", "write"]

KERNEL_ROOMS = ("/proc", "/dev", "/sys")
"""Names in there are not files: reading one may block, leak the worker's secrets or change the machine."""

CONFIGURATION_FOLDERS = frozenset({".git", ".ssh", ".vscode", ".idea", ".longhaul", ".husky", ".gnupg"})
CONFIGURATION_FILES = frozenset(
    {
        ".envrc",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".gitconfig",
        ".gitmodules",
        ".mcp.json",
        ".inputrc",
        ".vimrc",
        ".tmux.conf",
    }
)
SECRET_FILES = frozenset(
    {
        ".netrc",
        ".pgpass",
        ".my.cnf",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".envrc",
        ".env",
        ".vault-token",
        ".htpasswd",
        "application_default_credentials.json",
    }
)
SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws"})
PRIVATE_KEYS = frozenset({"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"})
SECRET_ENDINGS = (".pem", ".p12", ".pfx", ".kdbx", ".keystore", ".jks", ".ppk")
SECRET_IN_FOLDER = frozenset(
    {
        ("etc", "shadow"),
        ("etc", "gshadow"),
        (".aws", "credentials"),
        (".docker", "config.json"),
        (".kube", "config"),
        (".azure", "msal_token_cache.json"),
        ("gh", "hosts.yml"),
        ("gcloud", "credentials.db"),
        (".cargo", "credentials.toml"),
        (".m2", "settings.xml"),
    }
)
HARMLESS_ENV_ENDINGS = (".example", ".sample", ".template", ".dist")


def resolve(raw: str, place: Place) -> Path:
    """Where `raw` leads now: absolute, symlinks and `..` resolved, relative to the session's working directory.

    The last parts need not exist. Nothing is expanded: `$HOME/x` and `%2e%2e/x` are literal names.
    Raises ToolError for what can't be a path (empty, NUL, not Unicode, too long, a loop of links) and for `~`.
    """
    _refuse_impossible(raw)
    resolved = os.path.realpath(place.cwd / raw)
    try:
        resolved.encode()
        if Path(resolved).is_symlink():
            raise ToolError(f"{_shown(raw)} is a loop of symbolic links; name the file itself")
        os.lstat(resolved)
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(raw)} leads to a name that is not valid UTF-8; rename it with Bash first") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ToolError(f"{_shown(raw)} can't be used as a path: {os.strerror(error.errno)}") from None
    return Path(resolved)


def resolve_file(raw: str, place: Place) -> Path:
    """As `resolve`, for a path that must name a file: a trailing slash is refused, and so are /proc, /dev and /sys."""
    resolved = resolve(raw, place)
    if raw.endswith(("/", "/.", "/..")) or raw in (".", ".."):
        raise ToolError(f"{_shown(raw)} names a directory; give the path of a file")
    if in_kernel_room(resolved):
        raise ToolError(f"{_shown(raw)} leads to {str(resolved)!r}, which is not a regular file; it was not touched")
    return resolved


def in_kernel_room(resolved: Path) -> bool:
    """Whether the path is under /proc, /dev or /sys."""
    return any(resolved.is_relative_to(room) for room in KERNEL_ROOMS)


def path_fact(resolved: Path, access: Access, root: Path) -> PathFact:
    """What permission needs to know of one resolved path. `root` is the resolved workspace root."""
    inside = resolved.is_relative_to(root)
    # The workspace itself may lie in a folder with a dangerous name (the data directory's `.longhaul`).
    looked_at = resolved.relative_to(root) if inside else resolved
    return PathFact(path=str(resolved), access=access, inside=inside, danger=_danger(looked_at, access))


def secret_globs() -> list[str]:
    """Globs (as in .gitignore) of what a search through a folder leaves out: read by name, these would ask."""
    names = [*sorted(SECRET_FILES | PRIVATE_KEYS), ".env.*", *(f"*{ending}" for ending in SECRET_ENDINGS)]
    return [*names, *("/".join(("**", *pair)) for pair in sorted(SECRET_IN_FOLDER)), "**/.gnupg/**", "**/.ssh/**"]


def _danger(path: Path, access: Access) -> str:
    parts = tuple(part.lower() for part in path.parts)
    if not parts:
        return ""
    name = parts[-1]
    secret = f"{name} may hold secrets" if _is_secret(parts) else ""
    if access == "read":
        return secret
    folder = next((part for part in parts if part in CONFIGURATION_FOLDERS), None)
    if folder is not None:
        return f"{folder} is configuration that can run code or open doors"
    if name in CONFIGURATION_FILES or _is_env_file(name):
        return f"{name} is configuration that can run code or open doors"
    return secret


def _is_secret(parts: tuple[str, ...]) -> bool:
    name, folder = parts[-1], parts[-2] if len(parts) > 1 else ""
    if parts[:2] == ("/", "proc"):
        return name in ("environ", "mem", "cmdline", "maps")
    if name in SECRET_FOLDERS:
        return True
    if folder == ".ssh":
        return not name.endswith(".pub") and name not in ("known_hosts", "config")
    in_keyring = ".gnupg" in parts[:-1]
    by_folder = (folder, name) in SECRET_IN_FOLDER
    by_name = name in SECRET_FILES | PRIVATE_KEYS or name.endswith(SECRET_ENDINGS) or _is_env_file(name)
    return in_keyring or by_folder or by_name


def _is_env_file(name: str) -> bool:
    return (name == ".env" or name.startswith(".env.")) and not name.endswith(HARMLESS_ENV_ENDINGS)


def _refuse_impossible(raw: str) -> None:
    if not raw:
        raise ToolError("the path is empty; give an absolute path, or one relative to the working directory")
    if "\0" in raw:
        raise ToolError(f"{_shown(raw)} contains a NUL character, which no path can")
    if raw == "~" or raw.startswith("~/"):
        raise ToolError(f"{_shown(raw)}: `~` is not expanded here; write the absolute path")
    try:
        raw.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{_shown(raw)} is not valid Unicode, so it can't name a file") from None


def _shown(raw: str) -> str:
    """`raw` quoted, and short enough for a sentence."""
    return repr(raw) if len(raw) <= 200 else f"{raw[:100]!r}… ({len(raw)} characters)"
