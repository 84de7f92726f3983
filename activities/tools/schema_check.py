"""The check that what stands for a JSON schema is one: it takes a millisecond of the processor, and says the same of
the same text."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator

LONGEST_REMEMBERED = 20_000
"""Characters. The few that are longer are checked each time."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise SchemaError for what is no JSON schema; RecursionError, TypeError or ValueError for what is no JSON."""
    text = json.dumps(schema, allow_nan=False)
    if len(text) > LONGEST_REMEMBERED:
        Draft202012Validator.check_schema(json.loads(text))
    else:
        check_text(text)


# An MCP server's tool is checked when it is listed and when it comes into a toolbox, each time that the server is asked
# anew; each worker of a process has the same tools. What raises is not remembered.
@lru_cache(maxsize=1_024)
def check_text(text: str) -> None:
    Draft202012Validator.check_schema(json.loads(text))
