"""Shell words: a strict splitter of its own, beside the grammar, and what quotes and patterns make of one word.

The grammar that `shell_tree` uses and bash do not always agree where a word ends. A line counts as read only
when two independent readings, that grammar and `split`, find the same words.
"""

import os
import re
import unicodedata
from dataclasses import dataclass, replace

REDIRECT = re.compile(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>\||>&|<|>")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_ESCAPED_IN_QUOTES = frozenset('$"\\`')
_HOME = re.compile(r"(\"?)\$HOME(?=[/\"]|$)")
_PLAIN_HOME = re.compile(r"(?:/[\w.-]+)+", re.ASCII)
_SETS_A_VARIABLE = re.compile(r"\{.+\}")
"""`{HOME}< x` and `{HOME[0]}< x` put a number into HOME."""
_KEEPS_TILDE = re.compile(r"[A-Za-z0-9@^}./_-]")
"""Behind these bash leaves a `~` as it is (`HEAD~1`); behind `=` and `:` it may put the home folder in its place."""


class Unreadable(Exception):
    """A word or line that this reading does not understand; the text is a short phrase that says why."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word after quote removal."""

    text: str
    pattern: bool = False
    """Has an unquoted `*` or `?`: file names take its place."""
    brackets: bool = False
    """Has an unquoted `[…]` pattern, which is not expanded here."""
    tilde: bool = False
    """Begins with an unquoted `~` that stands for the home directory, or with `$HOME`, which is read as one."""
    status: bool = False
    """Holds `$?`, left as it stands in `text`."""


def hidden_character(line: str) -> str:
    """The first character that a reader would not see for what it is, as `U+XXXX`; empty when there is none."""
    if line.isascii() and line.replace("\n", "").replace("\t", "").isprintable():
        return ""
    for char in line:
        if char not in "\n\t " and (unicodedata.category(char) in _HIDDEN or char.isspace()):
            return f"U+{ord(char):04X}"
    return ""


def split(line: str) -> list[list[str]]:
    """The raw words of each simple command, redirections among them. Raises Unreadable."""
    splitter = _Splitter(line)
    while splitter.at < len(line):
        splitter.step()
    splitter.end_word()
    return [group for group in splitter.groups if group]


class _Splitter:
    def __init__(self, line: str) -> None:
        self.line, self.at = line, 0
        self.groups: list[list[str]] = [[]]
        self._begun: int | None = None

    def end_word(self) -> None:
        if self._begun is not None:
            self.groups[-1].append(self.line[self._begun : self.at])
        self._begun = None

    def step(self) -> None:
        """Take one separator, redirection, comment or piece of a word."""
        char, redirect = self.line[self.at], REDIRECT.match(self.line, self.at)
        if redirect is not None:
            if self._begun is not None and _SETS_A_VARIABLE.fullmatch(self.line[self._begun : self.at]):
                raise Unreadable("a redirection that sets a variable")
            self.end_word()
            self.groups[-1].append(redirect.group())
            self.at = redirect.end()
        elif char in " \t\n;&|":
            self.end_word()
            self.at += 1
            if char not in " \t":
                self.groups.append([])
        elif char in "()`":
            raise Unreadable(f"{char!r} outside of quotes")
        elif char == "#" and self._begun is None:
            self.at = _until(self.line, "\n", self.at)
        else:
            self._take_piece()

    def _take_piece(self) -> None:
        if not self.line.startswith("\\\n", self.at):
            self._begun = self.at if self._begun is None else self._begun
        elif self._begun is not None:
            raise Unreadable("a line continuation within a word")
        self.at += _piece(self.line, self.at)


def _piece(line: str, at: int) -> int:
    """How many characters the quoted or plain piece of a word at `at` takes."""
    if line[at] == "'":
        return _closing(line, "'", at + 1) + 1 - at
    if line[at] == "\\":
        return 2
    if line[at] != '"':
        return 1
    end = at + 1
    while end < len(line) and line[end] != '"':
        end += 2 if line[end] == "\\" else 1
    if end >= len(line):
        raise Unreadable("a quote that is not closed")
    return end + 1 - at


def _until(line: str, char: str, start: int) -> int:
    found = line.find(char, start)
    return len(line) if found < 0 else found


def _closing(line: str, quote: str, start: int) -> int:
    found = line.find(quote, start)
    if found < 0:
        raise Unreadable("a quote that is not closed")
    return found


def read_word(raw: str) -> Word:
    """The word that `raw` stands for. Raises Unreadable for expansions other than `$?`, `~`, file patterns, and `$HOME`
    at its beginning."""
    if begun := _HOME.match(raw):
        return _at_home(raw[begun.end() :], begun[1])
    text: list[str] = []
    bare: list[str] = []
    status, at = False, 0
    while at < len(raw):
        if raw[at] == "~" and at and not _KEEPS_TILDE.match(raw[at - 1]):
            raise Unreadable("a `~` within a word")
        piece = raw[at : at + _piece(raw, at)]
        if piece == "$":
            piece = raw[at : at + _status_size(raw, at)]
            status = status or piece == "$?"
            text.append(piece)
        elif piece[0] == '"':
            inner, has_status = _in_quotes(piece[1:-1])
            status = status or has_status
            text.append(inner)
        else:
            text.append(_without_quotes(piece))
            bare.extend(() if piece[0] in "'\\" else piece)
        at += len(piece)
    return _checked("".join(text), "".join(bare), raw, has_status=status)


def _at_home(rest: str, quote: str) -> Word:
    """`"$HOME/x"` and `$HOME/x`, as far as the home folder's name is one word and no pattern."""
    if not _PLAIN_HOME.fullmatch(os.environ.get("HOME", "")):
        raise Unreadable("a variable")
    word = read_word(quote + rest)
    if word.pattern or word.brackets or word.text[:1] not in ("", "/"):
        raise Unreadable("a variable")
    return replace(word, text=f"~{word.text}", tilde=True)


def _without_quotes(piece: str) -> str:
    """The text of a single-quoted, escaped or plain piece."""
    if piece == "`":
        raise Unreadable("a command substitution")
    if piece[0] == "'":
        return piece[1:-1]
    if piece == "\\":
        raise Unreadable("a backslash at the end")
    if piece[0] == "\\":
        return "" if piece == "\\\n" else piece[1:]
    return piece


def _checked(text: str, bare: str, raw: str, *, has_status: bool) -> Word:
    """The word, unless what is special in its unquoted part `bare` is more than can be followed."""
    if is_brace_expansion(bare):
        raise Unreadable("a brace expansion")
    pattern = "*" in bare or "?" in bare
    wild = sum(text.replace("$?", "").count(char) for char in "*?[]")
    if pattern and (wild != sum(bare.count(char) for char in "*?[]") or wild > 8):
        raise Unreadable("a pattern with quotes")
    tilde = raw.startswith("~")
    if tilde and (text.split("/", 1)[0] != "~" or pattern):
        raise Unreadable("a `~` that names a user, or stands before a pattern")
    return Word(text, pattern, "[" in bare and "]" in bare, tilde, has_status)


def _in_quotes(inner: str) -> tuple[str, bool]:
    out: list[str] = []
    status = False
    at = 0
    while at < len(inner):
        char = inner[at]
        if char == "\\" and at + 1 < len(inner) and (inner[at + 1] in _ESCAPED_IN_QUOTES or inner[at + 1] == "\n"):
            out.append("" if inner[at + 1] == "\n" else inner[at + 1])
            at += 2
        elif char == "$":
            size = _status_size(inner, at)
            status = status or size == 2
            out.append(inner[at : at + size])
            at += size
        elif char == "`":
            raise Unreadable("a command substitution")
        else:
            out.append(char)
            at += 1
    return "".join(out), status


def _status_size(text: str, at: int) -> int:
    """2 for `$?`, 1 for a `$` that stands for itself."""
    following = text[at + 1 : at + 2]
    if following == "?":
        return 2
    if following == "" or following in " \t\n/.,:%|)=^+]":
        return 1
    raise Unreadable("a variable or other expansion")


def is_brace_expansion(unquoted: str) -> bool:
    """Whether there is a brace in it that bash may expand."""
    opened = unquoted.find("{")
    return opened >= 0 and ("," in unquoted[opened:] or ".." in unquoted[opened:])


def loosely(raw: str) -> str:
    """The word as well as can be told when it is not understood: for rules that deny, never for ones that allow."""
    try:
        return read_word(raw).text
    except Unreadable:
        return re.sub(r"\\\n|\$(?=['\"])|['\"\\]", "", raw)
