"""Tells what a command reads and writes that the positive list in `programs.toml` proves; git has a file of its own."""

import re
from collections.abc import Callable
from dataclasses import replace

from longhaul.activities.shell.flags import Program, Proof, prove, read_arguments
from longhaul.activities.shell.git import prove_git
from longhaul.activities.shell.patterns import is_mark
from longhaul.activities.shell.programs import EDITORS, PROGRAMS, VERSIONS
from longhaul.activities.shell.scripts import awk_program_is_plain, find_operands, sed_script_is_plain


def prove_read_only(words: tuple[str, ...]) -> Proof | None:
    """What the command reads, when it is proven to change nothing; None when it is not. Words are after quoting."""
    program, arguments = words[0], words[1:]
    if asks_version(words):
        return Proof()
    if program == "echo":
        return Proof()
    special: Callable[[tuple[str, ...]], Proof | None] | None = _SPECIAL.get(program)
    if special is not None:
        return special(arguments)
    known = PROGRAMS.get(program)
    return None if known is None else prove(known, arguments)


def asks_version(words: tuple[str, ...]) -> bool:
    """Whether it only prints a version, as far as the program is what its name says."""
    return len(words) == 2 and words[1] in VERSIONS.get(words[0], ())


def is_steered(words: tuple[str, ...]) -> bool:
    """Whether files or variables could make the proven command do something else: it needs the hardened environment."""
    return words[0] in ("git", "rg") or (words[0] in VERSIONS and words[0] not in PROGRAMS)


def prove_edit(words: tuple[str, ...]) -> Proof | None:
    """What the command reads and writes, when it is proven to change nothing else; None when it is not."""
    known = EDITORS.get(words[0])
    if known is None:
        return None
    read = read_arguments(known, words[1:])
    if read is None:
        return None
    proof: Proof | None = Proof((), read.operands + read.paths)
    if words[0] == "sed":
        proof = _sed(words[1:], known)
    elif words[0] in ("cp", "mv"):
        # Of several names the last one is where the others go.
        proof = _moved(words[0], read.operands, read.paths) if not any(map(is_mark, words)) else None
    makes = words[0] in ("mkdir", "touch", "cp") and not read.given & {"d", "P"}
    return None if proof is None else replace(proof, moves=not makes)


def _moved(program: str, operands: tuple[str, ...], into: tuple[str, ...]) -> Proof | None:
    """`cp` without -r and `mv`. The target may be a folder: what lies in it under the source's name is written too."""
    if len(operands) + len(into) < 2:
        return None
    target, sources = (into[-1], operands) if into else (operands[-1], operands[:-1])
    landing = tuple(f"{target}/{source.rstrip('/').rsplit('/', 1)[-1]}" for source in sources)
    written = (target, *landing)
    # What is moved is read as well: a rule about the old name says nothing of the new one.
    return Proof(sources, written if program == "cp" else sources + written)


def _find(arguments: tuple[str, ...]) -> Proof | None:
    reads = find_operands(arguments)
    return None if reads is None else Proof(reads, here=not reads)


def _sed(arguments: tuple[str, ...], program: Program = PROGRAMS["sed"]) -> Proof | None:
    read = read_arguments(program, arguments)
    if read is None:
        return None
    scripts = [value for name, value in read.values if name in ("e", "expression")]
    files = read.operands if scripts else read.operands[1:]
    scripts = scripts or list(read.operands[:1])
    if not scripts or not all(sed_script_is_plain(script) for script in scripts):
        return None
    if not read.given & {"i", "in-place"}:
        return Proof(files)
    endings = [value for name, value in read.values if name in ("i", "in-place")]
    if any("/" in ending or "*" in ending for ending in endings) or (endings and any(map(is_mark, files))):
        return None
    # With an ending the file's old content is written beside it, and in the place of a link comes a copy of its file.
    copies = tuple(f"{file}{ending}" for file in files for ending in endings)
    return Proof(files, files + copies)


def _awk(arguments: tuple[str, ...]) -> Proof | None:
    """`awk -F: PROGRAM FILE…`: behind the program nothing is an option, and `name=value` is no file."""
    at = 0
    while arguments[at : at + 1] and arguments[at].startswith("-F"):
        at += 1 if arguments[at] != "-F" else 2
    program, files = "".join(arguments[at : at + 1]), arguments[at + 1 :]
    # Of a separator that becomes several names, the second would be the program.
    if any(map(is_mark, arguments[:at])):
        return None
    if not awk_program_is_plain(program) or any(file.startswith("-") or "=" in file for file in files):
        return None
    return Proof(files)


def _printf(arguments: tuple[str, ...]) -> Proof | None:
    """Without `-v` and `%n`, which set a variable: PATH or HOME, for the rest of the line."""
    words = arguments[1:] if arguments[:1] == ("--",) else arguments
    if not words:
        return Proof()
    option = words is arguments and words[0].startswith("-")
    return None if option or is_mark(words[0]) or "%" in _CONVERSION.sub("", words[0]) else Proof()


_CONVERSION = re.compile(r"%(?:%|[-+ #0]*+[0-9]*+(?:\.[0-9]*+)?[diouxXeEfgGcsbq]|\([^()]*\)T)", re.ASCII)


def _test(arguments: tuple[str, ...]) -> Proof | None:
    """`test`: only forms that evaluate nothing; `-v` and arithmetic would run what stands in a subscript."""
    if any(map(is_mark, arguments)):
        return None
    left = arguments[1:] if arguments[:1] == ("!",) else arguments
    if len(left) == 2 and left[0] in ("-e", "-f", "-d", "-r", "-w", "-x", "-s", "-L", "-h"):
        return Proof((left[1],))
    plain = (len(left) == 2 and left[0] in ("-n", "-z")) or (len(left) == 3 and left[1] in ("=", "!="))
    return Proof() if plain else None


def _command(arguments: tuple[str, ...]) -> Proof | None:
    return Proof() if arguments[:1] in (("-v",), ("-V",)) else None


_SPECIAL: dict[str, Callable[[tuple[str, ...]], Proof | None]] = {
    "find": _find,
    "sed": _sed,
    "awk": _awk,
    "printf": _printf,
    "test": _test,
    "command": _command,
    "git": prove_git,
}
