"""Little languages within arguments: find's expression, sed's script, jq's filter, awk's program. Only plain forms are
proven."""

import re

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
