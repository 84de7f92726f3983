"""Hostile repositories: each is a plain one with one thing changed, as an unpacked archive may bring it.

A setting that names a program or a file, in each place that git may read it from; a spelling of one; or a part of the
repository that is a link, or leads elsewhere. `@RAN@` makes the marker, `@OUT@` is a folder outside.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.activities.corpora.stage import HERE, git

CANARY = "quince-8814"
COMMANDS = (
    "git status", "git status -sb", "git diff", "git diff --stat", "git diff HEAD", "git log -1", "git log -p -1",
    "git log --oneline --graph --all", "git show HEAD", "git show HEAD:f", "git grep f -- f", "git blame f",
    "git describe --tags", "git branch -a", "git branch -vv", "git stash list", "git stash show", "git remote",
    "git remote -v", "git remote get-url origin", "git remote get-url zz", "git ls-files -s", "git ls-tree HEAD",
    "git check-ignore -v f", "git rev-parse HEAD", "git rev-parse --show-toplevel", "git worktree list", "git tag -n",
    "git for-each-ref", "git show-ref", "git count-objects -v", "git reflog", "git shortlog -s HEAD",
    "git cat-file -p HEAD",
    "git -C inner status", "cd inner && git log -1", "git diff -- f", "git whatchanged -1", "git name-rev HEAD",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hostile:
    name: str
    make: Callable[[Path, Path], None]
    """Of a plain repository, and the folder outside."""


def plain(root: Path) -> None:
    """What each of them is made of: a commit, a change, a tag, a stash, a remote, a folder within."""
    (root / "inner").mkdir(parents=True)
    git(root, "init", "-q", "--template=")
    for name in ("f", "g", "inner/h"):
        (root / name).write_text("f\n")
    (root / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "tag", "-am", "one", "v1")
    git(root, "remote", "add", "origin", "https://git.example.org/tea.git")
    (root / "f").write_text("stashed\n")
    git(root, "stash", "-q")
    (root / "f").write_text("changed\n")


def settings() -> list[tuple[str, str]]:
    lines = (HERE / "git_settings.txt").read_text(encoding="utf-8").splitlines()
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines if line]


def hostile() -> Iterator[Hostile]:
    for key, value in settings():
        for place, write in _PLACES.items():
            yield Hostile(f"{key} in {place}", _setting(write, key, value))
    for number, text in enumerate(_SPELLINGS):
        yield Hostile(f"spelling {number}", _spelling(text))
    for name in _PARTS:
        yield Hostile(f"{name} is a link to a file", _link(name, "canary"))
        yield Hostile(f"{name} is a link to a folder", _link(name, "folder"))
    for name, text in _POINTERS.items():
        yield Hostile(f"{name} leads elsewhere", _pointer(name, text))
    for entry in (
        b"../outside/canar",
        b"/x/outside/canar",
        b".git/config-like",
        b"a/../../outside/",
        b"./././././././aa",
    ):
        yield Hostile(f"the index names {entry.decode()}", _indexed(entry))
    yield Hostile("a folder of the index is a link", _swapped)


def _section(key: str, value: str) -> str:
    section, _, rest = key.partition(".")
    name, _, variable = rest.rpartition(".")
    head = f'[{section} "{name}"]' if name else f"[{section}]"
    return f"\n{head}\n\t{variable} = {value}\n"


def _filled(text: str, outside: Path) -> str:
    return text.replace("@RAN@", f"touch {outside}/ran").replace("@OUT@", str(outside))


def _setting(write: Callable[[Path, str], None], key: str, value: str) -> Callable[[Path, Path], None]:
    return lambda root, outside: write(root, _filled(_section(key, value), outside))


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as opened:
        opened.write(text)


def _included(root: Path, text: str) -> None:
    _append(root / "more", text)
    _append(root / ".git/config", "\n[include]\n\tpath = ../more\n")


def _included_if(root: Path, text: str) -> None:
    _append(root / "more", text)
    _append(root / ".git/config", f'\n[includeIf "gitdir:{root}/**"]\n\tpath = ../more\n')


def _of_the_worktree(root: Path, text: str) -> None:
    _append(root / ".git/config", "\n[extensions]\n\tworktreeConfig = true\n")
    _append(root / ".git/config.worktree", text)


def _elsewhere(root: Path, text: str) -> None:
    (root / ".git").rename(root / "kept")
    (root / ".git").write_text("gitdir: kept\n")
    _append(root / "kept/config", text)


def _of_the_inner(root: Path, text: str) -> None:
    shutil.copytree(root / ".git", root / "inner/.git", symlinks=True)
    _append(root / "inner/.git/config", text)


def _bare(root: Path, text: str) -> None:
    for name in ("HEAD", "objects", "refs", "config"):
        copy = shutil.copy if (root / ".git" / name).is_file() else shutil.copytree
        copy(root / ".git" / name, root / "inner" / name)
    _append(root / "inner/config", text)


def _common(root: Path, text: str) -> None:
    shutil.copytree(root / ".git", root / "common", symlinks=True)
    (root / ".git/commondir").write_text("../common\n")
    _append(root / "common/config", text)


def _submodule(root: Path, text: str) -> None:
    git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", f"{root}/.git", "module")
    _append(root / ".git/modules/module/config", text)
    (root / "module/f").write_text("changed\n")


_PLACES: dict[str, Callable[[Path, str], None]] = {
    "its configuration": lambda root, text: _append(root / ".git/config", text),
    "a file that is included": _included,
    "one included by its place": _included_if,
    "that of the working tree": _of_the_worktree,
    "a repository elsewhere": _elsewhere,
    "a repository within": _of_the_inner,
    "a bare one within": _bare,
    "a common folder": _common,
    "a submodule": _submodule,
}
_SPELLINGS = (
    "[core]fsmonitor=@RAN@\n", "[CORE]\nFSMonitor = @RAN@\n", "[diff]\n external = @RAN@\n", "[DIFF]External=@RAN@\n",
    "[core]\r\n\tpager = @RAN@\r\n", "\ufeff[diff]\n\texternal = @RAN@\n", "[core]\n\tpager = \"@RAN@\"\n",
    "[diff] ; x\n external = @RAN@\n", "[diff] # ]\nexternal = @RAN@\n", "# \\\n[diff]\nexternal = @RAN@\n",
    "[diff\t]\nexternal = @RAN@\n", "[diff \"x\"] textconv = @RAN@\n", "[diff.x]\ntextconv = @RAN@\n",
    "[Diff.X]\nTextConv = @RAN@\n",
    "[diff \"x\\\"]\"]\ntextconv = @RAN@\n[diff \"x\"]\ntextconv=@RAN@\n", "[filter.x]\nclean = @RAN@\n",
    "[filter \"x\"]clean=@RAN@\n",
    "[color]\n\tx = 1 \\\n[diff]\n external = @RAN@\n", "[advice]\n x = \"a\n[diff]\nexternal = @RAN@\n",
    "[branch \"a\\\n\"]\n[diff]\nexternal=@RAN@\n",
    "[remote \"x\"]\n\turl = a\\\n[diff]\n\texternal = @RAN@\n", "[core]\n\tfilemode = false\n\tbare\n",
    "[core]\n\tbare = true\n\tworktree = @OUT@\n",
    "[core]\n\x0bexternal = x\n[diff]\n\x0cexternal = @RAN@\n", "[gc]\nx=1 ; \\\n[diff]\nexternal = @RAN@\n",
    "[diff]\nexternal\n=@RAN@\n",
    "[user]\nname = a\n[include]path=../more\n", "[user]\n name = \"a\" [diff]\n external = @RAN@\n",
    "[\"diff\"]\nexternal=@RAN@\n", "[diff]external = !@RAN@\n",
)  # fmt: skip
_PARTS = (
    "HEAD", "config", "index", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/tags",
    "refs/stash",
    "packed-refs", "info", "info/exclude", "info/attributes", "info/grafts", "info/sparse-checkout", "logs",
    "logs/HEAD",
    "logs/refs", "hooks", "hooks/post-index-change", "shallow", "worktrees", "worktrees/w/gitdir", "branches",
    "branches/zz",
    "remotes", "remotes/zz", "rebase-merge", "rebase-merge/done", "rebase-merge/onto", "rebase-merge/head-name",
    "rebase-merge/git-rebase-todo", "rebase-apply", "rebase-apply/head-name", "BISECT_START", "BISECT_LOG",
    "MERGE_HEAD",
    "MERGE_MSG", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer/todo", "ORIG_HEAD", "FETCH_HEAD", "description",
    "commondir", "gitdir", "config.worktree", "modules", "objects/info/alternates", "objects/info/commit-graph",
    "fsmonitor--daemon.ipc", "sharedindex.x", "refs/replace", "refs/notes", "gc.pid", "AUTO_MERGE", "refs/bisect",
    "rr-cache",
)  # fmt: skip
_POINTERS = {
    ".git/commondir": "@OUT@", ".git/gitdir": "@OUT@", ".git/objects/info/alternates": "@OUT@\n",
    ".git/HEAD": "ref: ../../outside/canary\n",
    ".git/refs/heads/zz": "ref: ../../../../outside/canary\n",
    ".git/packed-refs": "# pack-refs with: peeled\n../../x refs/heads/z\n",
    ".git/shallow": "@OUT@/canary\n", ".git/branches/zz": "@OUT@/canary\n", ".git/remotes/zz": "URL: ext::@RAN@\n",
    ".gitmodules": '[submodule "x"]\n\tpath = inner\n\turl = ../outside\n\tupdate = !@RAN@\n',
    ".mailmap": "@OUT@\n", ".lfsconfig": "[lfs]\n\tcustomtransfer.x.path = @RAN@\n", "inner/.git": "gitdir: @OUT@\n",
}  # fmt: skip


def _spelling(text: str) -> Callable[[Path, Path], None]:
    def make(root: Path, outside: Path) -> None:
        _append(root / "more", _filled("[diff]\n\texternal = @RAN@\n", outside))
        _append(root / ".git/config", _filled(text, outside))

    return make


def _link(name: str, target: str) -> Callable[[Path, Path], None]:
    def make(root: Path, outside: Path) -> None:
        path = root / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.symlink_to(outside / target)

    return make


def _pointer(name: str, text: str) -> Callable[[Path, Path], None]:
    def make(root: Path, outside: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(_filled(text, outside))

    return make


def _indexed(name: bytes) -> Callable[[Path, Path], None]:
    def make(root: Path, _outside: Path) -> None:
        own = "n" * len(name)
        (root / own).write_text("own\n")
        git(root, "add", own)
        index = root / ".git/index"
        changed = index.read_bytes()[:-20].replace(own.encode(), name, 1)
        index.write_bytes(changed + hashlib.sha1(changed, usedforsecurity=False).digest())

    return make


def _swapped(root: Path, outside: Path) -> None:
    (root / "deep").mkdir()
    (root / "deep/canary").write_text("own\n")
    git(root, "add", "deep")
    shutil.rmtree(root / "deep")
    (root / "deep").symlink_to(outside)
