"""Matches a Bash rule with a sub-command: on words, never on raw text.

`git add:*` is a prefix of words: `git add x` and `git add`, but neither `git added` nor `git add x && rm y`, of which
the second part needs a rule of its own. Anything else is one exact command, quoted as for a shell; `*` has no other
meaning. An allow rule matches exactly that. A deny or ask rule also matches what comes to the same: `/bin/rm` for `rm`,
further arguments after a plain command, options before a subcommand (`git -C x push` for `git push`), short flags
bundled or apart (`rm -fr`, `rm -r -f` for `rm -rf`), and long ones that mean the same (`rm --recursive --force`).

Companions are parts that need no rule of their own beside a part of a line that a rule allows.

Such a line runs as the rule was given, outside of the sandbox: no proof counts in it that a sandbox would have to hold.

Path patterns of rules: `*` and `?` stay within one folder, `**` crosses folders, all else is literal.

Matching takes time in proportion to pattern and path at most, whatever the pattern: it runs in workflows, whose every
step has two seconds.

Deny and ask rules about paths: which of them a call comes near, whatever its tool is, and what a worker must know of
them to look.

Rules about `WebFetch` speak of a host: `WebFetch(domain:example.com)`, `WebFetch(domain:*.example.com)`.

Rules about the tools of MCP servers: of one tool, of a whole server (`mcp__NAME`), and of what an argument says.
`Agent`, whose arguments are no paths either, has the same: `Agent(agent=researcher)`.

`path=/srv/data/*` speaks of the argument `path`, `filter.owner=ana` of one within another; `*` stands for any
characters. A server alone knows what its arguments mean, so a pattern is compared with what is written, and nothing
else: an allow rule with `*` leaves out what could lead elsewhere (`..`).
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from itertools import takewhile
from typing import Any

from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse, SubCommand
from longhaul.agent.plain.text import parsed
from longhaul.agent.plain.values import OpenValue
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.known_names import FILE_TOOLS, MCP, WEB_FETCH
from longhaul.agent.values.spec.mcp import server_of
from longhaul.agent.values.subagents import AGENT, RUN_PROGRAM

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
    longs = _LONG_FLAGS.get(_program(words[0]), {})
    return _in_order(names, words[1:]) and all(
        _has_flag(word, words[1:], longs) for word in expected[1:] if word not in names
    )


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


_OF_FILES = {"--recursive": "rR", "--force": "f"}
_LONG_FLAGS: dict[str, dict[str, str]] = {
    **dict.fromkeys(("rm", "cp", "mv", "ln", "chmod", "chown", "chgrp"), _OF_FILES),
    "git": {"--force": "f", "--delete": "dD", "--all": "aA"},
}
"""By program: long flags, each with the short ones that mean the same. A flag that another subcommand of git knows by
another name is denied too often at most."""


def _has_flag(flag: str, words: tuple[str, ...], longs: Mapping[str, str]) -> bool:
    letters = {letter for word in words if word.startswith("-") and not word.startswith("--") for letter in word[1:]}
    for word in words:
        if word.startswith("--") and len(word) > len("--"):  # GNU's programs take any beginning of a long flag
            for long, short in longs.items():
                letters.update(short if long.startswith(word.partition("=")[0]) else "")
    if flag.startswith("--") or len(flag) == 1:
        written_so = any(word == flag or word.startswith(flag + "=") for word in words)
        return written_so or not letters.isdisjoint(longs.get(flag, ""))
    for short in longs.values():
        letters.update("" if letters.isdisjoint(short) else short)
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
    # Whether it only runs another part, which is looked at of itself.
    needing = [
        command.words
        for command in commands
        if not (
            command.read_only
            and reads_are_open
            and (
                _PLAIN.fullmatch("\0".join(command.words)) is not None
                or any(
                    command.words[at:] in listed and _WRAPPER.fullmatch("\0".join(command.words[:at]))
                    for at in range(1, len(command.words))
                )
            )
        )
    ]
    return needing or [command.words for command in commands]


_HOMES = (("root",), ("home", "?*"), ("Users", "?*"))
_ANY_FOLDERS = "**"


def path_matches(pattern: str, path: str, workspace_root: str) -> bool:
    """Whether a resolved absolute path matches. A relative pattern is meant under the workspace root.

    `**/name` is meant anywhere and `~/name` in any home. `dir/**` matches the folder itself too. `[` and `{` are
    literal, and `..` takes back the part before it.
    """
    if not path.startswith("/"):
        return False
    return any(_fits_folders(parts, path) for parts in _alternatives(pattern, workspace_root.rstrip("/")))


def literal_folder(pattern: str, workspace_root: str) -> str:
    """The beginning of a pattern that has no wildcard, absolute or below `~`; empty when there is none."""
    home = pattern.startswith("~/")
    (parts, *_) = (_parts(pattern[1:]),) if home else _alternatives(pattern, workspace_root.rstrip("/"))
    literal = takewhile(lambda part: "*" not in part and "?" not in part, parts)
    return "/".join(("~" if home else "", *literal))


def any_matches(pattern: str, paths: Iterable[str], workspace_root: str) -> bool:
    """`path_matches` for one of several names."""
    return any(path_matches(pattern, path, workspace_root) for path in paths)


def may_match_below(pattern: str, folders: Iterable[str], workspace_root: str) -> bool:
    """Whether it could match a path in or below one of the folders, or one of these itself. Rather too often."""
    literal = literal_folder(pattern, workspace_root)
    if not literal.startswith("/"):
        return True  # anywhere, or in any home
    ends = (folder.rstrip("/") + "/" for folder in folders)
    return any((literal + "/").startswith(end) or end.startswith(literal.rstrip("/") + "/") for end in ends)


def spelt_out(pattern: str, workspace_root: str) -> tuple[str, ...]:
    """The pattern from `/` on, once for each place that it may mean; `**/name` stays as it is."""
    found = ("/".join(("", *parts)) for parts in _alternatives(pattern, workspace_root.rstrip("/")))
    return tuple(each.removeprefix("/") if each.startswith("/**") else each.replace("?*", "*") for each in found)


@lru_cache(maxsize=512)
def _alternatives(pattern: str, root: str) -> tuple[tuple[str, ...], ...]:
    """The parts between the slashes, once for each thing that the pattern may stand for."""
    if pattern.startswith("~/"):
        return tuple((*home, *_parts(pattern[1:])) for home in _HOMES)
    if pattern == _ANY_FOLDERS or pattern.startswith("**/"):
        return (_parts(f"/{pattern}"),)
    return (_parts(pattern if pattern.startswith("/") else f"{root}/{pattern}"),)


def _parts(pattern: str) -> tuple[str, ...]:
    parts: list[str] = []
    for part in pattern.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def _fits_folders(parts: tuple[str, ...], path: str) -> bool:
    """Each part takes one folder; a part that does not fit lets the last `**` before it take one folder more. To go
    back any further could find nothing else, so nothing is tried twice."""
    folders = path[1:].split("/") if path != "/" else []
    at = place = 0
    crossing, taken = -1, 0
    while place < len(folders):
        if at < len(parts) and parts[at] == _ANY_FOLDERS:
            crossing, taken = at, place
            at += 1
        elif at < len(parts) and _compiled(parts[at]).match(folders[place]):
            at, place = at + 1, place + 1
        elif crossing >= 0:
            taken += 1
            at, place = crossing + 1, taken
        else:
            return False
    return all(part == _ANY_FOLDERS for part in parts[at:])


@lru_cache(maxsize=1024)
def _compiled(part: str) -> re.Pattern[str]:
    """`translate` makes patterns that never go back over what a `*` has taken."""
    return re.compile(translate(part.replace("[", "[[]")))


PATH_RULES = ("Read", "Write", "Edit")
"""Tools whose deny and ask rules hold for the paths of every tool."""


def rule_reached(
    rules: Sequence[PermissionRule], tool: str, analysis: CallAnalysis, workspace_root: str
) -> PermissionRule | None:
    """The first of `rules`, all of one behavior, that speaks of a path which the call reads, writes or names."""
    for names, tools in _spoken(tool, analysis):
        for rule in rules:
            content = rule.rule_content
            if content and rule.tool_name in tools and any_matches(content, names, workspace_root):
                return rule
    return None


def _spoken(tool: str, analysis: CallAnalysis) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names of each path, and the tools whose rules count for it."""
    searching = ("Grep",) if tool == "Bash" else ()
    for path in analysis.paths:
        yield path.names, (*_tools_of(tool, path), *searching)
    for names in analysis.mentioned:
        yield names, (*PATH_RULES, *searching)


def _tools_of(tool: str, path: PathUse) -> tuple[str, ...]:
    if path.access == "read":
        return ("Read",)
    # Edit tells whether a text is in the file, so it reads what it writes.
    return PATH_RULES if tool == "Edit" else ("Write", "Edit")


def why_searched(rules: Sequence[PermissionRule], tool: str, analysis: CallAnalysis, workspace_root: str) -> str:
    """Which of the rules may speak of what a search of the call comes by; empty when none does.

    Of Bash alone: Grep and Glob leave out themselves what a deny or ask rule speaks of.
    """
    searched = [path for path in analysis.paths if path.searched and tool == "Bash"]
    for rule in rules:
        content = rule.rule_content if rule.tool_name in ("Read", "Grep") else ""
        for path in searched:
            if content and may_match_below(content, path.names, workspace_root):
                return f"It looks through {path.path!r}, where the {rule.behavior.value} rule {rule.spelt()} may match"
    return ""


def ruled_folders(context: PermissionContext, workspace_root: str) -> tuple[str, ...]:
    """As far as each pattern is literal, absolute or below `~`; without repetition, and without the workspace root."""
    strict = (rule for rule in context.rules if rule.behavior is not Behavior.ALLOW and rule.rule_content)
    found = dict.fromkeys(literal_folder(_path_in(rule), workspace_root) for rule in strict)
    return tuple(folder for folder in found if folder not in ("", "~", workspace_root.rstrip("/")))


def ruled_paths(context: PermissionContext) -> tuple[tuple[str, str], ...]:
    """Tool and pattern of each deny and ask rule about paths: searches leave out what they match."""
    strict = (rule for rule in context.rules if rule.behavior is not Behavior.ALLOW and rule.tool_name in FILE_TOOLS)
    return tuple(dict.fromkeys((rule.tool_name, rule.rule_content) for rule in strict if rule.rule_content))


def _path_in(rule: PermissionRule) -> str:
    """The path pattern of a rule; empty when it speaks of a command."""
    content = rule.rule_content or ""
    if rule.tool_name != "Bash":
        return content
    words, _ = rule_words(content)
    return words[1] if len(words) == 2 and words[0] == ">" else ""


_PATTERN = re.compile(r"([^\s=*][^=*]*)=(.*)", re.DOTALL)
_ELSEWHERE = re.compile(r"\.\.|%2e|[\x00-\x1f\x7f]", re.IGNORECASE)


def rule_names(tool: str) -> tuple[str, ...]:
    """The names under which rules speak of a tool."""
    server = server_of(tool)
    return (tool, f"{MCP}{server}") if server else (tool,)


def is_by_argument(tool: str) -> bool:
    """Whether the content of a rule about this tool speaks of its arguments."""
    return tool in (AGENT, RUN_PROGRAM) or tool.startswith(MCP)


def wrong_pattern(content: str) -> str:
    """What is wrong with a pattern about an argument, as the end of a sentence; empty when it can be used."""
    if _PATTERN.fullmatch(content) is None or not content.isprintable():
        what = "a rule about an MCP tool, or about Agent, names an argument and what it says"
        return f"{what}, as in 'path=/srv/data/*', on one line"
    return ""


def argument_matches(content: str, raw_input: str) -> bool:
    """Whether a deny or ask rule speaks of the call: of any of the values that the argument holds."""
    pattern, values = _split(content, raw_input)
    return any(_fits_text(pattern, value) for value in values)


def argument_allowed(content: str, raw_input: str) -> bool:
    """Whether an allow rule covers the argument: all of the values that it holds, and there is one."""
    pattern, values = _split(content, raw_input)
    if "*" in pattern and any(_ELSEWHERE.search(value) for value in values):
        return False
    return bool(values) and all(_fits_text(pattern, value) for value in values)


def _split(content: str, raw_input: str) -> tuple[str, tuple[str, ...]]:
    spelt, arguments = _PATTERN.fullmatch(content), parsed(raw_input)
    if spelt is None or arguments is None:
        return "", ()
    return spelt[2], tuple(_values(_found(arguments, spelt[1])))


def _found(arguments: Mapping[str, Any], name: str) -> Any:
    """The argument of that name, or, of a dotted one, what lies within; an empty list when it is not there."""
    if name in arguments:
        return arguments[name]
    outer, dot, rest = name.partition(".")
    inner = arguments.get(outer)
    return _found(inner, rest) if dot and isinstance(inner, dict) else []


def _values(value: Any) -> Iterator[str]:
    """As text: each element of a list, and of an object its JSON."""
    if isinstance(value, list):
        for inner in value:
            yield from _values(inner)
    else:
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fits_text(pattern: str, text: str) -> bool:
    """From part to part, each as early as it goes: no pattern takes longer than the text is."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])


DOMAIN = "domain:"
_HOST = re.compile(r"domain:(\*\.)?([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)")


def is_by_host(tool: str) -> bool:
    """Whether the content of a rule about this tool speaks of hosts."""
    return tool == WEB_FETCH


def wrong_domain(content: str) -> str:
    """What is wrong with a pattern about a host, as the end of a sentence; empty when it can be used."""
    if _HOST.fullmatch(content):
        return ""
    return (
        "a rule about WebFetch names a host without port or path, as in 'domain:example.com', or all below it, as in "
        "'domain:*.example.com'; write a name with other letters in its ASCII form, 'domain:xn--…'"
    )


def host_allowed(content: str, host: str) -> bool:
    """Whether an allow rule covers the host: this very one, or, with `*.`, one below it."""
    pattern = content.removeprefix(DOMAIN).lower()
    return content.startswith(DOMAIN) and (host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern)


def host_denied(content: str, host: str) -> bool:
    """Whether a deny or ask rule speaks of the host: of it, or of one above it."""
    base = content.removeprefix(DOMAIN).lower().removeprefix("*.")
    return content.startswith(DOMAIN) and (host == base or host.endswith(f".{base}"))
