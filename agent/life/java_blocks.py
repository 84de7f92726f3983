"""Messages and blocks as AgentScope Java writes them, as ours.

Left behind, because nothing here reads them: ids of blocks, provider metadata of calls and of thinking (only the
provider that wrote it could), how long a call took, and metadata of the framework's own (`agentscope_…`).
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from longhaul.agent.plain.import_problem import ImportProblems

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
