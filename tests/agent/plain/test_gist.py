"""What a call is about, on one line."""

import json
from typing import Any

import pytest

from longhaul.activities.memory import RecordToMemory, RetrieveFromMemory, RetrieveKnowledge
from longhaul.activities.tool import Tool
from longhaul.activities.tools.file_search import Grep
from longhaul.activities.tools.recall import Recall
from longhaul.activities.tools.registry import default_tools
from longhaul.activities.tools.session_tools import RunProgram, StartAgent
from longhaul.activities.tools.web import WebFetch, WebSearch
from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.plain.text import gist as gist_of
from longhaul.agent.values.spec.known_names import TOOLS

SCOUT = "agent: scout, task: Count the boats., background: true"


@pytest.mark.parametrize(
    ("arguments", "gist"),
    [
        ('{"timeout": 3, "command": "ls"}', "ls"),
        ('{"article": "lamp"}', "lamp"),
        ('{"for": "3h"}', "3h"),
        ('{"agent": "scout", "task": "Count the boats.", "background": true}', SCOUT),
        ('{"event": "dusk", "timeout": 60}', "event: dusk, timeout: 60"),
        ('{"subtask_idx": [0, 2]}', "subtask_idx: 0, 2"),
        ('{"todos": [{"content": "Sweep", "status": "pending"}, {"content": "Dust"}]}', "todos: Sweep, Dust"),
        ('{"size": {"width": 7, "height": 8}, "wide": true}', "size: width: 7, height: 8, wide: true"),
        ('{"a": [[[[["deep"]]]]], "b": null}', "a: …, b: null"),
        ('{"page": 7}', "page: 7"),
        ("{}", ""),
        ("[1]", "[1]"),
        ("{broken", "{broken"),
    ],
)
def test_the_gist_of_a_call(arguments: str, gist: str) -> None:
    assert gist_of(arguments) == gist


# Grep is none of the default ones where there is no ripgrep.
FURTHER: tuple[type[Tool], ...] = (
    *(Grep, StartAgent, Recall, RecordToMemory, RetrieveFromMemory, RetrieveKnowledge, RunProgram, WebFetch, WebSearch),
)
SCHEMAS = {
    **{tool.name: tool.input_schema for tool in default_tools()},
    **{tool.name: tool.input_schema for tool in FURTHER},
    **{tool.name: tool.input_schema for tool in INSIDE.values()},
}


def filled(schema: dict[str, Any], name: str) -> Any:
    """A value of this schema, all of whose texts tell the name of their field."""
    match schema:
        case {"enum": [first, *_]}:
            return first
        case {"type": "object"}:
            return {field: filled(inner, field) for field, inner in schema.get("properties", {}).items()}
        case {"type": "array"}:
            return [filled(schema["items"], name)] * 2
        case {"type": "boolean"}:
            return True
        case {"type": "integer" | "number"}:
            return 7
        case _:
            return f"some {name}"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_call_of_each_tool_of_ours_is_told_in_words(tool: str) -> None:
    arguments = filled(SCHEMAS[tool], "")

    told = gist_of(json.dumps(arguments))

    assert not {*'{}[]"'} & {*told}, told
    assert not arguments or any(word in told for word in ("some ", ": 7", ": true")), told
