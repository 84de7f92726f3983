"""The page about observability names what the code names: nothing is missing there, and nothing too much."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")


def table(heading: str) -> set[str]:
    """What stands in the first column of the table with this heading."""
    rows = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_every_attribute_of_a_span_is_documented() -> None:
    code = [ROOT / "starter" / "traces.py", *(ROOT / "activities" / "telemetry").glob("*.py")]
    literals = r'"((?:gen_ai|longhaul)\.[a-z_.]+|error\.type)"'
    used = {name for path in code for name in re.findall(literals, path.read_text(encoding="utf-8"))}

    assert len(used) > 20
    assert table("attribute") == used


def test_every_kind_of_span_is_documented() -> None:
    assert table("span") == {
        "longhaul.submit",
        "invoke_agent NAME",
        "longhaul.call_model",
        "chat MODEL",
        "execute_tool NAME",
    }


def test_every_metric_is_documented() -> None:
    code = (ROOT / "activities" / "telemetry" / "counting.py").read_text(encoding="utf-8")
    used = {f"{name}_total" for name in re.findall(r'"(longhaul_[a-z_]+)"', code)}

    assert len(used) > 5
    assert table("metric") == used
