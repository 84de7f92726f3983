"""Folders that deny and ask rules name: a worker looks where they lead, for a rule may be written through a link."""

from agent.permission.commands import rule_words
from agent.permission.globs import literal_folder
from agent.permission.rules import Behavior, PermissionContext, PermissionRule


def ruled_folders(context: PermissionContext, workspace_root: str) -> tuple[str, ...]:
    """As far as each pattern is literal, absolute or below `~`; without repetition, and without the workspace root."""
    strict = (rule for rule in context.rules if rule.behavior is not Behavior.ALLOW and rule.rule_content)
    found = dict.fromkeys(literal_folder(_path_in(rule), workspace_root) for rule in strict)
    return tuple(folder for folder in found if folder not in ("", "~", workspace_root.rstrip("/")))


def _path_in(rule: PermissionRule) -> str:
    """The path pattern of a rule; empty when it speaks of a command."""
    content = rule.rule_content or ""
    if rule.tool_name != "Bash":
        return content
    words, _ = rule_words(content)
    return words[1] if len(words) == 2 and words[0] == ">" else ""
