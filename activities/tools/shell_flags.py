"""How a program's flags are written down, and how a command's arguments are read by them.

Flags are written as words: `abc` = the short flags -a -b -c, `n=` = -n takes a value, `f@` = its value is a path,
`u?` = it may have a value attached. Long flags likewise: `color?`, `lines=`, `files0-from@`. A flag that is not
written down is not proven: GNU abbreviations (`--outp`) included.
"""

from dataclasses import dataclass, field
from typing import Literal

from activities.tools.shell_scripts import jq_filter_is_plain

Operands = Literal["paths", "pattern", "text", "none", "plus", "jq", "git"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a proven command touches, as the words name it."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    here: bool = False
    """Reads the working directory without naming it."""


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
    most: int = 1000
    """How many operands are proven; a second one of `uniq` would be written to."""
    digits: bool = False
    """`-20` is a number of lines."""


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
        if word == "--":
            operands.extend(arguments[at:])
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
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
    if value is None:
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
    operands, paths = read.operands, read.paths
    match program.operands:
        case "none":
            return Proof(paths) if not operands else None
        case "text":
            return Proof(paths)
        case "plus":
            return Proof(paths) if all(operand.startswith("+") for operand in operands) else None
        case "pattern":
            has_pattern = read.given & {"e", "regexp", "f", "file", "files", "type-list"}
            named = operands if has_pattern else operands[1:]
            return Proof(paths + named, here=not named)
        case "jq":
            plain = bool(operands) and jq_filter_is_plain(operands[0])
            return Proof(paths + operands[1:]) if plain else None
        case "git":
            return Proof(paths + tuple(operand for operand in operands if operand), here=True)
        case "paths":
            named = tuple(operand for operand in operands if operand != "-")
            return Proof(paths + named, here=not operands)
