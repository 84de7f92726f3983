"""Tells a worker what it must know of deny and ask rules: where their folders lead, and which paths a search leaves
out."""

from longhaul.agent.permission.command_patterns import rule_words
from longhaul.agent.permission.globs import literal_folder
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.known_names import FILE_TOOLS


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
