"""Describes a program's flags, and reads a command's arguments by them.

Flags are written as words: `abc` = the short flags -a -b -c, `n=` = -n takes a value, `f@` = its value is a path,
`u?` = it may have a value attached. Long flags likewise: `color?`, `lines=`, `files0-from@`. A flag that is not
written down is not proven: GNU abbreviations (`--outp`) included.

Little languages within arguments: find's expression, sed's script, jq's filter, awk's program. Only plain forms are
proven.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from longhaul.activities.shell.patterns import MARK
from longhaul.agent.plain.text import names

_FIND_TESTS: dict[str, int] = {
    **dict.fromkeys(
        names(
            "! ( ) -a -o -and -or -not , -print -print0 -ls -prune -quit -true -false -empty -readable -writable"
            " -executable"
            " -depth -d -daystart -mount -xdev -noleaf -nouser -nogroup -warn -nowarn -ignore_readdir_race"
        ),
        0,
    ),
    **dict.fromkeys(
        names(
            "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -maxdepth"
            " -mindepth"
            " -mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -links -inum -lname -ilname"
            " -printf -fstype"
            " -used -context"
        ),
        1,
    ),
}
_FIND_REFERENCES = frozenset({"-newer", "-anewer", "-cnewer", "-samefile", "-newermt"})


def find_operands(arguments: tuple[str, ...]) -> tuple[str, ...] | None:
    """The paths that `find` reads; None when its expression may run, write or delete something."""
    paths: list[str] = []
    at = 0
    while at < len(arguments) and arguments[at] == "-P":
        at += 1
    while at < len(arguments) and arguments[at][:1] not in ("-", "(", "!", ","):
        paths.append(arguments[at])
        at += 1
    references: list[str] = []
    while at < len(arguments):
        word = arguments[at]
        if arguments[at + 1 : at + 2] and arguments[at + 1].startswith(MARK):
            return None
        if word in _FIND_REFERENCES and at + 1 < len(arguments):
            references.extend(() if word == "-newermt" else (arguments[at + 1],))
            at += 2
            continue
        if word not in _FIND_TESTS or at + _FIND_TESTS[word] >= len(arguments):
            return None
        at += 1 + _FIND_TESTS[word]
    return tuple(paths or ["."]) + tuple(references)


_ADDRESS = r"(?:\d+|\$|/[^/\\\n\[\]]*/)"
_PRINT = re.compile(rf"(?:{_ADDRESS}(?:,(?:{_ADDRESS}|\+\d+))?!?)?\s*[pdq=]", re.ASCII)
_SUBSTITUTE_FLAGS = re.compile(r"[gIip0-9]*", re.ASCII)


def sed_script_is_plain(script: str) -> bool:
    """`10,20p`, `/x/d` and `s/a/b/g` with their like, `;` between them; never `e`, `w`, `r` or labels."""
    if _is_substitution(script):
        return True
    return all(_PRINT.fullmatch(part.strip()) for part in script.split(";")) and "\n" not in script


def _is_substitution(script: str) -> bool:
    """One `s`: its delimiter stands three times and is never escaped, so that sed can't split it otherwise."""
    address = re.match(rf"{_ADDRESS}(?:,{_ADDRESS})?", script)
    body = script[address.end() :] if address else script
    if len(body) < 4 or body[0] != "s" or body[1] not in "/|#,@:" or "\n" in body:
        return False
    parts = body[2:].split(body[1])
    if len(parts) != 3 or any((len(part) - len(part.rstrip("\\"))) % 2 for part in parts):
        return False
    return _SUBSTITUTE_FLAGS.fullmatch(parts[2]) is not None


_JQ_REACHES_OUT = re.compile(r"env|ENV|include|import|input_filename|\$__|debug|stderr|halt|getpath/|modulemeta")


def jq_filter_is_plain(text: str) -> bool:
    """No modules and no environment: `$ENV` and `env` would print the secrets of the worker."""
    return _JQ_REACHES_OUT.search(text) is None


_AWK_ITEM = r'(?:\$(?:\d+|NF)|NR|NF|"[^"\\\n]*")'
_AWK_TEST = rf"(?:/[^/\\\n\[\]]+/|(?:\$\d+|\$?NF|NR)[ ]*(?:[=!]=|[<>]=?)[ ]*{_AWK_ITEM[:-1]}|\d+))"
_AWK_PRINT = rf"\{{[ ]*print(?:[ ]*{_AWK_ITEM}(?:[ ]*,[ ]*{_AWK_ITEM}|[ ]*{_AWK_ITEM})*)?[ ]*;?[ ]*\}}"
_AWK = re.compile(rf"{_AWK_TEST}|(?:{_AWK_TEST})?[ ]*{_AWK_PRINT}", re.ASCII)


def awk_program_is_plain(text: str) -> bool:
    """One `/x/ {print $1, "b"}`: fields, their number, the line's and strings. What could write, run or read is said in
    words and signs that it does not have."""
    return _AWK.fullmatch(text) is not None


MANY = 1000
Operands = Literal["paths", "pattern", "text", "none", "plus", "jq", "git"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a proven command touches, as the words name it."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    here: bool = False
    """Reads the working directory without naming it."""
    moves: bool = False
    """It may remove names, or put links in the place of some."""
    no_folders: bool = False
    """Holds only while none of what it reads is a folder."""
    folder: str = ""
    """Where the program goes first, if not to where the shell is: all other paths begin there."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Known flags by name, each with what follows it: `` nothing, `=` a value, `@` a path, `?` an attached value."""

    short: dict[str, str] = field(default_factory=dict)
    long: dict[str, str] = field(default_factory=dict)


def flags(short: str = "", long: str = "") -> Flags:
    known: dict[str, str] = {}
    for token in short.split():
        known.update({token[0]: token[1]} if token[1:] in ("=", "@", "?") else dict.fromkeys(token, ""))
    names = {token.rstrip("=@?"): token[len(token.rstrip("=@?")) :] for token in long.split()}
    return Flags(known, names)


@dataclass(frozen=True, slots=True)
class Program:
    flags: Flags
    operands: Operands = "paths"
    most: int = MANY
    """How many operands are proven; a second one of `uniq` would be written to."""
    digits: bool = False
    """`-20` is a number of lines."""
    plain: bool = False
    """It reads its arguments in a way of its own: each option is a word by itself, with its value in the next one, and
    all of them stand before the operands. So written, every reading agrees."""
    here: bool = False
    """It looks through the folder it stands in when nothing is named."""
    no_folders: bool = False
    """Of a folder it would read what lies there, through links too."""


@dataclass(frozen=True, slots=True)
class Arguments:
    operands: tuple[str, ...]
    paths: tuple[str, ...]
    """Values of flags that name paths."""
    values: tuple[tuple[str, str], ...]
    given: frozenset[str]


def read_arguments(program: Program, arguments: tuple[str, ...]) -> Arguments | None:
    """Flags and operands told apart as getopt does; None when a flag is not known."""
    operands: list[str] = []
    values: list[tuple[str, str, str]] = []
    given: set[str] = set()
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        if word == "--" and not program.plain:
            operands.extend(arguments[at:])
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        if program.plain and (operands or "=" in word or (len(word) > 2 and word[1] != "-")):
            return None
        if program.digits and word[1:].isdecimal() and word.isascii():
            continue
        step = _flag(program.flags, word, arguments[at] if at < len(arguments) else None, values, given)
        if step is None:
            return None
        at += step
    paths = tuple(value for _, value, kind in values if kind == "@")
    return Arguments(tuple(operands), paths, tuple((name, value) for name, value, _ in values), frozenset(given))


def _flag(
    known: Flags, word: str, following: str | None, values: list[tuple[str, str, str]], given: set[str]
) -> int | None:
    """Reads one flag word; gives how many further words it took, None when it is not known."""
    read = _long(known, word) if word.startswith("--") else _short(known, word)
    if read is None:
        return None
    names, kind, attached = read
    given.update(names)
    if kind == "" or (kind == "?" and attached is None):
        return 0
    value = following if attached is None else attached
    if value is None or value.startswith(MARK):
        return None
    values.append((names[-1], value, kind))
    return 1 if attached is None else 0


FlagWord = tuple[list[str], str, str | None]
"""Names of the flags in one word, what follows the last one, and the value attached to it."""


def _long(known: Flags, word: str) -> FlagWord | None:
    name, equals, value = word[2:].partition("=")
    kind = known.long.get(name)
    if kind is None or (equals and kind == ""):
        return None
    return [name], kind, value if equals else None


def _short(known: Flags, word: str) -> FlagWord | None:
    names: list[str] = []
    for index, letter in enumerate(word[1:], start=2):
        kind = known.short.get(letter)
        if kind is None:
            return None
        names.append(letter)
        if kind:
            return names, kind, word[index:] or None
    return names, "", None


def prove(program: Program, arguments: tuple[str, ...]) -> Proof | None:
    read = read_arguments(program, arguments)
    if read is None or len(read.operands) > program.most:
        return None
    if program.most < MANY and any(operand.startswith(MARK) for operand in read.operands):
        return None
    proof = _by_operands(program, read)
    return replace(proof, no_folders=True) if proof is not None and program.no_folders else proof


def _by_operands(program: Program, read: Arguments) -> Proof | None:
    operands, paths = read.operands, read.paths
    match program.operands:
        case "none":
            return Proof(paths) if not operands else None
        case "text":
            return Proof(paths)
        case "plus":
            return Proof(paths) if all(operand.startswith("+") for operand in operands) else None
        case "pattern" | "jq":
            # The first operand is an expression, unless a flag has given one.
            is_filter = program.operands == "jq"
            here = program.here or not read.given.isdisjoint(_GOES_BELOW)
            if not is_filter and read.given & {"e", "regexp", "f", "file", "files", "type-list"}:
                return Proof(read.paths + read.operands, here=here and not read.operands)
            script, files = "".join(read.operands[:1]), read.operands[1:]
            if script.startswith(MARK) or (is_filter and not (read.operands and jq_filter_is_plain(script))):
                return None
            return Proof(read.paths + files, here=here and not is_filter and not files)
        case "git":
            return Proof(paths + tuple(operand for operand in operands if operand), here=True)
        case "paths":
            named = tuple(operand for operand in operands if operand != "-")
            return Proof(paths + named, here=program.here and not operands)


_GOES_BELOW = frozenset({"r", "R", "recursive", "d", "directories"})
"""Of `grep`: without a file it reads the folder it stands in, else its input."""
