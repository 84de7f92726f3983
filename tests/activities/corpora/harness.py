"""What a command did to a stage: which files changed, what it printed, and whether anybody was called."""

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from longhaul.activities.tool import ToolCall
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import CallAnalysis
from tests.activities.corpora.stage import Stage


@dataclass
class Listener:
    """Somebody on this machine who waits for secrets."""

    port: int = 0
    calls: int = 0

    def note(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.calls += 1
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    listener = Listener()
    server = await asyncio.start_server(listener.note, "127.0.0.1", 0)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await server.wait_closed()


async def run(text: str, stage: Stage, analysis: CallAnalysis) -> str:
    """Run it just as a session does, on these findings; everything that it printed."""
    call = ToolCall(id="call-1", arguments={"command": text, "timeout": 20_000}, place=stage.place, analysis=analysis)
    return str((await Bash().run(call)).output)


def picture(folder: Path) -> dict[str, str]:
    """Each name below the folder with its kind, mode and content; times left out."""
    seen = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent) / name
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                content = str(path.readlink())
            elif stat.S_ISREG(status.st_mode):
                content = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content = ""
            seen[str(path)] = f"{status.st_mode:o} {content}"
    return seen
