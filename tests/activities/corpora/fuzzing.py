"""Worlds and lines that nobody has written, and what the allowed ones of them do when they run.

Each seed makes one world (a repository with settings, attributes, links and odd names) and some lines in it. What is
allowed runs as the tool Bash would run it; a change, a canary in the output or a program of the world that ran is a
failure. Nothing in a world or a line names a path beyond the scratch folder: a proof that fails harms it alone.
`python -m tests.activities.corpora.fuzzing --lines N --seed S` goes on from the seed S.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.activities.shell.programs import EDITORS, GIT, PROGRAMS
from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode
from tests.activities.corpora.harness import picture
from tests.activities.corpora.stage import git

CANARY = "persimmon-5523"
LINES_OF_A_WORLD = 60
SECONDS = 10.0
BASH = ToolDescriptor(name="Bash")
_NAMES = [
    "e", "p", "s p", "data", "a.md", "-n", "--", "--compress-program=sh", "-S10b", "--output=x", "-ox", "\uff11", "a=",
    "é", "\udcffé", ".env", ".hid", "id_rsa", "[x]", "a\\b", "HEAD", "config", "refs/x", "objects/x", "1", "$x", "~",
    "-", ".gitattributes", ".gitignore", ".ignore", "main", "--pre=sh", "w.py", "1e id", "agents/x.toml", "deep/er/f",
]  # fmt: skip
_SETTINGS = [
    ("core.fsmonitor", "touch {out}/ran"), ("core.pager", "touch {out}/ran"), ("diff.external", "touch {out}/ran"),
    ("diff.x.textconv", "touch {out}/ran; cat"), ("filter.x.clean", "touch {out}/ran; cat"), ("core.worktree", "{out}"),
    ("core.hooksPath", "{root}/deep"), ("blame.ignoreRevsFile", "{out}/canary"), ("core.excludesFile", "{out}/canary"),
    ("log.showSignature", "true"), ("gpg.program", "{root}/evil"), ("alias.status", "!touch {out}/ran"),
    ("format.pretty", "%G?"), ("include.path", "{out}/canary"), ("user.name", "ana"), ("core.autocrlf", "false"),
]  # fmt: skip
_JOINTS = [" && ", "; ", " || ", " | ", "\n", " & "]
_REDIRECTS = [
    "",
    "",
    "",
    "",
    " > x",
    " >&1",
    " 2>&1",
    " >&\uff11",
    " < e",
    " 2>/dev/null",
    " > ../outside/x",
    " >> e",
    " &> a=~/x",
]


@dataclass(frozen=True, slots=True)
class World:
    root: Path
    outside: Path


def world(folder: Path, chance: random.Random) -> World:
    made = World((folder / "a" / "root").resolve(), (folder / "a" / "outside").resolve())
    made.root.mkdir(parents=True)
    made.outside.mkdir()
    (made.outside / "canary").write_text(f"{CANARY}\n")
    (made.outside / "e").write_text(f"{CANARY} e\n")
    folders = [made.root, made.root / "B", made.root / "deep"]
    for name in chance.sample(_NAMES, 14):
        path = chance.choice(folders) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        secret = name in (".env", "id_rsa")
        if not path.exists():
            path.write_text(
                f"{CANARY}\n" if secret else f"touch {made.outside}/ran\n1e touch {made.outside}/ran\n!.env\n"
            )
    for name in chance.sample(["l", "B/l", "deep/é", "\uff11", "a=", "??", "deep/l", "up"], 4):
        path = made.root / name
        path.parent.mkdir(exist_ok=True)
        if not os.path.lexists(path):
            path.symlink_to(
                chance.choice(["../outside", "../outside/canary", str(folder), "e", ".", str(made.outside / "new")])
            )
    if chance.random() < 0.8:
        _repository(made, chance)
    return made


def _repository(made: World, chance: random.Random) -> None:
    git(made.root, "init", "-q")
    (made.root / ".git" / "info" / "attributes").write_text(chance.choice(["", "* diff=x filter=x\n"]))
    git(made.root, "add", "-A", "--", ".", *(":!*.env",))
    git(made.root, "commit", "-q", "--allow-empty", "-m", "first")
    if chance.random() < 0.5:
        key, value = chance.choice(_SETTINGS)
        git(made.root, "config", key, value.format(out=made.outside, root=made.root))


def lines(chance: random.Random, outside: Path) -> Iterator[str]:
    """Without end."""
    while True:
        parts = [_part(chance) for _ in range(chance.choice([1, 1, 1, 2, 2, 3]))]
        line = parts[0]
        for part in parts[1:]:
            line += chance.choice(_JOINTS) + part
        yield line.replace("@OUT@", str(outside))


def _part(chance: random.Random) -> str:
    how = chance.random()
    if how < 0.12:
        return f"cd {chance.choice(['B', 'deep', '..', 'deep/er', 'l', '.', 'deep/..', 'none'])}"
    if how < 0.4:
        folder = chance.choice(["", "", " -C B", " -C ..", " -C deep", " -C l", " --no-pager"])
        name = chance.choice(list(GIT))
        command = f"git{folder} {name}{_words(chance, GIT[name].flags)}"
    elif how < 0.5:
        name = chance.choice(list(EDITORS))
        command = f"{name}{_words(chance, EDITORS[name].flags)}"
    else:
        name = chance.choice([program for program in PROGRAMS if program != "sleep"])
        command = f"{name}{_words(chance, PROGRAMS[name].flags)}"
    wrapper = chance.choice(["", "", "", "", "", "timeout 5 ", "nice -n 1 ", "! ", "time "])
    return wrapper + command + chance.choice(_REDIRECTS)


def _words(chance: random.Random, known: object) -> str:
    short, long = list(getattr(known, "short", {})), list(getattr(known, "long", {}))
    found = []
    for _ in range(chance.randint(0, 4)):
        how = chance.random()
        if how < 0.25 and short:
            found.append("-" + "".join(chance.choices([*short, "o", "O", "w", "r"], k=chance.randint(1, 3))))
        elif how < 0.4 and long:
            found.append("--" + chance.choice(long) + chance.choice(["", "", "=1", "=x", "=*"]))
        else:
            found.append(chance.choice(_OPERANDS))
    return "".join(f" {word}" for word in found)


_OPERANDS = [
    "e", "p", "B", "deep", ".", "*", "?", "??", "*/*", "e*", "l", "l/canary", "../outside/canary", "a=~/x", "~/x", "--",
    "-", "HEAD", "HEAD:e", "HEAD~1", "1p", "s/a/b/", "main", "x", "'1e id'", ".env", "id_rsa", "-1", "+%s", "*.md",
    "./*", "é", "B/*", "$?", "@OUT@/canary", "deep/../..", "-o", "out", "'*.md'", "-n", "5", "B/l", "{a,b}", "[x]",
    "::", ":e", ":(top)e",
]  # fmt: skip


def allowed(line: str, made: World, mode: PermissionMode) -> CallAnalysis | None:
    """What was found out about a line that the mode lets run unasked."""
    analysis = examine_command(line, made.root, made.root)
    raw = json.dumps({"command": line})
    decided = decide_call(BASH, raw, analysis, PermissionContext(mode=mode), str(made.root))
    return analysis if decided.behavior is Behavior.ALLOW else None


def failures(seed: int) -> tuple[list[str], int, int]:
    """What went wrong in the world of one seed, how many lines were tried, and how many of them ran."""
    chance = random.Random(seed)  # noqa: S311  lines, not secrets
    wrong, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        made = world(Path(folder), chance)
        environment = hardened(scrubbed(os.environ)) | {"HOME": str(made.outside)}
        seen = (picture(made.root), picture(made.outside))
        for _, line in zip(range(LINES_OF_A_WORLD), lines(chance, made.outside), strict=False):
            analysis = allowed(line, made, chance.choice([PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS]))
            if analysis is None:
                continue
            ran += 1
            printed = run(line, made.root, environment)
            after = (picture(made.root), picture(made.outside))
            changed = after[1] != seen[1] or (analysis.read_only and after[0] != seen[0])
            if changed or CANARY.encode() in printed:
                wrong.append(f"seed {seed}: {'changes files' if changed else 'shows a canary'}: {line!r}")
            seen = after
    return wrong, LINES_OF_A_WORLD, ran


def run(line: str, root: Path, environment: dict[str, str]) -> bytes:
    # The tool leaves nothing running behind a line; here its effect must not be seen at the next one.
    command = ["/bin/bash", "--noprofile", "--norc", "-c", f"{line}\nwait"]
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return late.stdout or b""
    return done.stdout + done.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    tried = ran = 0
    wrong: list[str] = []
    while tried < asked.lines:
        more, lines_of_it, ran_of_it = failures(asked.seed)
        tried, ran, asked.seed = tried + lines_of_it, ran + ran_of_it, asked.seed + 1
        wrong += more
        if more or tried % 6_000 < LINES_OF_A_WORLD:
            print("\n".join([*more, f"{tried} lines tried, {ran} ran"]), flush=True)
    print(f"{tried} lines tried, {ran} ran, {len(wrong)} failed; go on with --seed {asked.seed}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
