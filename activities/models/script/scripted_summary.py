"""The scripted model's answer to a summary that its script has no line for: always the same for one request."""

from typing import Any

from longhaul.activities.models.model import ModelRequest
from longhaul.activities.models.script.script import ScriptedCall, ScriptLine


def made_up_summary(request: ModelRequest) -> ScriptLine:
    """Every field of the answer's schema filled in, or a sentence where no form was asked for."""
    number = request.call_number + 1
    if request.answer is None:
        return ScriptLine(text=f"Summary {number} of the script.")
    fields = request.answer.schema.get("properties", {})
    filled = {name: _filled(field, f"{name} of summary {number} of the script") for name, field in fields.items()}
    return ScriptLine(tool_calls=(ScriptedCall(name=request.answer.name, input=filled),))


def _filled(schema: Any, said: str) -> Any:
    if not isinstance(schema, dict):
        return said
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "boolean":
            return False
        case "array":
            return [_filled(schema.get("items"), said)]
        case "object":
            return {name: _filled(field, said) for name, field in schema.get("properties", {}).items()}
        case "null":
            return None
        case _:
            return said
