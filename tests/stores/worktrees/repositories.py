"""Repositories of these tests: a plain one, and one that would run a program wherever git lets it."""

import os
import subprocess
from pathlib import Path

FIRST = {"poem.txt": "Rose\n", "src/main.py": "print(1)\n", "win.txt": "one\r\ntwo\r\n", ".gitignore": "*.log\n"}


def git(root: Path, *arguments: str) -> str:
    """As a person would run it, without settings of this machine."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    who = ("-c", "user.name=ana", "-c", "user.email=ana@example.org")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=root, env=environment, capture_output=True, check=True, text=True
    )
    return done.stdout.rstrip("\n")


def repository(folder: Path) -> Path:
    root = folder / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for name, text in FIRST.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(text.encode())
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "first")
    return root


def set_traps(root: Path, folder: Path, *, configured: bool) -> Path:
    """Have the repository name programs for all that git would run: each leaves a file in the folder returned.
    `configured`: in its configuration as well."""
    (root / ".gitattributes").write_text("* filter=evil merge=evil diff=evil\n")
    git(root, "add", ".gitattributes")
    git(root, "commit", "-q", "-m", "attributes")
    caught = folder / "caught"
    caught.mkdir()
    trap = folder / "trap.sh"
    trap.write_text(f'#!/bin/sh\ntouch "{caught}/$$"\ncat\n')
    trap.chmod(0o755)
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        "post-checkout",
        "reference-transaction",
        "pre-commit",
        "post-commit",
        "post-merge",
        "pre-merge-commit",
        "post-index-change",
        "prepare-commit-msg",
        "commit-msg",
        "fsmonitor-watchman",
        "pre-auto-gc",
    ):
        (hooks / name).write_text(trap.read_text())
        (hooks / name).chmod(0o755)
    settings = {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(hooks),
        "core.editor": str(trap),
        "core.pager": str(trap),
        "core.sshCommand": str(trap),
        "core.askPass": str(trap),
        "credential.helper": str(trap),
        "filter.evil.clean": str(trap),
        "filter.evil.smudge": str(trap),
        "filter.evil.process": str(trap),
        "filter.evil.required": "true",
        "merge.evil.driver": f"{trap} %A",
        "diff.evil.command": str(trap),
        "diff.evil.textconv": str(trap),
        "diff.external": str(trap),
        "gpg.program": str(trap),
        "commit.gpgSign": "true",
        "core.alternateRefsCommand": str(trap),
        "core.gitProxy": str(trap),
        "core.worktree": str(folder),
        "alias.add": f"!{trap}",
        "alias.update-ref": f"!{trap}",
    }
    for name, value in settings.items() if configured else ():
        git(root, "config", name, value)
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "a").write_text("a")
    git(inner, "add", "a")
    git(inner, "commit", "-q", "-m", "inner")
    git(inner, "config", "core.fsmonitor", str(trap))
    for one in caught.iterdir():
        one.unlink()
    return caught


def texts(root: Path) -> dict[str, str]:
    """The files below, git's own and ours left out."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes().decode()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not {".git", ".longhaul"} & set(path.relative_to(root).parts)
    }
