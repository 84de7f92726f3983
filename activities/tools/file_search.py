"""The tools `Grep` and `Glob`: ripgrep with options of ours, and files by name, newest first."""

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

from longhaul.activities.process.program_run import find_ripgrep, run_supervised
from longhaul.activities.process.threads import in_thread
from longhaul.activities.repository import has_second_name
from longhaul.activities.shell.paths import (
    anchored,
    as_search_globs,
    closed_patterns,
    in_kernel_room,
    is_as_decided,
    is_offloaded,
    reading_use,
    resolve,
)
from longhaul.activities.tool import NeedsDecision, Place, Tool, ToolCall, ToolError, ToolOutput
from longhaul.activities.tools.file_changes import visible_line
from longhaul.agent.permission.call_analysis import CallAnalysis, secret_globs
from longhaul.agent.permission.rule_matching import path_matches
from longhaul.agent.values.conversation.tools import Effect

TIMEOUT_SECONDS = 30.0
DEFAULT_HEAD_LIMIT = 250
CHARACTER_CAP = 100_000
COLUMNS_CAP = 500
PATTERN_CAP_BYTES = 20_000
VERSION_CONTROL = (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")

GREP_DESCRIPTION = f"""\
Searches file contents for a regular expression (Rust syntax; escape braces to find them).

- `output_mode`: `files_with_matches` (default) gives names, `content` gives lines, `count` gives lines per file.
- `-A`, `-B`, `-C` add lines after, before, around each match (content mode only).
- `glob` ("*.py", "src/**/*.ts") and `type` ("py", "rust") choose files. What .gitignore names, version control \
folders, and files that hold secrets (.env, keys) or have a second name (a hard link) are left out, unless `path` is \
that file; so is what a rule forbids.
- The first {DEFAULT_HEAD_LIMIT} output lines are returned; `head_limit` and `offset` page through the others.
- Lines are cut at {COLUMNS_CAP} characters.
- Paths are shown relative to the working directory when they are below it."""

GREP_INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "minLength": 1, "description": "The regular expression."},
        "path": {"type": "string", "description": "File or folder to search; the working directory if not given."},
        "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
        "glob": {"type": "string", "description": "Only files that match."},
        "type": {"type": "string", "pattern": "^[A-Za-z0-9_+-]+$", "description": "Only files of this type."},
        "-i": {"type": "boolean", "description": "Ignore case."},
        "-n": {"type": "boolean", "description": "Line numbers in content mode; true if not given."},
        "-A": {"type": "integer", "minimum": 0, "maximum": 1000, "description": "Lines after each match."},
        "-B": {"type": "integer", "minimum": 0, "maximum": 1000, "description": "Lines before each match."},
        "-C": {"type": "integer", "minimum": 0, "maximum": 1000, "description": "Lines around each match."},
        "multiline": {"type": "boolean", "description": "Matches may span lines, and . matches newlines."},
        "head_limit": {"type": "integer", "minimum": 0, "description": "At most so many output lines; 0 = all."},
        "offset": {"type": "integer", "minimum": 0, "description": "Leave out so many output lines first."},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class LineWindow:
    """Output lines from `offset` on, at most `limit` (0 = all) and CHARACTER_CAP characters; the others are dropped."""

    def __init__(self, offset: int, limit: int, below: str = "", shown: "ShownLines | None" = None) -> None:
        """`below`: how the paths begin that are shown without it."""
        self._skip, self._limit, self._below = offset, limit, below
        self._relative = shown
        self._rest = b""
        self._room = CHARACTER_CAP
        self.lines: list[str] = []
        self.names_files: bool | None = None
        """Whether the first line, dropped or not, begins as a path does; None = no line came."""
        self.total_bytes = 0
        self.full = False

    def add(self, chunk: bytes) -> None:
        self.total_bytes += len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        self._rest = self._rest[:CHARACTER_CAP]

    def _take(self, line: bytes) -> None:
        if self.names_files is None:
            self.names_files = line.startswith(b"/")
        shown = line if self._relative is None else self._relative.line(line)
        if shown is None:
            return
        if self._skip:
            self._skip -= 1
            return
        text = shown.decode(errors="replace").replace("\0", "�").removeprefix(self._below)
        self._room -= len(text) + 1
        if self._room < 0 or (self._limit and len(self.lines) == self._limit):
            self.full = True
        if not self.full:
            self.lines.append(text)


class ShownLines:
    """Which of the program's lines are shown, and how: none of a file with a second name, which may lie elsewhere.

    The program ends a path with NUL where more follows on its line. Of a file that it has just read its look at the
    disk is over at once.
    """

    def __init__(self, *, paths_alone: bool, numbers: bool) -> None:
        self._paths_alone, self._numbers = paths_alone, numbers
        self._last = (b"", True)
        self.left_out = 0
        """Files."""

    def line(self, line: bytes) -> bytes | None:
        """As it is shown; None: it is not."""
        path, nul, rest = line.partition(b"\0")
        if not nul:
            return line if not self._paths_alone or self._is_shown(path) else None
        if not self._is_shown(path):
            return None
        numbered = _NUMBERED.match(rest)
        if numbered is None:
            return b"%b:%b" % (path, rest)
        number = numbered[0] if self._numbers else b""
        return b"%b%b%b%b" % (path, numbered[2], number, rest[numbered.end() :])

    def _is_shown(self, path: bytes) -> bool:
        if path != self._last[0]:
            # What is no whole path is the end of a name with a line's end in it.
            whole = path.startswith(b"/") or self._paths_alone
            self._last = path, whole and not has_second_name(Path(os.fsdecode(path)))
            self.left_out += not self._last[1]
        return self._last[1]


_NUMBERED = re.compile(rb"([0-9]+)([:-])")


class Grep(Tool):
    """Finds text in files."""

    sandboxed_from = __name__
    name = "Grep"
    description = GREP_DESCRIPTION
    effect = Effect.READ
    concurrency_safe = True
    read_only = True
    quick = True
    timeout_seconds = TIMEOUT_SECONDS + 30
    input_schema = GREP_INPUT_SCHEMA

    def __init__(self, ripgrep: str | None = None) -> None:
        """`ripgrep`: the program's path. None = the one that is found when it runs: whoever names the tool for an agent
        may sit at another machine than the workers."""
        self._program = ripgrep

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return await in_thread(lambda _: _grep_analysis(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        cwd, words, in_folder = await in_thread(lambda _: _search_words(call))
        offset, limit = call.arguments.get("offset", 0), call.arguments.get("head_limit", DEFAULT_HEAD_LIMIT)
        paths_alone = call.arguments.get("output_mode", "files_with_matches") == "files_with_matches"
        shown = ShownLines(paths_alone=paths_alone, numbers=call.arguments.get("-n", True)) if in_folder else None
        window = LineWindow(offset, limit, f"{cwd}/" if cwd != Path("/") else "", shown)
        program = self._program or await in_thread(lambda _: find_ripgrep())
        if program is None:
            raise ToolError("there is no search program (rg) on this worker; find the files with Glob, and Read them")
        command = [program, *words]
        # It stands in `/`, from where globs count: what is left out is so wherever the search begins.
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        try:
            ending = await run_supervised(command, Path("/"), environment, TIMEOUT_SECONDS, window)
        except OSError as error:
            raise ToolError(f"the search could not be started in {str(cwd)!r}: {error.strerror}") from None
        left_out = shown.left_out if shown else 0
        text = "\n".join(window.lines)
        if ending.how == "exited" and ending.status not in (0, 1) and window.names_files is False:
            # With --no-messages all that is still said aloud is about the pattern, the glob or the type.
            wanted = call.arguments.get("type", "")
            remedy = f'; give "glob": "*.{wanted}" in place of the type' if "unrecognized file type" in text else ""
            raise ToolError(f"the search could not be made: {text[:2000]}{remedy}")
        remarks = []
        if ending.how == "timeout":
            remarks.append(
                f"[stopped after {TIMEOUT_SECONDS:.0f} s: not everything was searched; choose a smaller path]"
            )
        elif window.full:
            remarks.append(f"[more follows; go on with offset={offset + len(window.lines)}]")
        if left_out:
            remarks.append(
                f"[left out: {left_out} file(s) with a second name (a hard link); name one in `path` to search it]"
            )
        if not window.lines:
            remarks.insert(0, f"No matches after the first {offset} lines." if offset else "No matches.")
        return ToolOutput("\n".join([*window.lines, *remarks]), failed=ending.how == "timeout")


def _search_words(call: ToolCall) -> tuple[Path, list[str], bool]:
    """Where it searches from, what the program is told, and whether it goes through a folder. Looks at files, which may
    take for ever."""
    raw = call.arguments.get("path") or "."
    target = resolve(raw, call.place)
    if not is_as_decided(call.analysis, raw, target, call.place):
        raise NeedsDecision(
            _grep_analysis(call.arguments, call.place), f"the search would now go through {str(target)!r}"
        )
    if in_kernel_room(target) or (target.exists() and not target.is_dir() and not target.is_file()):
        raise ToolError(f"{str(target)!r} is neither a folder nor a regular file; it was not searched")
    if not target.exists():
        raise ToolError(f"{str(target)!r} does not exist")
    cwd = call.place.cwd if call.place.cwd.is_dir() else call.place.root
    # A .gitignore above the worker's data directory speaks of a project's files, not of what was offloaded.
    all_files = ("--no-ignore",) if is_offloaded(target, call.place) else ()
    closed = as_search_globs(closed_patterns(call.place, target))
    words = [*options(call.arguments, target, cwd, closed), *all_files, "--", str(target)]
    return cwd, words, target.is_dir()


def options(arguments: dict[str, Any], target: Path, cwd: Path, closed: list[str]) -> list[str]:
    """The search program's options; nothing of the model's can become one, or name a configuration to load."""
    pattern = arguments["pattern"]
    _refuse_impossible(pattern, arguments.get("glob", ""))
    mode = arguments.get("output_mode", "files_with_matches")
    chosen = ["--no-config", "--no-messages", "--hidden", "--color=never", "--no-heading", "--with-filename"]
    chosen += ["--sort=path", f"--max-columns={COLUMNS_CAP}", "--max-columns-preview"]
    in_folder = target.is_dir()
    if in_folder and mode != "files_with_matches":
        chosen.append("--null")  # as `ShownLines` reads it, and in content mode with the numbers of lines
    if mode == "content":
        chosen.append("--line-number" if in_folder or arguments.get("-n", True) else "--no-line-number")
        chosen += [f"{option}{arguments[option]}" for option in ("-A", "-B", "-C") if option in arguments]
    else:
        chosen.append("--files-with-matches" if mode == "files_with_matches" else "--count")
    if arguments.get("-i"):
        chosen.append("--ignore-case")
    if arguments.get("multiline"):
        chosen += ["--multiline", "--multiline-dotall"]
    if "type" in arguments:
        chosen.append(f"--type={arguments['type']}")
    if arguments.get("glob"):
        chosen += [f"--glob={anchored(glob, cwd)}" for glob in with_names_in_brackets(arguments["glob"], cwd)]
    if in_folder:
        # After the model's own glob: of two that match the later one counts.
        chosen += [f"--glob=!{folder}" for folder in VERSION_CONTROL]
        chosen += [f"--iglob=!{glob}" for glob in (*secret_globs(), *closed, "*\n*")]
    return [*chosen, f"--regexp={pattern}"]


def _grep_analysis(arguments: dict[str, Any], place: Place) -> CallAnalysis:
    try:
        target = resolve(arguments.get("path") or ".", place)
        fact = reading_use(arguments.get("path") or ".", target, place)
    except ToolError as error:
        return CallAnalysis(cwd=str(place.cwd), arguments_error=str(error))
    return CallAnalysis(cwd=str(place.cwd), read_only=True, paths=(fact,))


def with_names_in_brackets(glob: str, folder: Path) -> list[str]:
    """`glob` for the search program, with brackets that stand in the name of a file taken as they stand. Where that
    can't be known without a search, for a wildcard stands before them, it counts either way."""
    sign, body = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    names, above, known, either = list[str](), folder, "/" in body.rstrip("/"), False
    for name in body.lstrip("/").split("/"):
        known = known and name != ".." and not re.search(r"[*?{\\]", name)
        above /= name
        literal = "[" in name and (not known or os.path.lexists(above))
        names.append(name.replace("[", "[[]") if literal else name)
        either = either or (literal and not known)
        known = known and (literal or "[" not in name)
    read = f"{sign}{'/' if body.startswith('/') else ''}{'/'.join(names)}"
    return list(dict.fromkeys([glob, read] if either else [read]))


def _refuse_impossible(pattern: str, glob: str) -> None:
    for name, text in (("pattern", pattern), ("glob", glob)):
        if "\0" in text or re.search("[\ud800-\udfff]", text) or len(text.encode()) > PATTERN_CAP_BYTES:
            raise ToolError(f"{name}: give at most {PATTERN_CAP_BYTES} bytes of Unicode text without NUL characters")


RESULTS_CAP = 1_000
PATTERN_CAP = 1_000
ALTERNATIVES_CAP = 64

GLOB_DESCRIPTION = f"""\
Finds files by a pattern of their names, the most recently changed first (at most {RESULTS_CAP}).

- `*` and `?` stay within one name, `**` crosses folders, `[abc]` and `{{py,toml}}` choose: "src/**/*.{{ts,tsx}}".
- Where a name itself has brackets, as in "app/[slug]/page.tsx", that name is meant.
- Hidden files are found too; version control folders are left out, and linked folders are not entered.
- Paths are shown relative to the working directory when they are below it."""

GLOB_INPUT_SCHEMA: dict[str, Any] = {
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

    sandboxed_from = __name__
    name = "Glob"
    description = GLOB_DESCRIPTION
    effect = Effect.READ
    concurrency_safe = True
    read_only = True
    quick = True
    timeout_seconds = TIMEOUT_SECONDS + 30
    input_schema = GLOB_INPUT_SCHEMA

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return await in_thread(lambda _: _glob_analysis(arguments, place))

    async def run(self, call: ToolCall) -> ToolOutput:
        return await in_thread(lambda stop: _found(call, stop))


def _glob_analysis(arguments: dict[str, Any], place: Place) -> CallAnalysis:
    try:
        where = _where(arguments, place)
        fact = reading_use(where.folder, where.base, place)
    except ToolError as error:
        return CallAnalysis(cwd=str(place.cwd), arguments_error=str(error))
    return CallAnalysis(cwd=str(place.cwd), read_only=True, paths=(fact,))


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
    if not is_as_decided(call.analysis, where.folder, where.base, call.place):
        raise NeedsDecision(
            _glob_analysis(call.arguments, call.place), f"the search would now go through {str(where.base)!r}"
        )
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
    lines = [_relative(path, call.place) for _, path in newest]
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
        self._literal = {
            (index, position): re.compile(fnmatch.translate(name.replace("[", "[[]")))
            for index, names in enumerate(where.patterns)
            for position, name in enumerate(names)
            if "[" in name
        }
        """Brackets as they stand in names."""
        self.count = 0
        self.out_of_time = False

    def files(self) -> Iterator[tuple[int, str]]:
        """(time of change in ns, path) of each file that matches, in no order."""
        start = self._closed({(index, 0) for index in range(len(self._names))})
        waiting = [(str(self._where.base), start)]
        while waiting and not self._must_stop():
            folder, states = waiting.pop()
            try:
                with os.scandir(folder) as found:
                    entries = list(found)
            except OSError:
                entries = []
            literal = {
                state
                for state in states
                if (named := self._literal.get(state)) and any(named.match(entry.name) for entry in entries)
            }
            for entry in entries:
                after = self._step(states, entry.name, literal)
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

    def _step(
        self, states: frozenset[tuple[int, int]], name: str, literal: set[tuple[int, int]]
    ) -> frozenset[tuple[int, int]]:
        """`literal`: of which this folder has a name with the very brackets."""
        after = set()
        for index, position in states:
            if position == len(self._names[index]):
                continue
            state = (index, position)
            pattern = self._literal[state] if state in literal else self._names[index][position]
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


def _changed_at(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _relative(path: str, place: Place) -> str:
    below = os.path.relpath(path, place.cwd) if Path(path).is_relative_to(place.cwd) else path
    return visible_line(os.fsencode(below).decode(errors="replace"))
