"""Refuses a rule that can't mean what its author means, where it comes in and with a sentence.

A rule that is there already is never checked again: what can't match anything allows nothing.
"""

import re
from collections.abc import Collection, Iterable

from longhaul.agent.permission.command_patterns import PREFIX_ENDING, rule_words
from longhaul.agent.permission.mcp_rules import is_by_argument, wrong_pattern
from longhaul.agent.plain.errors import BadInput
from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.agent.values.spec.known_names import misspelt_rule

MAX_PATTERN_CHARS = 1_000
MAX_REASON_CHARS = 2_000
MAX_NAME_CHARS = 200
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OPERATORS = {";": ";", "&": "&", "|": "|", "`": "`", "(": "(", ")": ")", "<": "<"}


class BadRule(BadInput, ValueError):
    """A rule that can't be taken; the sentence says what to write."""


def check_rules(rules: Iterable[PermissionRule]) -> None:
    """Raises BadRule for the first one that can't mean what it should."""
    for rule in rules:
        check_rule(rule)


def check_tools_of(rules: Iterable[PermissionRule], tools: Collection[str] = ()) -> None:
    """Raises BadRule for the first one whose tool is none of these, nor of our own, but nearly one."""
    if why := misspelt_rule((rule.tool_name for rule in rules), tools):
        raise BadRule(why)


def check_rule(rule: PermissionRule) -> None:
    name, content = rule.tool_name, rule.rule_content
    if not name:
        raise BadRule("rules: a rule needs a tool_name")
    if not _TOOL_NAME.fullmatch(name) or len(name) > MAX_NAME_CHARS:
        raise BadRule(
            f"rules: tool_name {name[:80]!r} is no tool's name; name one tool as in 'Bash', without a pattern"
        )
    if len(rule.reason) > MAX_REASON_CHARS:
        raise BadRule(f"rules: a reason has at most {MAX_REASON_CHARS} characters, and this one has {len(rule.reason)}")
    for what, text in (("id", rule.id), ("source", rule.source), ("author", rule.author)):
        if len(text) > MAX_NAME_CHARS or not (text.isprintable() or not text):
            raise BadRule(
                f"rules: {what} {text[:80]!r} has to be one printable line of at most {MAX_NAME_CHARS} characters"
            )
    if content is None or content == "":
        return
    if len(content) > MAX_PATTERN_CHARS:
        raise BadRule(
            f"rules: a pattern has at most {MAX_PATTERN_CHARS} characters, and {content[:40]!r}… has {len(content)}"
        )
    if is_by_argument(name):
        wrong = wrong_pattern(content)
    else:
        wrong = _wrong_command(content) if name == "Bash" else _wrong_path(content, rule.behavior)
    if wrong:
        raise BadRule(f"rules: {name}({content[:200]}): {wrong}")


def _wrong_command(content: str) -> str:
    text = content.strip().removesuffix(PREFIX_ENDING)
    if not text:
        return "" if content.strip() else "an empty pattern matches nothing; leave rule_content out for every call"
    if not text.isprintable():
        return "a command is one line without control characters"
    unquoted = _unquoted(text)
    if unquoted is None:
        return "a quote is not closed; quote as for a shell"
    if found := next((char for char in unquoted if char in _OPERATORS), ""):
        return f"{found!r} joins commands, and a rule is for one command: write a rule for each, or quote it"
    if "$" in unquoted:
        return "'$' is never expanded in a rule; write the command as it runs, or quote it"
    if "*" in unquoted:
        return "'*' has no meaning in a command; end it with ':*' for whatever follows, as in 'git add:*', or quote it"
    if ">" in unquoted.lstrip()[1:]:
        return "a redirection is a rule of its own, as in '> /proj/log'"
    return "" if rule_words(content)[0] else "it names no command; write one as in 'git add:*'"


def _unquoted(text: str) -> str | None:
    """What stands outside quotes and is not escaped; None when a quote is not closed."""
    kept: list[str] = []
    quote = ""
    characters = iter(text)
    for char in characters:
        if char == "\\" and quote != "'":
            if next(characters, None) is None:
                return None
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        else:
            kept.append(char)
    return None if quote else "".join(kept)


def _wrong_path(content: str, behavior: Behavior) -> str:
    if not content.strip():
        return "an empty pattern matches nothing; leave rule_content out for every call"
    if not content.isprintable():
        return "a path is one line without control characters"
    if content.startswith("~"):
        if not content.startswith("~/"):
            return "'~' stands for any home and is followed by '/', as in '~/.ssh/**'"
        if behavior is Behavior.ALLOW:
            return "'~' is for deny and ask rules, where it means any home; write the absolute path to allow"
    if bad := next((part for part in content.split("/") if "**" in part and part != "**"), ""):
        return f"'**' is a part of its own between slashes, as in '{bad.replace('**', '**/*', 1)}'"
    if content.startswith("\\") or re.match(r"[A-Za-z]:\\", content):
        return "a path is written with '/', as in '/proj/src/**'"
    return ""
