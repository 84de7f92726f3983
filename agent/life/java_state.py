"""A state that AgentScope Java 2.0 has saved, as ours. What can't be carried over is said, never dropped in silence.

Not carried over because Java's own loop does not use them: `reply_id`, `cur_iter`, and the limits of its file cache.
Tool names stay as they are; rules for tools that an agent here does not have match nothing.
"""

from typing import Any

from pydantic import ValidationError

from longhaul.agent.fold.ledger.agent_state import AgentState
from longhaul.agent.life.java_blocks import message
from longhaul.agent.permission.foreign_rules import check_keys
from longhaul.agent.plain.import_problem import ImportProblems, problems_of
from longhaul.agent.values.permission import PermissionMode

SUMMARY_NAME = "__compaction_summary__"
"""Java keeps the summary of a compaction in a user message of this name, at the start of the context."""
FIELDS = frozenset({
    "session_id", "user_id", "summary", "context", "reply_id", "cur_iter", "shutdown_interrupted", "permission_context",
    "tool_context", "tasks_context", "plan_mode_context",
})  # fmt: skip

PERMISSIONS = frozenset({"mode", "working_directories", "allow_rules", "ask_rules", "deny_rules"})


def is_java(data: dict[str, Any]) -> bool:
    """Whether a document is Java's: ours has no `reply_id` at the top, and its roles are in lower case."""
    if "behaviour" in data or "state" in data:
        return False
    silent = ImportProblems()
    messages = silent.items(data.get("context"), "context")
    roles = [silent.fields(message, "").get("role") for message in messages]
    return "reply_id" in data or any(isinstance(role, str) and role.isupper() for role in roles)


def from_java(data: dict[str, Any]) -> AgentState:
    """The state in our terms. Raises ImportProblem with everything that is wrong.

    Calls without a result stay open, their blocks in the state that Java gave them; `life.imported_state` closes them.
    """
    findings = ImportProblems()
    for name in sorted(set(data) - FIELDS):
        findings.add(name, "is no field of a state that AgentScope Java 2.0 writes")
    context = _context(data.get("context"), findings)
    state = {
        "session_id": findings.text(data.get("session_id"), "session_id"),
        "user_id": findings.text(data.get("user_id"), "user_id", "") or None,
        "summary": findings.text(data.get("summary"), "summary", ""),
        "context": context,
        "permission_context": _permissions(data.get("permission_context"), findings),
        "tool_context": {"activated_groups": _groups(data.get("tool_context"), findings)},
        "shutdown_interrupted": data.get("shutdown_interrupted") or False,
        **_plans(data, findings),
    }
    if not state["summary"] and context and context[0]["name"] == SUMMARY_NAME:
        state["summary"] = "\n".join(block.get("text", "") for block in context.pop(0)["content"])
    findings.raise_any()
    try:
        return AgentState.model_validate(state)
    except ValidationError as error:
        for path, what in problems_of(error, state):
            findings.add(path, what)
        findings.raise_any()
        raise


def _context(written: object, findings: ImportProblems) -> list[dict[str, Any]]:
    items = findings.items(written, "context")
    read = [message(item, f"context[{index}]", findings) for index, item in enumerate(items)]
    return [part for part in read if part is not None]


def _permissions(written: object, findings: ImportProblems) -> dict[str, Any]:
    fields = findings.fields(written, "permission_context")
    for name in sorted(set(fields) - PERMISSIONS):
        findings.add(f"permission_context.{name}", "is no field of permissions that AgentScope Java 2.0 writes")
    mode = findings.text(fields.get("mode"), "permission_context.mode", "default").lower()
    if mode not in set(PermissionMode):
        findings.add("permission_context.mode", f"must be one of {', '.join(PermissionMode)}, not {mode[:50]!r}")
    places = findings.fields(fields.get("working_directories"), "permission_context.working_directories")
    directories: list[str] = []
    for name, place in places.items():
        path = f"permission_context.working_directories.{name}"
        directories.append(findings.text(findings.fields(place, path).get("path"), f"{path}.path"))
    rules = [rule for kind in ("deny", "ask", "allow") for rule in _rules(fields, kind, findings)]
    return {"mode": mode, "working_directories": directories, "rules": rules}


def _rules(fields: dict[str, Any], kind: str, findings: ImportProblems) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    top = f"permission_context.{kind}_rules"
    for tool, listed in findings.fields(fields.get(f"{kind}_rules"), top).items():
        for index, item in enumerate(findings.items(listed, f"{top}.{tool}")):
            path = f"{top}.{tool}[{index}]"
            rules.append(_rule(findings.fields(item, path), tool, kind, path, findings))
    return rules


def _rule(rule: dict[str, Any], tool: str, kind: str, path: str, findings: ImportProblems) -> dict[str, Any]:
    check_keys(rule, path, findings)
    if rule.get("tool_name") != tool:
        findings.add(f"{path}.tool_name", f"must be {tool!r}, under which it stands")
    if str(rule.get("behavior")).lower() != kind:
        findings.add(f"{path}.behavior", f"must be {kind!r}, as the list is, not {str(rule.get('behavior'))[:50]!r}")
    content = findings.text(rule.get("rule_content"), f"{path}.rule_content", "") or None
    if content and kind == "allow":
        # There no tool compares contents, so such a rule allows nothing; here it would.
        findings.add(path, "allows nothing in AgentScope Java and would allow calls here; remove it and grant it anew")
    source = findings.text(rule.get("source"), f"{path}.source", "")
    return {"tool_name": tool, "rule_content": content, "behavior": kind, "source": source}


def _groups(written: object, findings: ImportProblems) -> list[str]:
    fields = findings.fields(written, "tool_context")
    if findings.fields(fields.get("spawn_registry"), "tool_context.spawn_registry"):
        findings.add("tool_context.spawn_registry", "sub-agents of AgentScope Java can't be continued here; empty it")
    path = "tool_context.activated_groups"
    groups = findings.items(fields.get("activated_groups"), path)
    return [findings.text(group, f"{path}[{index}]") for index, group in enumerate(groups)]


def _plans(data: dict[str, Any], findings: ImportProblems) -> dict[str, Any]:
    """Tasks and plan, for a state that has a place for them."""
    taken: dict[str, Any] = {}
    tasks = findings.fields(data.get("tasks_context"), "tasks_context")
    if findings.items(tasks.get("tasks"), "tasks_context.tasks"):
        taken["tasks_context"] = {"tasks": tasks["tasks"]}
    plan = findings.fields(data.get("plan_mode_context"), "plan_mode_context")
    if plan.get("plan_active") or plan.get("current_plan_file"):
        taken["plan_mode_context"] = {
            "active": plan.get("plan_active") or False,
            "file": plan.get("current_plan_file") or "",
        }
    for name in [name for name in taken if name not in AgentState.model_fields]:
        findings.add(name, "has no place in a session of this version; empty it to go on without")
        del taken[name]
    return taken
