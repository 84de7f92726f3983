"""The page about observability names what the code names: nothing is missing there, and nothing too much."""

import re
from pathlib import Path

import pytest

from longhaul.activities.telemetry.metrics import SECONDS, TOKENS
from longhaul.activities.telemetry.operator_lines import LOGGER
from longhaul.starter.telemetry.metrics import BUCKETS
from longhaul.starter.worker_host.workflow_tasks import WAITED, WAITING

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operating" / "observability.md").read_text(encoding="utf-8")


def table(heading: str) -> set[str]:
    """What stands in the first column of the table with this heading."""
    rows = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_every_attribute_of_a_span_is_documented() -> None:
    code = [ROOT / "starter" / "telemetry" / "traces.py", *(ROOT / "activities" / "telemetry").glob("*.py")]
    literals = r'"((?:gen_ai|longhaul)\.[a-z_.]+|error\.type)"'
    used = {name for path in code for name in re.findall(literals, path.read_text(encoding="utf-8"))}
    used -= {*TOKENS.values(), *SECONDS.values(), "gen_ai.token.type", LOGGER}  # of metrics and logs

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


@pytest.mark.proves("F7")
def test_every_metric_is_documented() -> None:
    paths = (ROOT / "activities" / "telemetry" / "metrics.py", ROOT / "workflows" / "session_timers.py")
    backlog = {WAITED, WAITING}
    code = "".join(path.read_text(encoding="utf-8") for path in paths)
    counters = {f"{name}_total" for name in re.findall(r'add\("(longhaul_[a-z_]+)"', code)}
    histograms = set(re.findall(r'(?:float\(|NAME = )"(longhaul_[a-z_]+)"', code))

    assert len(counters) > 8
    assert histograms | {*TOKENS.values(), *SECONDS.values()} == set(BUCKETS)
    assert table("metric") == counters | histograms | backlog | {TOKENS["prometheus"], SECONDS["prometheus"]}


def test_every_field_of_a_structured_line_is_documented() -> None:
    paths = [ROOT / "activities" / "telemetry" / name for name in ("log_lines.py",)]
    code = "".join(path.read_text(encoding="utf-8") for path in paths)
    named = set(re.findall(r'"([a-z_]+)": ', code)) - {"asctime", "levelname", "name", "msg", "args"}
    given = set(re.findall(r"(?:fields\(|^        )([a-z_]+)=", code, re.MULTILINE))

    assert named | given | {"time", "level", "logger", "message"} == table("field")
