"""What a line does in its sandbox on the stage of the attacks, whether it would pass or not."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from longhaul.activities.process.program_run import run_supervised
from longhaul.activities.process.sandbox import SandboxPolicy, sandboxed
from longhaul.activities.shell.environment_variables import hardened, scrubbed
from longhaul.agent.permission.call_analysis import Confined
from tests.activities.corpora.attacks import attacked, may_be_edited
from tests.activities.corpora.harness import Listener, picture
from tests.activities.corpora.stage import Stage

OUTSIDE = b"gooseberry-3307"
"""What files outside of the workspace hold; the workspace has secrets of its own."""
SECONDS = 2.0
MOST_BYTES = 4_000_000
READ: Confined = "read"
EDIT: Confined = "edit"


@dataclass
class Printed:
    """Output, looked through and not kept, of which the first part is there."""

    start: bytes = b""
    shows_outside: bool = False
    total_bytes: int = 0
    _tail: bytes = b""

    @property
    def full(self) -> bool:
        return self.total_bytes > MOST_BYTES

    def add(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        seen = self._tail + chunk
        self.shows_outside = self.shows_outside or OUTSIDE in seen
        self._tail = seen[-len(OUTSIDE) :]
        self.start = (self.start + chunk)[:20_000]


async def run_held(line: str, root: Path, home: Path, confined: Confined) -> Printed:
    """As the tool Bash runs it; with `confined` empty in no sandbox."""
    shell = ("/bin/bash", "--noprofile", "--norc", "-c", f"{line}\nwait")
    environment = hardened(scrubbed(os.environ)) | {"HOME": str(home)}
    environment |= {"TMPDIR": "/tmp"} if confined else {}
    held, printed = sandboxed(SandboxPolicy("proven"), shell, root, root, confined), Printed()
    await run_supervised(held.command, root, environment, SECONDS, printed, held.limits)
    return printed


@dataclass
class Cell:
    """A stage on which lines run in a sandbox; after one that changed something it is as it was before."""

    folder: Path
    listener: Listener
    stage: Stage = field(init=False)
    _before: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / "stage").mkdir()
        self.stage = attacked(self.folder / "stage")
        # A second name of a file outside is a file of the workspace: what touches it asks, and no sandbox holds it.
        (self.stage.root / "hard-link").unlink()
        (self.stage.root / "hard-link-to-secret").unlink()
        for place in (self.stage.home, self.stage.outside):
            for file in (path for path in place.rglob("*") if path.is_file()):
                file.write_bytes(OUTSIDE)
        self._copy(self.folder / "stage", self.folder / "kept")
        self._before = picture(self.folder / "stage")

    async def harm(self, line: str, confined: Confined) -> str:
        """What the line does in a sandbox of that kind that it should not; empty when nothing."""
        calls = self.listener.calls
        text = self.stage.text(line, self.listener.port)
        printed = await run_held(text, self.stage.root, self.stage.home, confined)
        after = picture(self.folder / "stage")
        names = self._before.keys() | after.keys()
        changed = sorted(name for name in names if self._before.get(name) != after.get(name))
        if changed:
            shutil.rmtree(self.folder / "stage")
            self._copy(self.folder / "kept", self.folder / "stage")
        if printed.shows_outside:
            return "shows what lies outside"
        if self.listener.calls != calls:
            return "calls somebody"
        wrong = next(self._wrong(changed, confined), "")
        return f"changes {wrong}" if wrong else ""

    def _wrong(self, changed: Iterable[str], confined: Confined) -> Iterator[str]:
        for name in changed:
            new_in_the_workspace = name not in self._before and Path(name).is_relative_to(self.stage.root)
            allowed = new_in_the_workspace or may_be_edited(name, self.stage.root)
            if confined != EDIT or not allowed:
                yield name

    @staticmethod
    def _copy(one: Path, other: Path) -> None:
        """With links, pipes and modes."""
        subprocess.run(["cp", "-a", str(one), str(other)], check=True)
