"""A search program for machines without ripgrep: the options that `Grep` uses, and output of the same shape.

Run as a process of its own (`python -I -S plain_grep.py …`, stdlib only), because a hostile expression can keep
`re` busy for hours, and only a process can be ended. Unlike ripgrep it does not read .gitignore, and the
expressions are Python's.
"""

# pathlib would double the time that the program takes to start.
# ruff: noqa: PTH113, PTH123, PTH202

import argparse
import os
import re
import sys
from collections.abc import Iterator

FILE_CAP_BYTES = 100_000_000
TYPES = {
    "c": "*.[ch]", "cpp": "*.{cpp,cc,cxx,hpp,hh,h}", "css": "*.{css,scss}", "go": "*.go", "html": "*.{html,htm}",
    "java": "*.java", "js": "*.{js,jsx,mjs,cjs}", "json": "*.json", "md": "*.{md,markdown}", "py": "*.{py,pyi}",
    "rust": "*.rs", "sh": "*.{sh,bash}", "sql": "*.sql", "toml": "*.toml", "ts": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt", "xml": "*.xml", "yaml": "*.{yaml,yml}",
}  # fmt: skip


_BRACES = {"{": "(?:", "}": ")", ",": "|"}


def main(arguments: list[str]) -> int:
    """Search and print; 0 = found, 1 = nothing found, 2 = the expression, a glob or the type is wrong."""
    chosen = _parsed(arguments)
    try:
        search = Search(chosen)
    except (re.error, KeyError, RecursionError, OverflowError) as error:
        print(f"regex parse error: {error}" if not isinstance(error, KeyError) else f"unrecognized file type: {error}")
        return 2
    found = False
    for path in search.files():
        for line in search.report(path):
            found = True
            sys.stdout.buffer.write(line.encode(errors="surrogateescape") + b"\n")
    return 0 if found else 1


class Search:
    """One search, set up."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self._chosen = chosen
        flags = (re.IGNORECASE if chosen.ignore_case else 0) | re.MULTILINE
        self._pattern = re.compile(chosen.regexp, flags | (re.DOTALL if chosen.multiline else 0))
        wanted = [*(chosen.glob or ()), *([TYPES[chosen.type]] if chosen.type else ())]
        self._globs = [_glob(glob) for glob in wanted] + [_glob(glob, re.IGNORECASE) for glob in chosen.iglob or ()]
        self._before = chosen.before if chosen.before is not None else chosen.context or 0
        self._after = chosen.after if chosen.after is not None else chosen.context or 0
        self._printed = False

    def files(self) -> Iterator[str]:
        """The files to search, in the order of their paths; links are not followed."""
        start = self._chosen.path
        if os.path.isfile(start):
            return iter((start,))
        return self._below(start if start.endswith("/") else start + "/", "")

    def _below(self, start: str, relative: str) -> Iterator[str]:
        try:
            entries = sorted(os.scandir(start + relative), key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            name = relative + entry.name
            if entry.is_dir(follow_symlinks=False):
                if self._kept(name + "/", folder=True):
                    yield from self._below(start, name + "/")
            elif entry.is_file(follow_symlinks=False) and self._kept(name, folder=False):
                yield start + name

    def _kept(self, name: str, *, folder: bool) -> bool:
        """As in ripgrep the last glob that matches decides; a file that none chooses is left out if one could."""
        for wanted, pattern in reversed(self._globs):
            if pattern.fullmatch(name) or (folder and pattern.fullmatch(name.removesuffix("/"))):
                return wanted
        return folder or not any(wanted for wanted, _ in self._globs)

    def report(self, path: str) -> Iterator[str]:
        """What is printed for one file."""
        text = _text(path)
        if text is None:
            return
        lines = text.removesuffix("\n").split("\n")
        hits = self._hits(text, lines)
        if not hits:
            return
        if self._chosen.files_with_matches:
            yield path
        elif self._chosen.count:
            yield f"{path}:{len(hits)}"
        else:
            yield from self._content(path, lines, hits)

    def _hits(self, text: str, lines: list[str]) -> set[int]:
        if not self._chosen.multiline:
            return {number for number, line in enumerate(lines) if self._pattern.search(line)}
        hits: set[int] = set()
        for match in self._pattern.finditer(text):
            first = text.count("\n", 0, match.start())
            hits.update(range(first, min(len(lines), first + match[0].removesuffix("\n").count("\n") + 1)))
        return hits

    def _content(self, path: str, lines: list[str], hits: set[int]) -> Iterator[str]:
        shown = {near for hit in hits for near in range(hit - self._before, hit + self._after + 1)}
        previous = None
        for number in sorted(shown & set(range(len(lines)))):
            apart = self._printed if previous is None else number > previous + 1
            if apart and (self._before or self._after):
                yield "--"
            previous, self._printed = number, True
            mark = ":" if number in hits else "-"
            prefix = f"{path}{mark}" + (f"{number + 1}{mark}" if self._chosen.line_number else "")
            yield prefix + self._cut(lines[number].removesuffix("\r"))

    def _cut(self, line: str) -> str:
        most = self._chosen.max_columns
        return line if len(line) <= most else f"{line[:most]} [... omitted end of long line]"


def _parsed(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for ignored in ("no-config", "no-ignore", "no-messages", "no-heading", "hidden", "with-filename"):
        parser.add_argument(f"--{ignored}", action="store_true")
    parser.add_argument("--max-columns-preview", action="store_true")
    for ignored in ("color", "sort"):
        parser.add_argument(f"--{ignored}")
    for flag in ("ignore-case", "multiline", "multiline-dotall", "files-with-matches", "count", "no-line-number"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--line-number", action="store_true")
    parser.add_argument("--max-columns", type=int, default=500)
    for option, name in (("-A", "after"), ("-B", "before"), ("-C", "context")):
        parser.add_argument(option, dest=name, type=int)
    parser.add_argument("--type")
    parser.add_argument("--glob", action="append")
    parser.add_argument("--iglob", action="append")
    parser.add_argument("--regexp", required=True)
    parser.add_argument("path")
    return parser.parse_args(arguments)


def _text(path: str) -> str | None:
    """The file as text; None when it is binary, too large or can't be read."""
    try:
        if os.path.getsize(path) > FILE_CAP_BYTES:
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    return None if b"\0" in data[:8192] else data.decode(errors="replace")


def _glob(glob: str, flags: int = 0) -> tuple[bool, re.Pattern[str]]:
    """Whether the glob chooses (else it leaves out), and the expression for relative paths."""
    wanted, body = not glob.startswith("!"), glob.removeprefix("!")
    rooted = "/" in body.rstrip("/")
    pattern = "" if rooted else "(?:.*/)?"
    parts = re.findall(r"\*\*/|/\*\*$|\*+|\?|\[!?\]?[^\]]*\]|\{|\}|,|.", body.removeprefix("/"), re.DOTALL)
    depth = 0
    for part in parts:
        depth += (part == "{") - (part == "}")
        pattern += _translated(part, depth)
    return wanted, re.compile(pattern, flags | re.DOTALL)


def _translated(part: str, depth: int) -> str:
    match part:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "?":
            return "[^/]"
        case "{" | "}" | ",":
            return _BRACES[part] if depth or part == "}" else re.escape(part)
        case _ if part.startswith("*"):
            return "[^/]*"
        case _ if len(part) > 2 and part.startswith("["):
            return part.replace("[!", "[^", 1).replace("\\", "\\\\")
        case _:
            return re.escape(part)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
