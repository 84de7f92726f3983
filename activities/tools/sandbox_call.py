"""Runs a tool's call in the sandbox of its workspace: a process of its own, in which only the workspace is there.

What comes back was written by a process that hostile content may have taken over: it is read as text from outside,
in bounded size, and nothing is decided by it. The workspace is held to a size: what lies in it is counted before a
call that may write and while it runs.
"""

import asyncio
import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

import longhaul
from longhaul.activities.process.container import NotStarted
from longhaul.activities.process.program_output import ClippedBytes
from longhaul.activities.process.program_run import Ending
from longhaul.activities.process.sandbox import CantConfine, Sandboxed, SandboxPolicy, run_sandboxed, sealed
from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.activities.tool import GivenUp, NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.agent.plain.values import OpenValue, sparse
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock
from longhaul.agent.values.spec.workspace import Seal

PAUSE_SECONDS = 1.0
PAUSES_PER_COUNT = 20
"""A folder whose count took a second is not counted again for twenty: that costs a twentieth of one core at most."""
LEAST_BYTES = 4_096
"""Each name counts as so much: so a count ends, however many empty files there are."""
REMEMBERED = 1_000


class Unmeasured(Exception):
    """A folder below can't be read, for whatever reason but that it is closed."""


@dataclass(frozen=True, slots=True)
class _Count:
    bytes: int
    good_until: float


class FolderSizes:
    """Those that this worker has counted."""

    def __init__(self) -> None:
        self._known: dict[Path, _Count] = {}

    async def held(self, root: Path, most_mb: int, runs: Coroutine[Any, Any, ToolOutput]) -> ToolOutput:
        """What the call came to. Raises ToolError where the folder holds more: nothing ran, or it was ended."""
        try:
            await self._refuse_more(root, most_mb, "Nothing ran")
        except ToolError:
            runs.close()
            raise
        running = asyncio.create_task(runs)
        try:
            while not running.done():
                known = self._known.get(root)
                pause = max(known.good_until - time.monotonic(), 0.0) + 0.01 if known is not None else PAUSE_SECONDS
                await asyncio.wait([running], timeout=pause)
                if not running.done():
                    await self._refuse_more(root, most_mb, "The call was ended, and may have done part of its work")
            return running.result()
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait([running])

    async def _refuse_more(self, root: Path, most_mb: int, what: str) -> None:
        try:
            size = await self._size(root, most_mb * 1_000_000)
        except Unmeasured as error:
            raise ToolError(f"{what}: how much the workspace holds can't be counted, for {error}") from None
        if size > most_mb * 1_000_000:
            raise ToolError(
                f"{what}: the workspace holds more than {most_mb} MB, which is all that its agent allows "
                "(workspace_mb). Calls that only read still run; a person has to remove files, or raise it"
            )

    async def _size(self, root: Path, most: int) -> int:
        known = self._known.get(root)
        if known is not None and time.monotonic() < known.good_until:
            return known.bytes
        started = time.monotonic()
        size = await asyncio.to_thread(size_of, root, most)
        now = time.monotonic()
        self._known.pop(root, None)
        # What is too large is counted again: a person may have made room.
        until = now + max((now - started) * PAUSES_PER_COUNT, PAUSE_SECONDS) if size <= most else 0.0
        self._known[root] = _Count(size, until)
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return size


def size_of(root: Path, most: int) -> int:
    """Bytes on the disk below a folder, links not followed; counted no further than above `most`.

    A closed folder of the worker's own user is opened for the moment of counting: else whoever closes one could hide
    files in it. One of somebody else that can't be read is left out, unless it can be written: nobody else fills it.
    Raises Unmeasured for all other folders that can't be read.
    """
    total = _Total(most)
    try:
        base = os.open(root, _FOLDER)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise Unmeasured(f"{str(root)[-200:]!r} can't be read ({error.strerror})") from None
    try:
        total.count(base)
    finally:
        os.close(base)
    return total.bytes


_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""Or it is a link by now."""
LONGEST_PATH = 3_000
"""Characters below one open folder, of four bytes at most; the kernel takes 4,095 bytes. A deeper folder is opened by
itself, and what lies in it counts from there."""


class _Total:
    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = 0
        self._twice = set[tuple[int, int]]()
        """Files of several names that were counted."""

    def count(self, base: int) -> None:
        waiting = ["."]
        while waiting and self.bytes <= self._most:
            waiting += self._count_folder(waiting.pop(), base)

    def _count_folder(self, path: str, base: int) -> list[str]:
        """Returns the folders in it that are to be counted from the same base."""
        try:
            folder = os.open(path, _FOLDER, dir_fd=base)
        except PermissionError:
            self._count_closed(path, base)
            return []
        except OSError as error:
            if error.errno in _GONE:
                return []
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        try:
            return self._names_in(folder, path)
        except PermissionError as error:  # it was closed just now
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        finally:
            os.close(folder)

    def _names_in(self, folder: int, path: str) -> list[str]:
        found = list[str]()
        with os.scandir(folder) as entries:
            for entry in entries:
                self.bytes += _bytes_of(entry, self._twice)
                if not entry.is_dir(follow_symlinks=False):
                    continue
                below = f"{path}/{entry.name}"
                if len(os.fsencode(below)) <= LONGEST_PATH:
                    found.append(below)
                else:
                    self._count_deep(entry.name, folder)
        return found

    def _count_deep(self, name: str, folder: int) -> None:
        try:
            base = os.open(name, os.O_PATH | _FOLDER, dir_fd=folder)
        except OSError as error:
            if error.errno in _GONE:
                return
            raise Unmeasured(f"{name[-200:]!r} can't be read ({error.strerror})") from None
        try:
            self.count(base)
        finally:
            os.close(base)

    def _count_closed(self, path: str, base: int) -> None:
        """Of its own user's, which is open meanwhile; one of somebody else is left out."""
        try:
            held = os.open(path, os.O_PATH | _FOLDER, dir_fd=base)
        except OSError:
            raise Unmeasured(f"{path[-200:]!r} can't be reached") from None
        try:
            status, name = os.fstat(held), Path(f"/proc/self/fd/{held}")
            if status.st_uid == os.geteuid():
                mode = stat.S_IMODE(status.st_mode)
                if mode & stat.S_IRWXU == stat.S_IRWXU:
                    raise Unmeasured(f"{path[-200:]!r} can't be read, although it is open")
                name.chmod(mode | stat.S_IRUSR | stat.S_IXUSR)
                try:
                    self.count(held)
                finally:
                    name.chmod(mode)
            elif os.access(name, os.W_OK):
                raise Unmeasured(f"{path[-200:]!r} is somebody else's, and can be written and not be read")
        except OSError as error:
            raise Unmeasured(f"{path[-200:]!r} can't be read ({error.strerror})") from None
        finally:
            os.close(held)


def _bytes_of(entry: os.DirEntry[str], twice: set[tuple[int, int]]) -> int:
    """`twice`: files of several names that were counted."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return 0
    if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
        if (key := (status.st_dev, status.st_ino)) in twice:
            return LEAST_BYTES
        twice.add(key)
    return max(status.st_blocks * 512, LEAST_BYTES)


START = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from longhaul.activities.tools.sandbox_program import main; main(sys.argv[1])"
)
"""Run with `-I`, and outside of the workspace: else a file of the repository named json.py would be imported as if it
were Python's own, by whatever tool is called."""
ASK, ANSWER = "ask", "answer"
ANSWER_CAP_BYTES = 64_000_000
_SHOWN = "--ro-bind"


class SandboxedAsk(OpenValue):
    """What the process in the sandbox is told."""

    module: str
    tool: str
    call_id: str
    arguments: dict[str, Any]
    analysis: dict[str, Any]
    attempt: int
    root: str
    cwd: str
    offloaded: tuple[str, ...]
    ruled: tuple[str, ...]
    closed: tuple[tuple[str, str], ...]
    opened: tuple[str, ...]
    secrets: dict[str, str]


class SandboxedAnswer(OpenValue):
    """And what it says."""

    how: Literal["output", "error", "undecided", "failed"]
    output: str | tuple[TextBlock | DataBlock, ...] = ""
    failed: bool = False
    metadata: dict[str, Any] = sparse({})


class Sandboxes:
    """Those of one worker."""

    def __init__(self, sandbox: SandboxPolicy | None = None) -> None:
        self._sandbox = sandbox or SandboxPolicy()
        self._sizes = FolderSizes()

    async def run(self, tool: Tool, call: ToolCall) -> ToolOutput:
        """As `Tool.run`, in the sandbox if the workspace is one and the tool can be found in it."""
        seal = call.place.seal
        if seal is None or seal.workspace_mb is None or tool.read_only or call.analysis.read_only:
            return await self._run_sandboxed(tool, call)
        return await self._sizes.held(call.place.root, seal.workspace_mb, self._run_sandboxed(tool, call))

    async def _run_sandboxed(self, tool: Tool, call: ToolCall) -> ToolOutput:
        if call.place.seal is None or not tool.sandboxed_from:
            return await tool.run(call)
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="longhaul-box-"))
        try:
            return await self._run(tool, call, call.place.seal, folder)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def _run(self, tool: Tool, call: ToolCall, seal: Seal, folder: Path) -> ToolOutput:
        place = call.place
        ask = SandboxedAsk(
            module=tool.sandboxed_from,
            tool=tool.name,
            call_id=call.id,
            arguments=call.arguments,
            analysis=call.analysis.model_dump(mode="json"),
            attempt=call.attempt,
            root=str(place.root),
            cwd=str(place.cwd),
            offloaded=tuple(map(str, place.offloaded)),
            ruled=place.ruled,
            closed=place.closed,
            opened=tuple(map(str, place.opened)),
            secrets=dict(call.secrets),
        )
        answer = await asyncio.to_thread(_prepared, folder, ask)
        try:
            said = ClippedBytes()
            sandboxed = await asyncio.to_thread(self._sandboxed, tool, call.place, seal, folder)
            environment = {
                **scrubbed(os.environ),
                "TMPDIR": "/tmp",  # noqa: S108  the sandbox's own
            }
            seconds = tool.timeout_seconds + 5
            ending = await run_sandboxed(sandboxed, folder, environment, seconds, said)
            found = await asyncio.to_thread(_answered, answer)
        except NotStarted as why:
            raise ToolError(f"nothing ran, for its sandbox could not be made: {why}") from None
        finally:
            os.close(answer)
        return await _output(tool, call, found, ending, said.text())

    def _sandboxed(self, tool: Tool, place: Place, seal: Seal, folder: Path) -> Sandboxed:
        shown = (*_programs(tool), *(one for one in place.offloaded if one.is_dir()))
        also = {str(folder): "--bind", **{str(one): _SHOWN for one in shown if one.exists()}}
        command = (sys.executable, "-I", "-B", "-c", START, str(folder), *_paths(place))
        try:
            sandboxed = sealed(self._sandbox, seal, command, place.root, folder, place.opened, also)
        except CantConfine as why:
            raise ToolError(str(why)) from None
        _refuse_own_python(place)
        return sandboxed


def _programs(tool: Tool) -> list[Path]:
    """Where Python lies, what it is made of here, and the tool's own package; of a module that is one file, that file:
    what lies beside it is the operator's."""
    ours = [folder.resolve() for folder in Path(longhaul.__path__[0]).iterdir() if folder.is_dir()]
    top = sys.modules.get(tool.sandboxed_from.partition(":")[0].partition(".")[0])
    own = [Path(one).resolve() for one in getattr(top, "__path__", ())]
    if top is not None and not own and getattr(top, "__file__", None):
        own = [Path(str(top.__file__)).resolve()]
    pythons = [Path(one) for prefix in (sys.prefix, sys.base_prefix) for one in (prefix, os.path.realpath(prefix))]
    return [*pythons, Path(longhaul.__path__[0]).resolve(), *ours, *own]


def _paths(place: Place) -> list[str]:
    """Where modules are looked for: nowhere where a tool may write, and in a folder that holds the workspace last."""
    written = _written(place)
    found = dict.fromkeys(os.path.realpath(one) for one in sys.path if one)
    kept = [one for one in found if not any(Path(one).is_relative_to(folder) for folder in written)]
    return sorted(kept, key=lambda one: any(Path(folder).is_relative_to(one) for folder in written))


def _written(place: Place) -> list[str]:
    return [os.path.realpath(one) for one in (place.root, *place.opened)]


def _refuse_own_python(place: Place) -> None:
    """Nothing can be run where a tool may have written what the worker itself is made of. Raises ToolError."""
    for ours in map(os.path.realpath, (sys.prefix, longhaul.__path__[0])):
        if any(Path(ours).is_relative_to(folder) for folder in _written(place)):
            raise ToolError(
                f"nothing ran: this workspace is a sandbox, and the worker's own Python lies in it ({ours!r}), where "
                "tools may write; start the worker from an environment outside of the workspace"
            )


def _prepared(folder: Path, ask: SandboxedAsk) -> int:
    """The descriptor from which the answer is read: the name is taken away before the tool begins."""
    (folder / ASK).write_text(ask.model_dump_json(), encoding="utf-8")
    return os.open(folder / ANSWER, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


def _answered(descriptor: int) -> SandboxedAnswer | None:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        said = file.read(ANSWER_CAP_BYTES + 1)
    try:
        return SandboxedAnswer.model_validate_json(said) if 0 < len(said) <= ANSWER_CAP_BYTES else None
    except ValidationError:
        return None


async def _output(tool: Tool, call: ToolCall, found: SandboxedAnswer | None, ending: Ending, said: str) -> ToolOutput:
    if found is None and said.startswith("bwrap: "):
        raise ToolError(f"nothing ran, for its sandbox could not be made: {said.strip()[:500]}")
    if found is None:
        raise GivenUp(
            f"{tool.name} ended in its sandbox without an answer ({ending.how} {ending.status}): {said[-500:].strip()} "
            "It may have done part of its work."
        )
    match found.how:
        case "output":
            return ToolOutput(found.output, found.failed, {**found.metadata, "sandbox": "all"})
        case "undecided":
            # What it found is not believed: it is looked at again from outside. Where nothing has changed there, a new
            # decision would come to the same, again and again: only in the sandbox it is not there.
            fresh, why = await tool.examine(call.arguments, call.place), str(found.output)[:1_000]
            if (fresh.cwd, fresh.paths, fresh.before) == (call.analysis.cwd, call.analysis.paths, call.analysis.before):
                raise ToolError(f"it is not in the sandbox that this workspace is, and nothing was done ({why})")
            raise NeedsDecision(fresh, why)
        case "error":
            raise ToolError(str(found.output))
        case "failed":
            return ToolOutput(str(found.output), failed=True)
