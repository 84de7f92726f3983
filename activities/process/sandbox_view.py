"""The view of the machine that a command has which runs unasked: the workspace, the programs, and nothing of
anybody's. Covered are files with secrets, and names that other programs run or obey.
"""

import os
import re
import stat
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from longhaul.activities.repository import UnreadableIndex, danger_by_name, danger_to_others, is_harmless, tracked_in
from longhaul.agent.permission.call_analysis import KEYRINGS, is_secret
from longhaul.stores.worktrees.git import repository_of

MOST_NAMES = 10_000
"""Looked at, the upper folders first: what lies beyond is left to the proof."""
MOST_COVERED = 200
"""Each is a mount, of a tenth of a millisecond."""
REMEMBERED_ROOTS = 32
STILL_NS = 2_000_000_000
"""A folder that changed so shortly before it was read may change again without another time showing at it."""
_PACKAGES = frozenset({"node_modules", "site-packages", "dist-packages", "__pycache__", ".git"})
"""Not looked into: others' packages, whose keys are for tests, and repositories, which are covered whole or not."""


@dataclass(slots=True)
class Covered:
    """Absolute paths, each once; of a folder nothing below it."""

    secrets: list[str] = field(default_factory=list)
    """Not what git tracks: it would tell of a change that there is none."""
    run_by_others: list[str] = field(default_factory=list)

    @property
    def full(self) -> bool:
        return len(self.secrets) + len(self.run_by_others) >= MOST_COVERED


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    parts: tuple[str, ...]
    """Below the root, in lower case."""
    guarded: bool = False
    """It is covered, or lies in what is."""


@dataclass(frozen=True, slots=True)
class _Name:
    """One that may have to be covered."""

    path: str
    secret: bool
    run: bool
    is_folder: bool


@dataclass(frozen=True, slots=True)
class _Read:
    """What was found in one folder. It holds until a name comes or goes there: what files hold is not in it."""

    stamp: tuple[int, ...]
    """Empty: it has to be read again."""
    count: int
    names: tuple[_Name, ...]
    inner: tuple[_Folder, ...]
    is_repository: bool


def covered_in(root: Path) -> Covered:
    """What is there now: folders in which names came or went since the last call are read again. Never raises."""
    known, read = _remembered.get(root, {}), dict[str, _Read]()
    covered, seen, tracked = Covered(), 0, set[str]()
    waiting = deque([_Folder(str(root), ())])
    while waiting and seen < MOST_NAMES and not covered.full:
        folder = waiting.popleft()
        found = _looked_at(folder, known.get(folder.path))
        if found is None:
            continue
        read[folder.path] = found
        seen += found.count
        if found.is_repository:
            tracked |= _tracked(folder.path)
        for name in found.names:
            if name.secret and name.path not in tracked and (name.is_folder or not is_harmless(name.path)):
                covered.secrets.append(name.path)
            elif name.run:
                covered.run_by_others.append(name.path)
        waiting.extend(found.inner)
    _remembered.pop(root, None)
    _remembered[root] = read
    while len(_remembered) > REMEMBERED_ROOTS:
        _remembered.popitem(last=False)
    return covered


_remembered: OrderedDict[Path, dict[str, _Read]] = OrderedDict()


def _looked_at(folder: _Folder, known: _Read | None) -> _Read | None:
    """None: it is no folder, or can't be read."""
    try:
        stamp = _stamp(folder.path)
        if known is not None and stamp and known.stamp == stamp:
            return known
        with os.scandir(folder.path) as found:
            entries = list(found)
    except OSError:
        return None
    kept = [each for entry in entries if not entry.is_symlink() for each in _kept(folder, entry)]
    return _Read(
        stamp,
        len(entries),
        tuple(each for each in kept if isinstance(each, _Name)),
        tuple(each for each in kept if isinstance(each, _Folder)),
        any(entry.name == ".git" for entry in entries),
    )


def _stamp(path: str) -> tuple[int, ...]:
    """When names last came or went; nobody can set that time. Raises OSError, also where a link has taken its place."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(path)
    if time.time_ns() - status.st_ctime_ns < STILL_NS:
        return ()
    return (status.st_dev, status.st_ino, status.st_ctime_ns)


def _kept(folder: _Folder, entry: os.DirEntry[str]) -> Iterator[_Name | _Folder]:
    parts = (*folder.parts, entry.name.lower())
    is_folder = entry.is_dir(follow_symlinks=False)
    secret = parts[-1] in KEYRINGS if is_folder else is_secret(parts)
    run = not folder.guarded and bool(danger_to_others(parts) or danger_by_name(parts, "write"))
    if secret or run:
        yield _Name(entry.path, secret, run, is_folder)
    if is_folder and not secret and parts[-1] not in _PACKAGES:
        yield _Folder(entry.path, parts, folder.guarded or run)


def _tracked(folder: str) -> set[str]:
    """Files of this folder's repository that would count as secrets."""
    try:
        return {f"{folder}/{name}" for name in tracked_in(Path(folder, ".git", "index")).secrets}
    except (OSError, UnreadableIndex):
        return set()


HOLDING = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
"""bubblewrap itself sees to it that nothing in the sandbox gains rights by running a program."""
TMP_BYTES = str(1 << 28)
"""Of what lies in memory instead of on a disk."""

_LINKED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_NEEDED = ("passwd", "group", "ld.so.cache", "alternatives", "localtime", "nsswitch.conf", "hosts", "gitconfig")
"""Below /etc: who owns a file, where a library or a chosen program lies, what time it is."""
_DEVICES = ("null", "zero", "urandom")
_STORES = ("/nix/store", "/gnu/store")
_NOBODYS = str(Path(__file__).with_name("__init__.py"))
"""An empty file, shown in the place of one that is not to be read: as a device it would not look like a file."""
_EMPTY = "--tmpfs"
_MANAGERS = frozenset({".pyenv", ".rbenv", ".nodenv", ".nvm", ".volta", ".asdf", ".sdkman", ".rustup"})
_GIT_SETTINGS = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")
_SETTINGS_BYTES = 100_000
_TELLS = re.compile(rb"://[^/\s]*@|header|passw|token|secret|credential", re.IGNORECASE)
_NONE: Mapping[str, str] = MappingProxyType({})
_UNUSUAL = ("/proc", "/sys", "/dev")


def unseeable(root: Path) -> str:
    """Why no sandbox can show this workspace and hide the rest; empty when one can."""
    if root == Path("/"):
        return "the workspace is the whole machine"
    if any(root.is_relative_to(place) for place in _UNUSUAL) and not root.is_relative_to("/dev/shm"):  # noqa: S108
        return f"the workspace lies in {root.parts[1]!r}, which a sandbox has of its own"
    return ""


def view_of(  # noqa: PLR0913  one for each thing that can be seen
    root: Path,
    cwd: Path,
    opened: Sequence[Path],
    hidden: Sequence[Path],
    *,
    writing: bool,
    guarded: bool = True,
    also: Mapping[str, str] = _NONE,
) -> list[str]:
    """bubblewrap's arguments. Raises nothing: what is not there is not shown."""
    programs = _programs(os.environ.get("PATH", os.defpath), home := Path.home())
    mounts, shown = files_of(root, opened, hidden, programs, writing=writing, guarded=guarded, also=also)
    return [
        *_system(),
        *_settings(home),
        *mounts,
        # A command may stand in a folder that it can't see; then it is empty.
        *(("--dir", str(cwd)) if _mount_of(str(cwd), {"/usr": "--ro-bind", **shown}) in ("", _EMPTY) else ()),
        *("--remount-ro", "/"),
    ]


def files_of(  # noqa: PLR0913  as of `view_of`
    root: Path,
    opened: Sequence[Path],
    hidden: Sequence[Path],
    programs: Sequence[Path] = (),
    *,
    writing: bool,
    guarded: bool = True,
    also: Mapping[str, str] = _NONE,
) -> tuple[list[str], dict[str, str]]:
    """The mounts alone, and how each folder is shown. `writing`: the root and the opened folders can be written, but
    not what others run there. Not `guarded`: all files of the root are as they are, also those with secrets. `also`:
    further folders, and how they are shown."""
    # Links are never followed by the permission engine either; it compares names.
    folders = [
        root,
        *(
            folder
            for folder in opened
            if folder.is_absolute() and not unseeable(folder) and folder.is_dir() and folder.resolve() == folder
        ),
    ]
    roots = [str(folder) for folder in folders]
    shown = dict.fromkeys(map(str, programs), "--ro-bind")
    shown |= {str(folder): "--ro-bind" for one in folders if (folder := repository_of(one)) is not None}
    shown |= dict.fromkeys(roots, "--bind" if writing else "--ro-bind")
    shown |= also
    # After all that is shown: what is hidden stays so in each of them.
    covering = (
        path
        for path in [os.path.realpath(path) for path in hidden if path.exists()]
        if _is_within(path, shown) and path not in roots
    )
    shown |= dict.fromkeys(covering, _EMPTY)
    covered = [covered_in(one) for one in folders] if guarded else []
    if writing:
        kept = [*shown, *(path for names in covered for path in (*names.secrets, *names.run_by_others))]
        movable = (folder for folder in _on_the_way(roots, kept) if _mount_of(folder, shown) == "--bind")
        shown = dict.fromkeys(movable, "--bind-try") | shown
    return [*_mounts(shown), *_coverings(covered, shown, writing=writing)], shown


def _mounts(shown: Mapping[str, str]) -> Iterator[str]:
    """The outer ones first: a mount inside of another one has to come after it. What can only be read where it lies in
    what can only be read needs none: each mount takes longer than the one before it."""
    for path in sorted(shown):
        how = shown[path]
        if how == _EMPTY:
            yield from _nothing(path)
        elif how != "--ro-bind" or _mount_of(_above(path), shown) != how:
            yield from (how, path, path)


def _mount_of(path: str, shown: Mapping[str, str]) -> str:
    """How the innermost shown folder is shown that the path is, or lies in; empty: none."""
    while path and path not in shown:
        path = _above(path)
    return shown.get(path, "")


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _on_the_way(roots: Sequence[str], kept: Iterable[str]) -> set[str]:
    """Folders below a root that lead to what has to stay where it is: as mounts of their own they can't be moved."""
    leading = set[str]()
    for path in kept:
        above = _above(path)
        while above not in leading and above not in roots and _is_within(above, roots):
            leading.add(above)
            above = _above(above)
    return leading


def _coverings(covered: Sequence[Covered], shown: Mapping[str, str], *, writing: bool) -> Iterator[str]:
    for names in covered:
        for path in names.run_by_others if writing else ():
            if _mount_of(path, shown) not in (_EMPTY, "--ro-bind"):
                yield from ("--ro-bind-try", path, path)
        for path in names.secrets:
            if _mount_of(path, shown) != _EMPTY:
                yield from _nothing(path)


def _nothing(path: str) -> tuple[str, ...]:
    return (_EMPTY, path) if os.path.isdir(path) else ("--ro-bind", _NOBODYS, path)  # noqa: PTH112  a name


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    return tuple(_system_words())


def _system_words() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _LINKED:
        yield from _as_it_is(Path("/", name))
    for name in _NEEDED:
        yield from _as_it_is(Path("/etc", name))
    yield from ("--symlink", "../usr/lib/os-release", "/etc/os-release")
    yield from (word for store in _STORES if Path(store).is_dir() for word in ("--ro-bind", store, store))
    yield from ("--proc", "/proc")
    for name in _DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    for name, target in {"fd": "fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        yield from ("--symlink", f"/proc/self/{target}", f"/dev/{name}")
    yield from ("--size", TMP_BYTES, "--perms", "1777", "--tmpfs", "/tmp")  # noqa: S108  the sandbox's own


def _as_it_is(path: Path) -> tuple[str, ...]:
    """A link into /usr costs less than a mount."""
    if not path.exists():
        return ()
    if path.is_symlink() and path.resolve().is_relative_to("/usr"):
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path))


def _settings(home: Path) -> Iterator[str]:
    """An empty home folder, but for what git goes by, as far as that tells no secret."""
    if home != Path("/"):
        yield from ("--dir", str(home))
    for path in (home / name for name in _GIT_SETTINGS):
        if _tells_nothing(path):
            yield from ("--ro-bind", str(path), str(path))


def _tells_nothing(path: Path) -> bool:
    try:
        return path.is_file() and path.stat().st_size < _SETTINGS_BYTES and not _TELLS.search(path.read_bytes())
    except OSError:
        return False


@lru_cache(maxsize=4)
def _programs(path: str, home: Path) -> tuple[Path, ...]:
    """Folders of PATH outside of /usr, with what programs in them need: their libraries, or the whole environment."""
    found: dict[Path, None] = {}
    for named in path.split(os.pathsep):
        found |= dict.fromkeys(_of_programs(Path(named)))
    kept: list[Path] = []
    # What lies in another one is there already; each mount takes a tenth of a millisecond.
    for folder in sorted(found):
        # PATH may name any folder; one that holds a home, or is one, is not there for its programs.
        if (
            not _is_within(str(folder), ["/usr", *map(str, kept)])
            and not home.resolve().is_relative_to(folder)
            and folder.parts[1] not in ("proc", "sys", "dev", "etc")
        ):
            kept.append(folder)
    return tuple(kept)


def _of_programs(folder: Path) -> Iterator[Path]:
    if not folder.is_absolute() or not folder.is_dir() or Path("/", *folder.parts[1:2]).is_symlink():
        return
    real = folder.resolve()
    yield from (folder, real)
    # Where a version manager keeps the programs that those on PATH only stand for.
    for kept in (Path(*folder.parts[:end]) for end in range(2, len(folder.parts))):
        if kept.name in _MANAGERS:
            yield kept
        elif kept.name == ".cargo" and (chosen := kept.with_name(".rustup")).is_dir():
            yield chosen
    environment = real.parent / "pyvenv.cfg"
    if environment.is_file():
        yield real.parent
        yield from _of_programs(_home_of(environment))
    elif real.name in ("bin", "sbin"):
        yield from (beside for name in ("lib", "lib64", "libexec") if (beside := real.parent / name).is_dir())


def _home_of(environment: Path) -> Path:
    """Where the Python lies that a virtual environment is made of."""
    for line in environment.read_text(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "home":
            return Path(value.strip())
    return Path()


def _is_within(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)
