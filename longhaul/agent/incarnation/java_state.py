"""Messages and blocks as AgentScope Java writes them, as ours.

Left behind, because nothing here reads them: ids of blocks, provider metadata of calls and of thinking (only the
provider that wrote it could), how long a call took, and metadata of the framework's own (`agentscope_…`).

A state that AgentScope Java 2.0 has saved, as ours. What can't be carried over is said, never dropped in silence.

Not carried over because Java's own loop does not use them: `reply_id`, `cur_iter`, and the limits of its file cache.
Tool names stay as they are; rules for tools that an agent here does not have match nothing.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from longhaul.agent.permission.foreign_rules import check_keys
from longhaul.agent.plain.errors import ImportProblems, problems_of
from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.permission import PermissionMode

SUSPENDED = "agentscope_suspended"
_ROLES = {"USER": "user", "ASSISTANT": "assistant", "SYSTEM": "system", "TOOL": "assistant"}
_RESULT_STATES = {"success", "error", "interrupted", "denied"}
_CALL_STATES = {"pending", "asking", "allowed", "submitted", "finished"}
_MEDIA = {"image": "image/*", "audio": "audio/*", "video": "video/*"}
"""What a URL without a type is taken for; a block `data` has to say it."""

Block = dict[str, Any]


def message(written: object, path: str, findings: ImportProblems) -> dict[str, Any] | None:
    """One message in our JSON; None when nothing is left of it."""
    fields = findings.fields(written, path)
    role = findings.text(fields.get("role"), f"{path}.role").upper()
    if role not in _ROLES:
        findings.add(f"{path}.role", f"must be one of {', '.join(_ROLES)}, not {role[:50]!r}")
    blocks: list[Block] = []
    for index, block in enumerate(findings.items(fields.get("content"), f"{path}.content")):
        if block is not None and (taken := _block(block, f"{path}.content[{index}]", findings)) is not None:
            blocks.append(taken)
    if not blocks:
        return None
    metadata = findings.fields(fields.get("metadata"), f"{path}.metadata")
    return {
        "id": findings.text(fields.get("id"), f"{path}.id", ""),
        "name": findings.text(fields.get("name"), f"{path}.name", "") or _ROLES.get(role, ""),
        "role": _ROLES.get(role, "user"),
        "content": blocks,
        "metadata": {key: value for key, value in metadata.items() if not key.startswith("agentscope_")},
        "created_at": _time(fields.get("timestamp"), f"{path}.timestamp", findings),
        "usage": _usage(fields.get("usage"), f"{path}.usage", findings),
    }


def _time(written: object, path: str, findings: ImportProblems) -> str:
    """Java writes local time without its zone, so it is read as UTC."""
    text = findings.text(written, path, "")
    if not text:
        return ""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        findings.add(path, f"must be a time like 2026-11-21 09:30:00.250, not {text[:50]!r}")
        return ""
    return at.isoformat(timespec="milliseconds") + ("" if at.tzinfo else "+00:00")


def _usage(written: object, path: str, findings: ImportProblems) -> dict[str, Any] | None:
    if written is None:
        return None
    names = {"inputTokens": "input_tokens", "outputTokens": "output_tokens", "cachedTokens": "cache_input_tokens"}
    fields = findings.fields(written, path)
    return {ours: fields[theirs] for theirs, ours in names.items() if theirs in fields}


def _block(written: object, path: str, findings: ImportProblems) -> Block | None:
    fields = findings.fields(written, path)
    kind = fields.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is None:
        findings.add(f"{path}.type", f"must be one of {', '.join(_READERS)}, not {str(kind)[:50]!r}")
        return None
    return reader(fields, path, findings)


def _text(fields: Block, path: str, findings: ImportProblems) -> Block:
    return {"type": "text", "text": findings.text(fields.get("text"), f"{path}.text", "")}


def _thinking(fields: Block, path: str, findings: ImportProblems) -> Block:
    return {"type": "thinking", "thinking": findings.text(fields.get("thinking"), f"{path}.thinking", "")}


def _hint(fields: Block, path: str, findings: ImportProblems) -> Block:
    hint = findings.text(fields.get("hint"), f"{path}.hint", "")
    return {"type": "hint", "hint": hint, "source": findings.text(fields.get("source"), f"{path}.source", "") or None}


def _data(fields: Block, path: str, findings: ImportProblems) -> Block:
    source = findings.fields(fields.get("source"), f"{path}.source")
    name = findings.text(fields.get("name"), f"{path}.name", "") or None
    if source.get("type") == "base64":
        data = findings.text(source.get("data"), f"{path}.source.data")
        media = findings.text(source.get("media_type"), f"{path}.source.media_type")
        taken = {"type": "base64", "data": data, "media_type": media}
    elif source.get("type") == "url":
        url = findings.text(source.get("url"), f"{path}.source.url")
        kind = source.get("mime_type") or _MEDIA.get(fields["type"])
        taken = {"type": "url", "url": url, "media_type": findings.text(kind, f"{path}.source.mime_type")}
    else:
        findings.add(f"{path}.source.type", f"must be base64 or url, not {str(source.get('type'))[:50]!r}")
        return {}
    return {"type": "data", "source": taken, "name": name}


def _tool_use(fields: Block, path: str, findings: ImportProblems) -> Block:
    state = fields.get("state") or "pending"
    if str(state) not in _CALL_STATES:
        findings.add(f"{path}.state", f"must be one of {', '.join(sorted(_CALL_STATES))}, not {str(state)[:50]!r}")
    arguments = findings.fields(fields.get("input"), f"{path}.input")
    raw = findings.text(fields.get("content"), f"{path}.content", "")
    # Java parses what the model wrote and keeps both; arguments that did not parse are empty there.
    spelt = raw if raw and not arguments else json.dumps(arguments, ensure_ascii=False)
    return {
        "type": "tool_call",
        "id": _id(fields.get("id"), f"{path}.id", findings),
        "name": _id(fields.get("name"), f"{path}.name", findings),
        "input": spelt,
        "state": state,
    }


def _tool_result(fields: Block, path: str, findings: ImportProblems) -> Block | None:
    metadata = findings.fields(fields.get("metadata"), f"{path}.metadata")
    if metadata.get(SUSPENDED) is True:
        return None  # stands for a result that has not come: the call is open
    output: list[Block] = []
    for index, part in enumerate(findings.items(fields.get("output"), f"{path}.output")):
        at = f"{path}.output[{index}]"
        taken = _block(part, at, findings)
        if taken and taken["type"] not in ("text", "data"):
            findings.add(f"{at}.type", f"a result may hold text and data, not {taken['type']!r}")
        output += [taken] if taken else []
    return {
        "type": "tool_result",
        "id": _id(fields.get("id"), f"{path}.id", findings),
        "name": findings.text(fields.get("name"), f"{path}.name", ""),
        "output": output,
        "state": _result_state(fields.get("state"), output, f"{path}.state", findings),
    }


def _result_state(written: object, output: list[Block], path: str, findings: ImportProblems) -> str:
    """Java's default is `running`, also for what has ended; its own loop tells by the text, and so does this."""
    if written in (None, "running"):
        failed = any(str(part.get("text", "")).startswith("[ERROR]") for part in output)
        return "error" if failed else "success"
    if str(written) not in _RESULT_STATES:
        findings.add(path, f"must be running or one of {', '.join(sorted(_RESULT_STATES))}, not {str(written)[:50]!r}")
    return str(written)


def _id(value: object, path: str, findings: ImportProblems) -> str:
    text = findings.text(value, path)
    if value == "":
        findings.add(path, "must not be empty")
    return text


_READERS: dict[str, Callable[[Block, str, ImportProblems], Block | None]] = {
    "text": _text,
    "thinking": _thinking,
    "hint": _hint,
    "data": _data,
    "image": _data,
    "audio": _data,
    "video": _data,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
}


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

    Calls without a result stay open, their blocks in the state that Java gave them; `incarnation.imported_state` closes
    them.
    """
    findings = ImportProblems()
    for name in sorted(set(data) - FIELDS):
        findings.add(name, "is no field of a state that AgentScope Java 2.0 writes")
    items = findings.items(data.get("context"), "context")
    read = [message(item, f"context[{index}]", findings) for index, item in enumerate(items)]
    context = [part for part in read if part is not None]
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
        findings.add(path, "allows nothing in AgentScope Java and would allow calls here; remove it and grant it again")
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
