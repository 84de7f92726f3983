"""Says who may let calls run in advance: an approver by the agent's setting `grantable`, a user by rules of their
own."""

import re

from longhaul.agent.permission.command_patterns import rule_words
from longhaul.agent.permission.globs import path_matches
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule

_SPELT = re.compile(r"(?P<tool>[A-Za-z_][A-Za-z0-9_-]*)(?:\((?P<content>.*)\))?", re.DOTALL)


def may_grant(rule: PermissionRule, grantable: tuple[str, ...], workspace_root: str) -> bool:
    """Whether an allow rule is one of `grantable`, or narrower: `Bash(git:*)` grants `Bash(git add:*)` too."""
    return rule.behavior is Behavior.ALLOW and any(_covers(pattern, rule, workspace_root) for pattern in grantable)


def may_come_from_a_store(rule: PermissionRule, context: PermissionContext) -> bool:
    """Whether a user's rule counts. The state store is open to whoever writes to it: an allow rule from there is
    nobody's signature, and no more than one person's word."""
    return rule.behavior is not Behavior.ALLOW or (
        context.approvals != "signed" and context.approvers(rule.tool_name) == 1
    )


def _covers(pattern: str, rule: PermissionRule, workspace_root: str) -> bool:
    spelt = _SPELT.fullmatch(pattern)
    if spelt is None or spelt["tool"] != rule.tool_name:
        return False
    wide, narrow = spelt["content"] or "", rule.rule_content or ""
    if not wide or wide == narrow:
        return True
    if not narrow:
        return False
    return _command_covers(wide, narrow) if rule.tool_name == "Bash" else _path_covers(wide, narrow, workspace_root)


def _command_covers(wide: str, narrow: str) -> bool:
    words, is_prefix = rule_words(wide)
    others, _ = rule_words(narrow)
    return is_prefix and bool(others) and others[: len(words)] == words


def _path_covers(wide: str, narrow: str, workspace_root: str) -> bool:
    """One path, or a folder with all below it, that the wider pattern matches whatever stands in the place of `**`."""
    exact = narrow.removesuffix("/**")
    if not exact.startswith("/") or any(char in exact for char in "*?[") or ".." in exact.split("/"):
        return False
    if exact != narrow and not wide.endswith("/**"):
        return False
    return path_matches(wide, exact if exact == narrow else f"{exact}/x", workspace_root)
