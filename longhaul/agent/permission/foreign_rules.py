"""Takes what a state from outside says of permission into our words. Safety hangs on it, so nothing of it is left out:
what can't be understood, or would bind less here than there, is refused.

AgentScope 2.0 keeps `allow_rules`, `ask_rules` and `deny_rules`, each by tool, and directories with their source; its
contents are matched otherwise than ours. OpenHands and others have policies under names of their own.
"""

from typing import Any, cast

from longhaul.agent.permission.rule_matching import is_by_host, wrong_domain
from longhaul.agent.plain.errors import ImportProblems
from longhaul.agent.values.permission import PermissionContext, PermissionRule

KINDS = ("deny", "ask", "allow")
ELSEWHERE = frozenset({
    "allow_rules", "ask_rules", "deny_rules", "rules", "permission", "permissions", "permission_mode",
    "permission_rules", "mode", "confirmation_mode", "confirmation_policy", "security_analyzer", "security_policy",
    "policies", "policy", "allowed_tools", "denied_tools", "disallowed_tools",
})  # fmt: skip
"""Names under which others say what may be done, beside `permission_context`."""


def understood(state: dict[str, Any], at: str = "") -> dict[str, Any]:
    """The state's JSON with rules and directories as ours. Raises ImportProblem with every place that can't be taken;
    `at` stands before the paths."""
    findings = ImportProblems()
    for name in sorted(ELSEWHERE & state.keys()):
        findings.add(f"{at}{name}", "says what may be done, and is not understood here; put it into permission_context")
    given = state.get("permission_context")
    if isinstance(given, dict):
        path = f"{at}permission_context"
        state = {**state, "permission_context": _permissions(cast(dict[str, Any], given), path, findings)}
    findings.raise_any()
    return state


def _permissions(given: dict[str, Any], path: str, findings: ImportProblems) -> dict[str, Any]:
    taken = {name: value for name, value in given.items() if name in PermissionContext.model_fields}
    for name in given:
        if name not in taken and name not in {f"{kind}_rules" for kind in KINDS}:
            known = ", ".join([*PermissionContext.model_fields, *(f"{kind}_rules" for kind in KINDS)])
            findings.add(f"{path}.{name}", f"is not understood, and safety may hang on it; there are: {known}")
    own = findings.items(given.get("rules"), f"{path}.rules")
    for index, rule in enumerate(own):
        check_keys(rule, f"{path}.rules[{index}]", findings)
    theirs = [rule for kind in KINDS for rule in _of_kind(given.get(f"{kind}_rules"), kind, path, findings)]
    if theirs:
        taken["rules"] = [*own, *theirs]
    if isinstance(places := given.get("working_directories"), dict):
        taken["working_directories"] = _directories(cast(dict[str, Any], places), path, findings)
    return taken


def check_keys(rule: object, path: str, findings: ImportProblems) -> None:
    """A misspelt `behavior` would be left out, and the rule would then allow."""
    for key in cast(dict[str, Any], rule) if isinstance(rule, dict) else {}:
        if key not in PermissionRule.model_fields:
            findings.add(
                f"{path}.{key}", f"is nothing that a rule has; it has: {', '.join(PermissionRule.model_fields)}"
            )


def _directories(places: dict[str, Any], path: str, findings: ImportProblems) -> list[str]:
    taken: list[str] = []
    for name, place in places.items():
        at = f"{path}.working_directories.{name}"
        taken.append(findings.text(findings.fields(place, at).get("path", name), f"{at}.path"))
    return taken


def _of_kind(written: object, kind: str, path: str, findings: ImportProblems) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    top = f"{path}.{kind}_rules"
    for tool, listed in findings.fields(written, top).items():
        for index, item in enumerate(findings.items(listed, f"{top}.{tool}")):
            at = f"{top}.{tool}[{index}]"
            rules.append(_rule(findings.fields(item, at), tool, kind, at, findings))
    return rules


def _rule(given: dict[str, Any], tool: str, kind: str, at: str, findings: ImportProblems) -> dict[str, Any]:
    check_keys(given, at, findings)
    if given.get("tool_name", tool) != tool:
        findings.add(f"{at}.tool_name", f"must be {tool!r}, under which it stands")
    if str(given.get("behavior", kind)).lower() != kind:
        findings.add(f"{at}.behavior", f"must be {kind!r}, as the list is, not {str(given['behavior'])[:50]!r}")
    content = findings.text(given.get("rule_content"), f"{at}.rule_content", "")
    if content and kind != "allow":
        # An allow rule may let through less here. One that denies or asks must not let through more.
        wider = _as_wide(tool, content)
        if wider is None:
            findings.add(
                f"{at}.rule_content",
                f"{content[:200]!r} would bind fewer calls here than in AgentScope, which looks for it anywhere in a "
                "command, or lets '*' cross '/'; write it again, as 'git push:*' or '/proj/**', or omit it for all",
            )
        content = wider or content
    source = findings.text(given.get("source"), f"{at}.source", "")
    return {**given, "tool_name": tool, "rule_content": content or None, "behavior": kind, "source": source}


def _as_wide(tool: str, content: str) -> str | None:
    """A content of ours that matches all that AgentScope's does; None where there is none."""
    if is_by_host(tool):
        return None if wrong_domain(content) else content
    if tool == "Bash":
        return content if content.endswith(":*") and "*" not in content[:-2] else None
    if content.startswith("*") and not _has_wildcard(content[1:]) and "/" not in content:
        return f"/**/{content}"  # there on the path as it is written, whatever it begins with
    head, _, last = content.rpartition("/")
    if not content.startswith("/") or _has_wildcard(head):
        return None
    return f"{head}/**" if last in ("*", "**") else None if _has_wildcard(last) else content


def _has_wildcard(text: str) -> bool:
    return any(char in text for char in "*?[")
