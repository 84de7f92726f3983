"""The tool `Glob`: files by name, newest first."""

import fnmatch
import heapq
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longhaul.activities.process.threads import in_thread
from longhaul.activities.shell.paths import in_kernel_room, is_as_decided, reading_fact, resolve
from longhaul.activities.shell.search_exclusions import closed_patterns
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.diff import visible_line
from longhaul.activities.tools.grep import VERSION_CONTROL
from longhaul.agent.permission.call_facts import CallFacts
from longhaul.agent.permission.rule_matching import path_matches
from longhaul.agent.values.conversation.tools import Effect

RESULTS_CAP = 1_000
TIMEOUT_SECONDS = 30.0
PATTERN_CAP = 1_000
ALTERNATIVES_CAP = 64

DESCRIPTION = f"""\
Finds files by a pattern of their names, the most recently changed first (at most {RESULTS_CAP}).

- `*` and `?` stay within one name, `**` crosses folders, `[abc]` and `{{py,toml}}` choose: "src/**/*.{{ts,tsx}}".
- Hidden files are found too; version control folders are left out, and linked folders are not entered.
- Paths are shown relative to the working directory when they are below it."""

INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "maxLength": PATTERN_CAP, "description": "The pattern."},
        "path": {"type": "string", "description": "Folder to search; the working directory if not given."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Where:
    """A search, made out."""

    base: Path
    """Resolved folder in which it starts."""
    folder: str
    """The same as the call names it."""
    patterns: tuple[tuple[str, ...], ...]
    """The alternatives, each cut into the names of its parts."""


class Glob(Tool):
    """Finds files; never above its base, because `..` is refused and links are not followed."""

    boxed_from = __name__
    name = "Glob"
    description = DESCRIPTION
    effect = Effect.READ
    concurrency_safe = True
    read_only = True
    quick = True
    timeout_seconds = TIMEOUT_SECONDS + 30
    input_schema = INPUT_SCHEMA

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallFacts:
        return await in_thread(lambda _: _facts(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda stop: _found(call, stop))


def _facts(arguments: dict[str, Any], place: Place) -> CallFacts:
    try:
        where = _where(arguments, place)
        fact = reading_fact(where.folder, where.base, place)
    except ToolError as error:
        return CallFacts(cwd=str(place.cwd), arguments_error=str(error))
    return CallFacts(cwd=str(place.cwd), read_only=True, paths=(fact,))


def _where(arguments: dict[str, Any], place: Place) -> Where:
    """Raises ToolError for a pattern that climbs (`..`), also as an alternative in braces."""
    pattern, folder = arguments["pattern"], arguments.get("path") or "."
    parts = pattern.split("/")
    if pattern.startswith("/"):
        # An absolute pattern starts where its first wildcard is; only that folder counts for permission.
        fixed = next((index for index, part in enumerate(parts[:-1]) if re.search(r"[*?\[{]", part)), len(parts) - 1)
        folder, parts = "/".join(parts[:fixed]) or "/", parts[fixed:]
    patterns = tuple(
        tuple(part for part in alternative.split("/") if part not in ("", "."))
        for alternative in alternatives("/".join(parts))
    )
    if any(".." in names for names in patterns):
        raise ToolError(f"pattern: {pattern[:200]!r} contains `..`; name the folder to search in `path`")
    return Where(resolve(folder, place), folder, patterns)


def alternatives(pattern: str) -> list[str]:
    """`a.{b,c}` → `a.b`, `a.c`; nested braces too. Raises ToolError above ALTERNATIVES_CAP."""
    waiting, done = [pattern], []
    while waiting:
        text = waiting.pop()
        innermost = re.search(r"\{([^{},]*+(?:,[^{},]*+)++)\}", text)
        if innermost is None:
            done.append(text)
        else:
            choices = innermost[1].split(",")
            waiting += [text[: innermost.start()] + choice + text[innermost.end() :] for choice in choices]
        if len(waiting) + len(done) > ALTERNATIVES_CAP:
            raise ToolError(f"pattern: the braces stand for more than {ALTERNATIVES_CAP} patterns; search in steps")
    return list(dict.fromkeys(done))


def _found(call: ToolCall, stop: threading.Event) -> ToolOutput:
    where = _where(call.arguments, call.place)
    if not is_as_decided(call.facts, where.folder, where.base, call.place):
        raise NeedsDecision(_facts(call.arguments, call.place), f"the search would now go through {str(where.base)!r}")
    if in_kernel_room(where.base) or not where.base.is_dir():
        raise ToolError(f"{str(where.base)!r} is not a folder that can be searched")
    root = str(call.place.root)
    closed = closed_patterns(call.place, where.base)
    walk = GlobWalk(where, stop, lambda path: any(path_matches(pattern, path, root) for pattern in closed))
    newest = heapq.nlargest(RESULTS_CAP, walk.files())
    remarks = []
    if walk.count > RESULTS_CAP:
        remarks.append(f"[{walk.count} files match; these are the {RESULTS_CAP} newest]")
    if walk.out_of_time:
        remarks.append(f"[stopped after {TIMEOUT_SECONDS:.0f} s: not everything was searched; choose a smaller path]")
    lines = [_shown(path, call.place) for _, path in newest]
    return ToolOutput("\n".join([*(lines or ["No files match."]), *remarks]), failed=walk.out_of_time)


class GlobWalk:
    """Goes down only where a pattern can still match: states are positions in the patterns, so no pattern is slow."""

    def __init__(self, where: Where, stop: threading.Event, is_closed: Callable[[str], bool]) -> None:
        self._where, self._is_closed = where, is_closed
        self._stop = stop
        self._give_up = time.monotonic() + TIMEOUT_SECONDS
        self._names = [
            [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]
            for names in where.patterns
        ]
        self.count = 0
        self.out_of_time = False

    def files(self) -> Iterator[tuple[int, str]]:
        """(time of change in ns, path) of each file that matches, in no order."""
        start = self._closed({(index, 0) for index in range(len(self._names))})
        waiting = [(str(self._where.base), start)]
        while waiting and not self._must_stop():
            folder, states = waiting.pop()
            for entry in _entries(folder):
                after = self._step(states, entry.name)
                if not after or self._is_closed(entry.path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in VERSION_CONTROL:
                        waiting.append((entry.path, after))
                elif any(position == len(self._names[index]) for index, position in after):
                    self.count += 1
                    yield _changed_at(entry), entry.path

    def _must_stop(self) -> bool:
        self.out_of_time = self._stop.is_set() or time.monotonic() > self._give_up
        return self.out_of_time

    def _step(self, states: frozenset[tuple[int, int]], name: str) -> frozenset[tuple[int, int]]:
        after = set()
        for index, position in states:
            if position == len(self._names[index]):
                continue
            pattern = self._names[index][position]
            if pattern is None:
                after.add((index, position))
            elif pattern.match(name):
                after.add((index, position + 1))
        return self._closed(after)

    def _closed(self, states: set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """With the states that `**` reaches by standing for no folder at all. At the end it stands for any file."""
        waiting = list(states)
        for index, position in waiting:
            names = self._names[index]
            if position < len(names) and names[position] is None:
                waiting.append((index, position + 1))
        return frozenset(waiting)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _changed_at(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _shown(path: str, place: Place) -> str:
    below = os.path.relpath(path, place.cwd) if Path(path).is_relative_to(place.cwd) else path
    return visible_line(os.fsencode(below).decode(errors="replace"))
