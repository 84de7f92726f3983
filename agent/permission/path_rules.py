"""Deny and ask rules about paths: which of them a call comes near, whatever its tool is, and what a worker must know of
them to look."""

from collections.abc import Iterator, Sequence

from longhaul.agent.permission.command_patterns import rule_words
from longhaul.agent.permission.facts import CallFacts, PathFact
from longhaul.agent.permission.globs import any_matches, literal_folder, may_match_below
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.known_names import FILE_TOOLS

PATH_RULES = ("Read", "Write", "Edit")
"""Tools whose deny and ask rules hold for the paths of every tool."""


def rule_reached(
    rules: Sequence[PermissionRule], tool: str, facts: CallFacts, workspace_root: str
) -> PermissionRule | None:
    """The first of `rules`, all of one behavior, that speaks of a path which the call reads, writes or names."""
    for names, tools in _spoken(tool, facts):
        for rule in rules:
            content = rule.rule_content
            if content and rule.tool_name in tools and any_matches(content, names, workspace_root):
                return rule
    return None


def _spoken(tool: str, facts: CallFacts) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Names of each path, and the tools whose rules count for it."""
    searching = ("Grep",) if tool == "Bash" else ()
    for path in facts.paths:
        yield path.names, (*_tools_of(tool, path), *searching)
    for names in facts.mentioned:
        yield names, (*PATH_RULES, *searching)


def _tools_of(tool: str, path: PathFact) -> tuple[str, ...]:
    if path.access == "read":
        return ("Read",)
    # Edit tells whether a text is in the file, so it reads what it writes.
    return PATH_RULES if tool == "Edit" else ("Write", "Edit")


def why_searched(rules: Sequence[PermissionRule], tool: str, facts: CallFacts, workspace_root: str) -> str:
    """Which of the rules may speak of what a search of the call comes by; empty when none does.

    Of Bash alone: Grep and Glob leave out themselves what a deny or ask rule speaks of.
    """
    searched = [path for path in facts.paths if path.searched and tool == "Bash"]
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
