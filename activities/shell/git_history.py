"""Files with secrets that a repository's commits hold, also those that nobody sees any more: `git log -p` prints them.

git itself is asked, in the environment of commands that run unasked, once for each state of the references.
"""

import os
import shutil
import subprocess
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from longhaul.activities.repository.secret_trees import TooLarge
from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.agent.permission.call_facts import is_secret

SECONDS = 3.0
"""A longer history can't be looked through while somebody waits: the command asks."""
MAX_REFERENCES = 20_000
REMEMBERED = 32
_ASK = (
    "--no-pager", "-c", "log.showRoot=true", "-c", "log.showSignature=false", "log", "--all", "--reflog", "-z",
    "--format=", "--name-only", "--diff-filter=A", "--diff-merges=first-parent", "--no-renames", "--ignore-submodules",
)  # fmt: skip

State = tuple[tuple[str, int, int, int], ...]


def secrets_in_commits(top: Path, folder: Path) -> tuple[str, ...]:
    """Their names below `top`, the working tree; `folder` is what git keeps for it. Raises TooLarge, OSError."""
    if not (folder / "HEAD").exists():
        return ()
    key = (str(top), tuple(_references(folder)))
    found = _remembered.get(key)
    if found is None:
        found = _remembered[key] = _asked(top)
        while len(_remembered) > REMEMBERED:
            _remembered.popitem(last=False)
    return found


_remembered: OrderedDict[tuple[str, State], tuple[str, ...]] = OrderedDict()


def _references(folder: Path) -> Iterator[tuple[str, int, int, int]]:
    """What git rewrites when any commit becomes reachable: references, packed or not, and their logs."""
    pointer = folder / "commondir"
    shared = (folder / pointer.read_text(encoding="utf-8").strip()) if pointer.is_file() else folder
    files = list(islice(_files(folder, shared), MAX_REFERENCES + 1))
    if len(files) > MAX_REFERENCES:
        raise TooLarge
    for path in files:
        status = path.stat()
        yield str(path), status.st_mtime_ns, status.st_size, status.st_ino


def _files(folder: Path, shared: Path) -> Iterator[Path]:
    for file in dict.fromkeys((folder / "HEAD", folder / "logs" / "HEAD", shared / "packed-refs")):
        if file.is_file():
            yield file
    for name in ("refs", "logs", "reftable"):
        for parent, _, files in os.walk(shared / name):
            yield from (Path(parent, file) for file in files)


def _asked(top: Path) -> tuple[str, ...]:
    environment = hardened(scrubbed(os.environ))
    git = shutil.which("git", path=environment["PATH"])
    if git is None:
        return ()  # nor will the command find it
    try:
        done = subprocess.run(
            [git, *_ASK], cwd=top, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TooLarge from None
    if done.returncode:
        raise OSError(f"git log ended with {done.returncode}")
    names = dict.fromkeys(done.stdout.decode(errors="surrogateescape").split("\0"))
    return tuple(name for name in names if name and is_secret(tuple(name.lower().split("/"))))
