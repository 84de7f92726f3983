"""What a server has structured goes into the metadata while it is short, and into the output unless that says it."""

import json
from typing import Any

import mcp_types as types
import pytest

from longhaul.activities.mcp.tool_calls import LONGEST_STRUCTURED, STRUCTURED, output_of

LONG = {"tides": "ebb " * (LONGEST_STRUCTURED // 4)}
WORDS = str(LONG["tides"])


def result(structured: dict[str, Any], *texts: str) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text) for text in texts]
    return types.CallToolResult(content=content, structured_content=structured)


@pytest.mark.parametrize(
    ("structured", "texts", "output", "kept"),
    [
        ({"wind": 7}, ["It blows with 7."], "It blows with 7.", True),
        ({"wind": 7}, ['{"wind":7}'], '{"wind":7}', True),
        ({"result": ["a\nb", "ü"]}, ["a\nb", "ü"], "a\nb\nü", True),
        ({"said": 'a "b"\n'}, [r'said: "a \"b\""'], r'said: "a \"b\""', True),
        ({"none": None}, ["Nothing."], "Nothing.", True),
        ({"state": "ended"}, ["It is under way."], 'It is under way.\n{"state": "ended"}', True),
        ({"wind": 7}, [], '{"wind": 7}', True),
        (LONG, [WORDS], WORDS, False),
        (LONG, ["Many tides."], f"Many tides.\n{json.dumps(LONG)}", False),
        (LONG, [], json.dumps(LONG), False),
    ],
    ids=[
        "in words",
        "as JSON",
        "a list, each in words",
        "as JSON in words",
        "nothing",
        "not in words",
        "short and alone",
        "long, in words too",
        "long",
        "long and alone",
    ],
)
def test_what_is_structured_is_said_once(structured: dict[str, Any], texts: list[str], output: str, kept: bool) -> None:
    made = output_of(result(structured, *texts), {"connection": "c"})

    assert made.output == output
    assert made.metadata == {"connection": "c", **({STRUCTURED: structured} if kept else {})}


def test_what_a_failed_call_says_is_its_error_and_nothing_else() -> None:
    failed = result({"answer": 42}, "The database does not answer.").model_copy(update={"is_error": True})

    made = output_of(failed, {})

    assert (made.output, made.failed) == ("The database does not answer.", True)
