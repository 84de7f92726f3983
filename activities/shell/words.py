"""Shell words: a strict splitter of its own, beside the grammar, and what quotes and patterns make of one word.

The grammar that `activities.shell.tree` uses and bash do not always agree where a word ends. A line counts as read only
when two independent readings, that grammar and `split`, find the same words.

Lists in braces, `src/{a,b}.py`: the words that bash makes of one, before it reads any of them.

Only plain ones are expanded: no quotes, no escapes and no variables anywhere in the word, where bash's own order
would have to be followed; no ranges (`{1..9}`), and no braces that stand for themselves.
"""

import os
import re
import shutil
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path

from longhaul.agent.plain.text import names

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
        self._started: int | None = None

    def end_word(self) -> None:
        if self._started is not None:
            self.groups[-1].append(self.line[self._started : self.at])
        self._started = None

    def step(self) -> None:
        """Take one separator, redirection, comment or piece of a word."""
        char, redirect = self.line[self.at], REDIRECT.match(self.line, self.at)
        if redirect is not None:
            if self._started is not None and _SETS_A_VARIABLE.fullmatch(self.line[self._started : self.at]):
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
        elif char == "#" and self._started is None:
            found = self.line.find("\n", self.at)
            self.at = len(self.line) if found < 0 else found
        else:
            self._take_piece()

    def _take_piece(self) -> None:
        if not self.line.startswith("\\\n", self.at):
            self._started = self.at if self._started is None else self._started
        elif self._started is not None:
            raise Unreadable("a line continuation within a word")
        self.at += _piece(self.line, self.at)


def _piece(line: str, at: int) -> int:
    """How many characters the quoted or plain piece of a word at `at` takes."""
    if line[at] == "'":
        start = at + 1
        found = line.find("'", start)
        if found < 0:
            raise Unreadable("a quote that is not closed")
        return found + 1 - at
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


def read_word(raw: str) -> Word:
    """The word that `raw` stands for. Raises Unreadable for expansions other than `$?`, `~`, file patterns, and `$HOME`
    at its beginning."""
    if started := _HOME.match(raw):
        # `"$HOME/x"` and `$HOME/x`, as far as the home folder's name is one word and no pattern.
        if not _PLAIN_HOME.fullmatch(os.environ.get("HOME", "")):
            raise Unreadable("a variable")
        word = read_word(started[1] + raw[started.end() :])
        if word.pattern or word.brackets or word.text[:1] not in ("", "/"):
            raise Unreadable("a variable")
        return replace(word, text=f"~{word.text}", tilde=True)
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


MAX_WORDS = 64
MAX_PIECES = 100
_PLAIN = re.compile(r"(?:--?[a-z-]+=)?[\w./@%:*?+,{}-]+", re.ASCII)
"""`--include=*.{ts,tsx}` is a word like others; `name={a,b}` may be an assignment, which bash does not expand."""
_PIECE = re.compile(r"[{},]|[^{},]+")


def braced(raw: str) -> list[str]:
    """The raw words that bash puts in the place of `raw`, in its order; `[raw]` for one that is not plain.

    Raises Unreadable for braces that this reading does not understand.
    """
    if not is_brace_expansion(raw) or not _PLAIN.fullmatch(raw):
        return [raw]
    pieces = _PIECE.findall(raw)
    words = _sequence(pieces, inside=False) if len(pieces) <= MAX_PIECES else []
    if pieces or not all(words):
        # An empty word is none for bash.
        raise Unreadable("a brace expansion")
    return words


def _sequence(pieces: list[str], *, inside: bool) -> list[str]:
    """Takes pieces up to a `,` or `}` of the list that is around them, or up to the end."""
    words = [""]
    while pieces and not (inside and pieces[0] in ",}"):
        piece = pieces.pop(0)
        if piece in ",}":
            raise Unreadable("a brace expansion")
        ends = _list(pieces) if piece == "{" else [piece]
        if len(words) * len(ends) > MAX_WORDS:
            raise Unreadable("a brace expansion")
        words = [start + end for start in words for end in ends]
    return words


def _list(pieces: list[str]) -> list[str]:
    """Takes what stands behind a `{` with its `}`. A list has at least two members; a range or `{}` has one."""
    members: list[list[str]] = []
    end = ","
    while end == ",":
        members.append(_sequence(pieces, inside=True))
        end = pieces.pop(0) if pieces else ""
    if end != "}" or len(members) < 2:
        raise Unreadable("a brace expansion")
    return [word for member in members for word in member]


_SYSTEM = ("/usr/", "/bin/", "/sbin/")
_NATIVE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How programs begin that the machine itself runs: of Linux, and of macOS for one processor and for several."""
_VERSION_MANAGERS = names("mise rtx asdf volta volta-shim proto proto-shim fnm vfox aqua aqua-proxy rustup shim")


def at_home(word: Word) -> str:
    return home_written_out(word.text) if word.tilde else word.text


def home_written_out(text: str) -> str:
    """`text` with a leading `~` as the shell replaces it."""
    if text != "~" and not text.startswith("~/"):
        return text
    return (os.environ.get("HOME") or Path("~").expanduser().as_posix()) + text[1:]


def folders_with(program: str) -> list[str]:
    """Those of PATH that have a program of this name."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [folder for folder in folders if folder.startswith("/") and os.path.lexists(f"{folder}/{program}")]


def is_of_the_system(program: str) -> bool:
    """Whether PATH leads to a program of the machine's own folders that is no script: it looks for no other one."""
    found = shutil.which(program) or ""
    real = os.path.realpath(found)
    return found.startswith(_SYSTEM) and real.startswith(_SYSTEM) and _is_native(real)


def chooses_by_folder(program: str) -> bool:
    """Whether PATH may lead to a version manager, which runs what files of the folder it stands in name: a script from
    outside of the machine's own folders, or a link to a manager."""
    found = shutil.which(program) or ""
    real = os.path.realpath(found)
    if not found or os.path.basename(real) in _VERSION_MANAGERS:  # noqa: PTH119  a text alone
        return bool(found)
    return not (found.startswith(_SYSTEM) and real.startswith(_SYSTEM)) and not _is_native(real)


def _is_native(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(4) in _NATIVE
    except OSError:
        return False


def lies_in(folder: str, root: Path) -> bool:
    """As it is spelt, or where it leads now."""
    return Path(folder).is_relative_to(root) or Path(os.path.realpath(folder)).is_relative_to(root)
