"""The tools that sessions answer themselves, as workers know them: descriptions, and what goes into a call; among them
`Agent` and the finish function with the schema of one request.

`Agent`: gives a task to a sub-agent.

The session starts it (`agent.decisions.subagent_start`); no worker runs one.

The finish function as workers know it: the schema of one request, and what does not fit it.

The schema is a requester's and the value a model's: neither may keep a worker busy.
"""

import math
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic_core import SchemaError as PatternError

from longhaul.activities.tool import Place, Tool
from longhaul.activities.tools.arguments import ArgumentsError, BoundedSchema, matching, sentence
from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.decisions.session_tools.session_tool import InWorkflowTool
from longhaul.agent.decisions.structured_output import finish_function
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.json_schemas import why_unusable
from longhaul.agent.plain.values import canonical_json
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.subagents import AGENT, LONGEST_TASK_CHARS, RUN_PROGRAM


class Inside(Tool):
    """Never run by a worker: its call is a step of the session."""

    effect = Effect.READ
    read_only = True
    inside = True

    def __init__(self, tool: InWorkflowTool) -> None:
        self.name = tool.name
        self.description = tool.description
        self.input_schema = tool.input_schema

    async def examine(self, arguments: dict[str, Any], place: Place) -> CallAnalysis:
        return CallAnalysis(cwd=str(place.cwd), read_only=True)


def in_workflow_tools() -> list[Tool]:
    return [Inside(tool) for tool in INSIDE.values()]


class StartAgent(Tool):
    """Starting one changes nothing by itself: what a sub-agent does is decided call by call, in its own session."""

    name = AGENT
    description = """\
Gives a task to another agent, which works on it in a session of its own, and answers with its last message.

- It sees nothing of this conversation: say all that it has to know, and what its answer should contain.
- Calls of one turn work side by side, in the same folder.
- With run_in_background the call answers at once, and the last message comes by itself when it is ready."""
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "agent": {"type": "string", "description": "Name of the agent."},
            "task": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_TASK_CHARS,
                "description": "The whole task, in words that need no other context.",
            },
            "answer_schema": {
                "type": "object",
                "description": "JSON schema of an object. With it the answer is a value that fits, as JSON, not words.",
            },
            "run_in_background": {
                "type": "boolean",
                "description": "Do not wait for it. AgentList, AgentSend and AgentStop are for such ones.",
            },
        },
        "required": ["agent", "task"],
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    child = True


class RunProgram(Tool):
    """Running one changes nothing by itself: what its calls do is decided one by one, in a session of its own."""

    name = RUN_PROGRAM
    description = """\
Runs a small Python program that can call your tools, for work with many calls, or with much output of which you need \
little: loops, filters, sums. You read what it prints, and the value of its last line.

- Each of your tools is a plain function that takes its arguments by name and returns text: Read(file_path="a.txt"). \
Tools whose names are no Python names: call("NAME", argument=…). A call that fails or is denied raises RuntimeError.
- together([("Read", {"file_path": "a.txt"}), …]) makes calls side by side, and returns their texts in order.
- There are no files, no network, no clock and no packages but by your tools; json, re, math and datetime can be \
imported."""
    input_schema: dict[str, Any] = {  # noqa: RUF012  as every tool says its schema
        "type": "object",
        "properties": {
            "program": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST_TASK_CHARS,
                "description": "Python 3, without await.",
            }
        },
        "required": ["program"],
        "additionalProperties": False,
    }
    effect = Effect.READ
    read_only = True
    concurrency_safe = True
    child = True


MOST_VALUE_BYTES = 200_000
"""Of an answer as JSON: it is in the message beside the call that gave it."""
MOST_FIELDS = 10
"""Of a value that does not fit: so many are named."""


class GenerateResponse(Inside):
    """Raises BadAskedSchema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        super().__init__(finish_function(schema))
        if why := why_unusable(schema) or _why_no_schema(schema):
            raise BadAskedSchema(f"structured_schema: {why}")

    def check(self, arguments: dict[str, Any]) -> None:
        """Raises ArgumentsError, which names each field that is wrong."""
        try:
            wrong = _too_much(arguments) or _wrong_fields(self.input_schema, arguments)
        except Exception as error:  # noqa: BLE001  what can't be checked does not fit, whatever a validator raises
            wrong = f"the answer can't be checked against its schema ({type(error).__name__}); give a simpler one"
        if wrong:
            raise ArgumentsError(wrong)


class BadAskedSchema(Exception):
    """No answer can be asked for in it; the sentence names the place, what stands there and what to do."""


def _too_much(value: dict[str, Any]) -> str:
    if _has_no_number(value):
        return "the arguments hold a number that is too large; give it as a text"
    size = len(canonical_json(value))
    return (
        f"the answer has {size:,} bytes, and the most is {MOST_VALUE_BYTES:,}; be brief"
        if size > MOST_VALUE_BYTES
        else ""
    )


def _wrong_fields(schema: dict[str, Any], value: dict[str, Any]) -> str:
    """Each missing field is an error of its own, and its sentence names all that are missing."""
    found = sorted(BoundedSchema(schema).errors(value), key=lambda error: [str(part) for part in error.absolute_path])
    wrong = [*dict.fromkeys(map(sentence, found))]
    more = [f"and {len(wrong) - MOST_FIELDS} more"] if len(wrong) > MOST_FIELDS else []
    told = "\n".join(f"- {line}" for line in (*wrong[:MOST_FIELDS], *more))
    return f"the answer does not fit:\n{told}" if wrong else ""


def _why_no_schema(schema: dict[str, Any]) -> str:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        return f"${place}: {error.message[:200]}; correct it"
    for place, pattern in _patterns(schema, "$"):
        try:
            matching(pattern)
        except PatternError:
            return f"{place}: {pattern[:60]!r} can't be used (no look-around, no back reference); write another one"
    return ""


def _patterns(part: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(part, dict):
        for word, value in part.items():
            if word == "pattern" and isinstance(value, str):
                yield f"{at}.pattern", value
            yield from _patterns(value, f"{at}.{word}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from _patterns(value, f"{at}[{number}]")


def _has_no_number(value: Any) -> bool:
    """Whether JSON could not say it: a literal such as 1e999 is read as infinite."""
    if isinstance(value, dict):
        return any(_has_no_number(part) for part in value.values())
    if isinstance(value, list):
        return any(_has_no_number(part) for part in value)
    return isinstance(value, float) and not math.isfinite(value)
