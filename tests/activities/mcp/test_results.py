"""What a server has structured goes into the metadata while it is short, and as text the way of long texts else."""

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
        ({"wind": 7}, ["Windy."], "Windy.", True),
        ({"wind": 7}, [], '{"wind": 7}', True),
        (LONG, [WORDS], WORDS, False),
        (LONG, ["Many tides."], f"Many tides.\n{json.dumps(LONG)}", False),
        (LONG, [], json.dumps(LONG), False),
    ],
    ids=["short", "short and alone", "long, in words too", "long", "long and alone"],
)
def test_what_is_long_stands_in_the_output(
    structured: dict[str, Any], texts: list[str], output: str, kept: bool
) -> None:
    made = output_of(result(structured, *texts), {"connection": "c"})

    assert made.output == output
    assert made.metadata == {"connection": "c", **({STRUCTURED: structured} if kept else {})}
