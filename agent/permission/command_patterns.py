"""Matches a Bash rule with a sub-command: on words, never on raw text.

`git add:*` is a prefix of words: `git add x` and `git add`, but neither `git added` nor `git add x && rm y`, of which
the second part needs a rule of its own. Anything else is one exact command, quoted as for a shell; `*` has no other
meaning. An allow rule matches exactly that. A deny or ask rule also matches what comes to the same: `/bin/rm` for `rm`,
further arguments after a plain command, options before a subcommand (`git -C x push` for `git push`) and short flags
bundled or apart (`rm -fr`, `rm -r -f` for `rm -rf`).
"""

import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from longhaul.agent.plain.values import OpenValue

PREFIX_ENDING = ":*"


@lru_cache(maxsize=512)
def rule_words(content: str) -> tuple[tuple[str, ...], bool]:
    """The words of a rule, and whether it is a prefix. Unbalanced quotes are literal."""
    content = content.strip()
    is_prefix = content.endswith(PREFIX_ENDING)
    text = content[: -len(PREFIX_ENDING)] if is_prefix else content
    try:
        return tuple(shlex.split(text)), is_prefix
    except ValueError:
        return tuple(text.split()), is_prefix


def written(words: tuple[str, ...]) -> str:
    """The exact command as a rule or a sentence writes it."""
    return " ".join(word if word == ">" or _is_assignment(word) else shlex.quote(word) for word in words)


def _is_assignment(word: str) -> bool:
    name, equals, value = word.partition("=")
    return bool(equals) and name.isidentifier() and shlex.quote(value) == value


def allow_matches(content: str, words: tuple[str, ...]) -> bool:
    expected, is_prefix = rule_words(content)
    if not expected:
        return is_prefix
    return words[: len(expected)] == expected if is_prefix else words == expected


def deny_matches(content: str, words: tuple[str, ...]) -> bool:
    """As `allow_matches`, and for every spelling that comes to the same."""
    expected, is_prefix = rule_words(content)
    if not expected:
        return is_prefix
    if not words or _program(expected[0]) != _program(words[0]):
        return False
    names = [word for word in expected[1:] if not word.startswith("-")]
    return _in_order(names, words[1:]) and all(_has_flag(word, words[1:]) for word in expected[1:] if word not in names)


def _program(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def _in_order(names: list[str], words: tuple[str, ...]) -> bool:
    """Whether the words begin with `names`, options and what may be their values skipped."""
    at = 0
    for name in names:
        while at < len(words) and words[at] != name:
            if not words[at].startswith("-") and not (at and words[at - 1].startswith("-")):
                return False
            at += 1
        if at == len(words):
            return False
        at += 1
    return True


def _has_flag(flag: str, words: tuple[str, ...]) -> bool:
    if flag.startswith("--") or len(flag) == 1:
        return any(word == flag or word.startswith(flag + "=") for word in words)
    letters = {letter for word in words if word.startswith("-") and not word.startswith("--") for letter in word[1:]}
    return flag in words or set(flag[1:]) <= letters


class _BashInput(OpenValue):
    command: str


def command_text(raw_input: str) -> str:
    """The command line in a call's JSON text; all of it, when it can't be read."""
    try:
        return _BashInput.model_validate_json(raw_input).command
    except ValueError:
        return raw_input


def loose_commands(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Whatever may be a command in text that no parser understood, by program: for deny rules only, so rather too much.

    A line may hold tens of thousands; each rule is held against those of its own program alone, because this runs in
    workflows, whose every step has two seconds.
    """
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for words in _loosely_found(text):
        found.setdefault(_program(words[0]), {})[words] = None
    return {program: tuple(commands) for program, commands in found.items()}


def deny_matches_any(content: str, commands: dict[str, tuple[tuple[str, ...], ...]]) -> bool:
    """As `deny_matches`, for any of what `loose_commands` gives."""
    expected, is_prefix = rule_words(content)
    if not expected:
        return is_prefix and bool(commands)
    return any(deny_matches(content, words) for words in commands.get(_program(expected[0]), ()))


def _loosely_found(text: str) -> Iterator[tuple[str, ...]]:
    pieces = re.split(r"[;&|\n\r(){}`<>]|\$", re.sub(r"\\\n|['\"\\]", "", text))
    for piece in pieces:
        words = tuple(piece.split())
        while words and (words[0] in _KEYWORDS or "=" in words[0]):
            words = words[1:]
        if words:
            yield words


_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "!", "time", "exec", "command", "function"}
)
