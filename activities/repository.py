"""The files of a repository that people are asked about, judged by names alone; and git's index, read without git.

Says of a path why people are asked before it is read or written: its name may hold secrets, or be of a file that
other programs run or agents obey; or it is a pipe, or a file with a second name.

A name is all that can be judged without reading. The tables fail closed on the side of asking: a file that only looks
like one of these can still be read after a person has agreed.

The names that a git index holds, read without git: running git in a hostile repository is what is to be avoided.
"""

import os
import re
import stat
import struct
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Literal

from longhaul.agent.permission.call_analysis import KEYRINGS, is_env_file, is_secret
from longhaul.agent.plain.text import names
from longhaul.stores.names import read_regular

Access = Literal["read", "write"]

_CONFIGURATION_FOLDERS = frozenset({".git", ".ssh", ".vscode", ".idea", ".longhaul", ".husky", ".gnupg"})
_CONFIGURATION_FILES = names(
    ".envrc .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile"
    " .zlogin .netrc .npmrc .pypirc .gitconfig .gitmodules .mcp.json .inputrc .vimrc .tmux.conf"
)
PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", ".pnpm", ".venv", ".git"})
"""Folders in which package managers and git give one file many names."""


_RUN_FILES = names(
    "makefile gnumakefile makefile.am justfile rakefile gulpfile.js gruntfile.js dockerfile containerfile jenkinsfile"
    " vagrantfile brewfile procfile tiltfile earthfile fastfile podfile snakefile taskfile.yml taskfile.yaml"
    " docker-compose.yml docker-compose.yaml compose.yml compose.yaml"
    " conftest.py setup.py setup.cfg pyproject.toml tox.ini noxfile.py pytest.ini tasks.py fabfile.py manage.py"
    " sitecustomize.py usercustomize.py pyvenv.cfg pip.conf uv.toml pdm.toml poetry.toml .pdbrc .pythonrc .coveragerc"
    " pylintrc .pylintrc mypy.ini ruff.toml .ruff.toml"
    " package.json pnpm-workspace.yaml .pnpmfile.cjs .yarnrc .yarnrc.yml deno.json deno.jsonc bunfig.toml turbo.json"
    " nx.json lerna.json .babelrc .eslintrc .mocharc.json .nycrc .npmrc"
    " build.rs cargo.toml rust-toolchain rust-toolchain.toml clippy.toml go.mod go.work magefile.go"
    " build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.properties pom.xml build.sbt build.xml"
    " gemfile composer.json mix.exs rebar.config project.clj build.zig cmakelists.txt cmakepresets.json meson.build"
    " configure configure.ac build.bazel workspace.bazel module.bazel .bazelrc buck .buckconfig sconstruct wscript"
    " flake.nix shell.nix default.nix devbox.json .envrc .tool-versions .mise.toml mise.toml .python-version .nvmrc"
    " .gitlab-ci.yml .travis.yml .drone.yml .woodpecker.yml azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml"
    " cloudbuild.yaml .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .huskyrc .lintstagedrc"
    " .gitattributes .gitmodules .ripgreprc .gdbinit .lldbinit .exrc .vimrc .nvimrc .dir-locals.el"
    " agents.md agent.md claude.md claude.local.md gemini.md codex.md copilot-instructions.md .cursorrules"
    " .windsurfrules .clinerules .roorules .goosehints .aider.conf.yml llms.txt skill.md longhaul.toml .mcp.json"
    " opencode.json"
)
_RUN_PATTERNS = re.compile(
    r".*\.(?:pth|service|timer|desktop|code-workspace|mk|mak)|agents/[^/]*\.toml"
    r"|(?:\.eslintrc|\.prettierrc|\.lintstagedrc|\.mocharc|\.babelrc|\.huskyrc)\..*"
    r"|(?:vite|vitest|jest|webpack|rollup|babel|eslint|prettier|postcss|tailwind|next|nuxt|svelte|astro|karma|cypress"
    r"|playwright|commitlint|lint-staged|wdio|metro|esbuild|tsup|gatsby-config|nodemon|pm2|ecosystem|release)"
    r"(?:\.config|\.conf)?\.(?:[cm]?[jt]s|json)"
    r"|docker-compose\..*|compose\..*\.ya?ml|dockerfile\..*|.*\.dockerfile"
)
"""Of names in lower case; `agents/NAME.toml` with its folder."""
_RUN_FOLDERS = names(
    ".github .gitlab .gitea .forgejo .circleci .buildkite .woodpecker .teamcity .azure-pipelines .husky .lefthook"
    " .cargo .devcontainer .claude .cursor .windsurf .gemini .codex .opencode .continue .roo .cline .goose .aider .mvn"
    " .bundle"
    " .yarn .zed .fleet .nvim .direnv .githooks git-hooks .hooks"
)
_RUN_FOLDER_PAIRS = frozenset(
    {("node_modules", ".bin"), (".venv", "bin"), ("venv", "bin"), ("env", "bin"), ("gradle", "wrapper")}
)
_WHOLE = frozenset({"agents", ".bin"})
"""Folders that are such files' own: whoever moves one there brings what lies in it."""


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
    if _is_second_name(path, status):
        return f"{path.name} has a second name (a hard link), which may lie outside of the workspace"
    return ""


def has_second_name(path: Path) -> bool:
    """Whether the file, which is none of a package, has a further name, which may lie anywhere."""
    try:
        return _is_second_name(path, os.lstat(path))
    except (OSError, ValueError):
        return False


def _is_second_name(path: Path, status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and PACKAGES.isdisjoint(path.parts)


def danger_to_others(parts: tuple[str, ...]) -> str:
    """Why writing there, relative to the workspace, changes what a command does that was allowed before."""
    lower = tuple(part.lower() for part in parts)
    if not lower:
        return ""
    name = lower[-1]
    known = name in _RUN_FILES or name in _WHOLE or any(map(_RUN_PATTERNS.fullmatch, (name, "/".join(lower[-2:]))))
    pairs = not _RUN_FOLDER_PAIRS.isdisjoint(pairwise(lower))
    if known or pairs or not _RUN_FOLDERS.isdisjoint(lower):
        return f"{name} says what other commands or agents run"
    return ""


def lies_on_path(resolved: Path) -> bool:
    """Whether what is written there becomes a program that is found by its name."""
    return any(resolved.is_relative_to(folder) for folder in _path_folders(os.environ.get("PATH", os.defpath)))


@lru_cache(maxsize=8)
def _path_folders(path: str) -> tuple[str, ...]:
    return tuple(os.path.realpath(folder) for folder in path.split(os.pathsep) if folder.startswith("/"))


MAX_ENTRIES = 100_000
MAX_FOUND = 200
REMEMBERED_SECONDS = 1.0
REMEMBERED_TREES = 32
_PUBLISHED = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__"})
"""Packages from elsewhere: their keys are for tests, and their certificates are everybody's."""
IGNORES = (".gitignore", ".ignore", ".rgignore")
_PEEKED_BYTES = 100_000
_TELLS = {
    ".pem": re.compile(rb"PRIVATE KEY|OPENSSH|\A\x30"),
    ".key": re.compile(rb"PRIVATE KEY|OPENSSH|\A\x30"),
    ".npmrc": re.compile(rb"_auth|_password|token|secret", re.IGNORECASE),
    ".git/config": re.compile(
        rb"https?://[^/\s]*@|://[^/\s@:]*+:[^/\s@]*@|header|password|token|secret", re.IGNORECASE
    ),
}
"""In these a search may go on unasked unless their content says otherwise: half of all projects have one."""


_PLAIN = re.compile(r"[\w.,:;@%+=~#^()\[\]{}$&!*?<>|-]+")


class TooLarge(Exception):
    """The folder holds more than can be looked through."""


@dataclass(slots=True)
class Tree:
    secrets: list[str] = field(default_factory=list)
    """Absolute paths, links not resolved."""
    links: list[str] = field(default_factory=list)
    second_names: list[str] = field(default_factory=list)
    """Files, not of packages, that have a further name which is not in the folder."""
    ignores: list[str] = field(default_factory=list)
    """Files that say what ripgrep leaves out."""
    odd: bool = False
    """Whether a name has a character that splits words somewhere: a blank, a quote, a line's end."""


def tree_of(folder: str, *, with_links: bool, most: int = MAX_ENTRIES) -> Tree:
    """What lies in and below `folder`; `with_links` looks for links too, and into published packages.

    Raises TooLarge above `most` names. What was found is remembered for a second: the lines of one reply search the
    same tree.
    """
    try:
        key = (folder, with_links, Path(folder).stat().st_mtime_ns)
    except (OSError, ValueError):
        return Tree()
    now = time.monotonic()
    at, known = _remembered.get(key, (0.0, None))
    if known is None or now - at > REMEMBERED_SECONDS:
        known = _walked(folder, most, with_links=with_links)
        _remembered[key] = (now, known)
        while len(_remembered) > REMEMBERED_TREES:
            _remembered.popitem(last=False)
    return known


_remembered: OrderedDict[tuple[str, bool, int], tuple[float, Tree | None]] = OrderedDict()


def _walked(start: str, most: int, *, with_links: bool) -> Tree:
    tree, seen = Tree(), 0
    several = SeveralNames()
    waiting = [(start, Path(start).name.lower(), False)]
    while waiting:
        folder, folder_name, in_keyring = waiting.pop()
        for entry in _entries(folder):
            seen += 1
            if seen > most:
                raise TooLarge
            name = entry.name.lower()
            tree.odd = tree.odd or not _PLAIN.fullmatch(name)
            tree.ignores.extend([entry.path] if name in IGNORES else ())
            if entry.is_symlink():
                tree.links.extend([entry.path] if with_links else ())
            elif entry.is_dir(follow_symlinks=False):
                if not ((name in _PUBLISHED and not with_links) or (folder_name, name) == (".git", "objects")):
                    waiting.append((entry.path, name, in_keyring or name in KEYRINGS))
            else:
                several.look_at(entry)
                if (in_keyring or is_secret((folder_name, name))) and not is_harmless(entry.path):
                    tree.secrets.append(entry.path)
        if len(tree.secrets) > MAX_FOUND or len(tree.links) > MAX_FOUND:
            raise TooLarge
    tree.second_names.extend(several.with_one_elsewhere())
    if len(tree.second_names) > MAX_FOUND:
        raise TooLarge
    return tree


class SeveralNames:
    """Files with several names, and which of their names were come by."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], tuple[int, list[str]]] = {}

    def look_at(self, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return
        self._add(status, entry.path)

    def look_at_all(self, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                status = os.lstat(path)
            except (OSError, ValueError):
                continue
            self._add(status, path)

    def _add(self, status: os.stat_result, path: str) -> None:
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            self._found.setdefault((status.st_dev, status.st_ino), (status.st_nlink, []))[1].append(path)

    def with_one_elsewhere(self) -> Iterator[str]:
        """Those that have more names than were come by, and are none of packages, which share their files."""
        elsewhere = (path for count, paths in self._found.values() if len(paths) < count for path in paths)
        return (path for path in elsewhere if PACKAGES.isdisjoint(Path(path).parts))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def is_harmless(path: str) -> bool:
    """Whether the file has a name that is often harmless, and holds nothing that tells otherwise."""
    tell = next((tell for ending, tell in _TELLS.items() if path.lower().endswith(ending)), None)
    if tell is None:
        return False
    try:
        return tell.search(read_regular(path, _PEEKED_BYTES)) is None
    except OSError:
        return False


MOST_NAMES = 2_000


def moved_along(places: Sequence[str], root: Path) -> str:
    """The first path with a dangerous name that comes or goes when those of `places` that are folders are moved to the
    others; empty when there is none. `places` are absolute. Raises TooLarge, OSError."""
    real = [Path(os.path.realpath(place)) for place in places]
    for folder in dict.fromkeys(place for place in real if place.is_dir()):
        for name in _below(folder):
            for place in real:
                path = place / name
                parts = path.relative_to(root).parts if path.is_relative_to(root) else path.parts
                if danger_to_others(parts) or danger_by_name(parts, "write"):
                    return str(path)
    return ""


def _below(start: Path) -> Iterator[str]:
    """Each name below, relative to `start`, links not followed."""
    seen, waiting = 0, [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(start / folder) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_NAMES:
                    raise TooLarge
                name = f"{folder}{entry.name}"
                yield name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")


_HEADER = struct.Struct(">4sII")
_OUT_OF_THE_TREE = re.compile(rb"(?:\A|/)(?:\.{0,2}|\.git)(?:/|\Z)", re.IGNORECASE)
"""What git would not have put there itself, and reads as it stands."""
_FIXED_BYTES = 62
"""Of each entry before its name; two more with the extended flag."""
_GITLINK = 0o160000
_SPARSE_FOLDER = 0o040000
INDEX_CAP_BYTES = 100_000_000


class UnreadableIndex(Exception):
    """The index is not one that this reading understands, so nothing can be said of what is tracked."""


@dataclass(frozen=True, slots=True)
class Tracked:
    secrets: tuple[str, ...] = ()
    """Those files, relative to the working tree, that may hold secrets by their names."""
    modules: tuple[str, ...] = ()
    """Folders in which a submodule belongs."""
    folders: tuple[str, ...] = ()
    """That hold a file, or one that does."""
    listing: str = ""
    """All names, each behind a NUL: one text, for there may be hundreds of thousands."""

    @property
    def names(self) -> list[str]:
        return self.listing.split("\0")[1:]


def tracked_in(index: Path) -> Tracked:
    """What the index names; nothing when there is none. Raises UnreadableIndex, OSError."""
    try:
        status = index.stat()
    except FileNotFoundError:
        return Tracked()
    if status.st_size > INDEX_CAP_BYTES or not index.is_file():
        raise UnreadableIndex(f"{index.name} is too large, or no file")
    return _read(index, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=8)
def _read(index: Path, *_stamp: int) -> Tracked:
    try:
        return _parsed(index.read_bytes())
    except (struct.error, IndexError, ValueError) as error:
        raise UnreadableIndex(f"{index.name} can't be read: {error}") from None


def _parsed(data: bytes) -> Tracked:
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        raise ValueError(f"version {version}")
    secrets: list[str] = []
    modules: list[str] = []
    folders: set[str] = set()
    names = [""]
    at, name = _HEADER.size, b""
    for _ in range(count):
        mode = int.from_bytes(data[at + 24 : at + 28])
        begin = at + _FIXED_BYTES + (2 if data[at + 60] & 0x40 else 0)
        kept, begin = _kept_of_last(data, begin, name) if version == 4 else (b"", begin)
        end = data.index(b"\0", begin)
        name = kept + data[begin:end]
        text = name.decode(errors="surrogateescape")
        if _OUT_OF_THE_TREE.search(name) and mode != _SPARSE_FOLDER:
            raise ValueError("a name that leads out of the working tree")
        folders.add(text.rpartition("/")[0])
        names.append(text)
        if mode == _GITLINK:
            modules.append(text)
        elif is_secret(tuple(text.lower().split("/"))):
            secrets.append(text)
        # Entries are padded with 1 to 8 NUL to a multiple of eight bytes, but for version 4.
        at = end + 1 if version == 4 else at + (end - at + 8) // 8 * 8
        if mode == _SPARSE_FOLDER:
            raise ValueError("it is sparse")
    if data[at : at + 4] == b"link":
        raise ValueError("it is split")
    above = {str(parent) for folder in folders for parent in (PurePosixPath(folder), *PurePosixPath(folder).parents)}
    return Tracked(tuple(secrets), tuple(modules), tuple(sorted(above - {"", "."})), "\0".join(names))


def _kept_of_last(data: bytes, at: int, name: bytes) -> tuple[bytes, int]:
    """In version 4 a name begins with how much of the end of the last one is cut off."""
    cut = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        cut = ((cut + 1) << 7) | (data[at] & 0x7F)
    if cut > len(name):
        raise ValueError("a name that is cut too far")
    return name[: len(name) - cut], at + 1
