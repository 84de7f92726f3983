"""A schema is checked once, and what has changed in it is seen."""

from typing import Any

import pytest
from jsonschema.exceptions import SchemaError

from longhaul.activities.tools.arguments import LONGEST_REMEMBERED, check_schema, check_text
from longhaul.activities.tools.registry import Toolbox, default_tools


@pytest.mark.parametrize("said", ["", "x" * LONGEST_REMEMBERED], ids=["short", "long"])
def test_what_is_no_schema_is_refused_each_time_and_what_has_become_none_too(said: str) -> None:
    schema: dict[str, Any] = {"type": "object", "description": said, "properties": {"lamp": {"type": "string"}}}
    check_schema(schema)
    schema["properties"]["lamp"]["type"] = "lantern"

    for _ in range(2):
        with pytest.raises(SchemaError, match="'lantern' is not valid"):
            check_schema(schema)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_what_is_no_json_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        check_schema({"type": "object", "default": value})


def test_the_tools_of_a_second_worker_are_not_checked_again() -> None:
    tools = default_tools()
    Toolbox(tools)
    before = check_text.cache_info()

    Toolbox(tools)

    after = check_text.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (0, len(tools))
