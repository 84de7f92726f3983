"""Companions are parts that need no rule of their own beside a part of a line that a rule allows.

Such a line runs as the rule was given, outside of the sandbox: no proof counts in it that a sandbox would have to hold.
"""

import re
from collections.abc import Sequence

from longhaul.agent.permission.facts import SubCommand

_PLACE = r"(?: [A-Za-z0-9_./][A-Za-z0-9_./+@:,-]*)"
_PROGRAMS = (
    r"echo(?: [^\0]*)*",
    rf"cd{_PLACE}",
    rf"test -[efdrwxsL]{_PLACE}",
    rf"ls(?: -[laAhtr1F]+)*{_PLACE}*",
    r"pwd|date|whoami|id|hostname|uname|nproc|true|false|cat|tac|nl",
    r"(?:head|tail)(?: -[0-9]+| -[nc] ?[0-9]+| --(?:lines|bytes)=[0-9]+)?",
    r"wc(?: -[lwcm]+)?",
    r"grep(?: -[EFivcnowx]+| -[ABC] ?[0-9]+)* [^\0-][^\0]*",
    r"(?:sort|uniq)(?: -[rnuhVcdi]+)*",
    r"cut(?: -d ?[^\0]| -[fc] ?[0-9,-]+)+",
    r"tr(?: -[dsc]+)?(?: [^\0-][^\0]*){1,2}",
)
_WRAPS = r"timeout(?: -k ?[0-9]+[smhd]?)? [0-9.]+[smhd]?|nice(?: -n ?-?[0-9]+)?|time(?: -p)?"


def _of_words(pattern: str) -> re.Pattern[str]:
    """Of words with NUL between them, which none of them can hold."""
    return re.compile(pattern.replace(" ", r"\0"), re.ASCII)


_PLAIN = _of_words("|".join(f"(?:{program})" for program in _PROGRAMS))
"""None of these opens a file but to see that it is there, and none has an option that could."""
_WRAPPER = _of_words(_WRAPS)


def need_rules(commands: Sequence[SubCommand], *, reads_are_open: bool) -> list[tuple[str, ...]]:
    """The words of those parts that allow rules have to cover before the line may pass by rules; one at least."""
    listed = {command.words for command in commands}
    needing = [
        command.words
        for command in commands
        if not (command.read_only and reads_are_open and (_is_plain(command.words) or _wraps(command.words, listed)))
    ]
    return needing or [command.words for command in commands]


def _is_plain(words: tuple[str, ...]) -> bool:
    return _PLAIN.fullmatch("\0".join(words)) is not None


def _wraps(words: tuple[str, ...], listed: set[tuple[str, ...]]) -> bool:
    """Whether it only runs another part, which is looked at of itself."""
    return any(words[at:] in listed and _WRAPPER.fullmatch("\0".join(words[:at])) for at in range(1, len(words)))
