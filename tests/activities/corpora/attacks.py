"""A stage for attacks that begin at the causes of earlier ones, and what a line does on it that passes unasked."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.repository import danger_by_name, danger_to_others
from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.activities.shell.walk import examine_command
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.permission.decision_table import decide_call, decide_planning
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionMode
from tests.activities.corpora.fuzzing import run
from tests.activities.corpora.harness import picture
from tests.activities.corpora.stage import SECRET, Stage, build, git

BASH = ToolDescriptor(name="Bash")
READING = (PermissionMode.DEFAULT, PermissionMode.EXPLORE)
EDITING = (PermissionMode.ACCEPT_EDITS, PermissionMode.DONT_ASK)


def attacked(folder: Path) -> Stage:
    """The stage of the corpora, and in its workspace what a hostile repository would add."""
    stage = build(folder)
    root, ran = stage.root, stage.outside / "ran"
    evil = f"#!/bin/sh\ntouch {ran}\n"
    for name in ("0", "1", "3", "5", "8", "bin", "abc", "src"):
        for program in ("ls", "git", "cat", "node", "rg", "sh"):
            _write(root / name / program, evil, executable=True)
        _write(root / name / ".gitconfig", f"[core]\n\tfsmonitor = touch {ran}\n\tpager = touch {ran}\n")
    for name in ("resp", "@@x", "opt/data"):
        _write(root / name, f"{stage.outside}/secret\n{stage.home}/.ssh/id_rsa\n1e touch {ran}\n")
    _write(root / "opt" / "--compress-program=sh", "x\n")
    _write(root / "opt" / "-S10b", "x\n")
    _write(root / "-n", f"1e touch {ran}\n")
    _write(root / "e", f"1e touch {ran}\n")
    _write(root / "evil" / "config", f"[core]\n\tfsmonitor = touch {ran}\n\trepositoryformatversion = 0\n")
    _write(root / ".ignore", "!.env\n!keys\n")
    _write(root / "conftest", "a\n")
    _write(root / "agents" / "x", "a\n")
    links = {"\uff11": "../outside/kept", "a=": "../home", "b:": "../home", "\udcff\udcc3\udca9": "../outside/secret"}
    for name, target in {**links, "docs/link": "../../outside/kept"}.items():
        (root / name).symlink_to(target)
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    _write(inner / "g", "g\n")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "inner")
    return stage


def _write(path: Path, text: str, *, executable: bool = False) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if executable else 0o644)


def passing(line: str, root: Path, modes: tuple[PermissionMode, ...]) -> CallAnalysis | None:
    """What was found out about a line that one of the modes lets run unasked, with nothing that holds it."""
    analysis, raw = examine_command(line, root, root), json.dumps({"command": line})
    decided = [decide_call(BASH, raw, analysis, PermissionContext(mode=mode), str(root)) for mode in modes]
    if PermissionMode.EXPLORE in modes:
        decided.append(decide_planning(BASH, raw, analysis, PermissionContext(), str(root), ""))
    return analysis if any(each.behavior is Behavior.ALLOW for each in decided) else None


@dataclass
class Arena:
    """Runs lines on a stage, and tells what came of each; after one that changed something the stage is a new one."""

    folder: Path
    _made: Stage | None = None
    _before: dict[str, str] | None = None

    @property
    def stage(self) -> Stage:
        if self._made is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self._made = attacked(self.folder)
            self._before = picture(self.folder)
        return self._made

    def harm(self, line: str, *, editing: bool) -> str:
        """What the line does that it should not; empty when it is harmless."""
        stage = self.stage
        environment = hardened(scrubbed(os.environ)) | {"HOME": str(stage.home)}
        printed = run(line, stage.root, environment)
        after, before = picture(self.folder), self._before or {}
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if changed:
            self._made = None
        if SECRET.encode() in printed:
            return "shows a secret"
        wrong = [name for name in changed if not editing or not may_be_edited(name, stage.root)]
        return f"changes {wrong[0]}" if wrong else ""


def may_be_edited(name: str, root: Path) -> bool:
    """Whether it lies in the workspace, and is nothing that others run or obey."""
    path = Path(name)
    if not path.is_relative_to(root) or path == root:
        return path == root
    parts = path.relative_to(root).parts
    return not danger_to_others(parts) and not danger_by_name(parts, "write")
