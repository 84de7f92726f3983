"""The pages for people say what is true: numbers are the code's, links and named tests exist."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from agent.keeping import ROLL_OVER_BYTES, ROLL_OVER_EVENTS
from agent.ledger import KEPT_REQUESTS
from agent.tools import Effect, ToolDescriptor
from workflows import options

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "DECISIONS.md",
    "docs/coverage.md",
    "docs/events.md",
    "docs/http.md",
    "docs/production.md",
    "docs/stuck.md",
    "docs/middlewares.md",
    "docs/permission.md",
    "docs/tools.md",
    "docs/waiting.md",
    "docs/observability.md",
)


def test_the_numbers_are_those_of_the_code() -> None:
    tool = ToolDescriptor(name="any")
    heartbeats = [options.run_tool(tool, effect, "").get("heartbeat_timeout") for effect in Effect]

    assert heartbeats == [timedelta(seconds=2), timedelta(seconds=5), timedelta(seconds=30)]
    assert timedelta(seconds=2) == options.MODEL_HEARTBEAT
    assert (ROLL_OVER_EVENTS, ROLL_OVER_BYTES, KEPT_REQUESTS) == (2_000, 4_000_000, 1_000)
    for said in ("every 2,000 events or 4 MB", "last 1,000 are remembered", "noticed after 30 s"):
        assert said in README


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]

    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_every_proof_exists() -> None:
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    proofs = set(re.findall(r"`(tests/[\w/.]+)`", page))

    assert len(proofs) > 30
    assert [proof for proof in sorted(proofs) if not (ROOT / proof).exists()] == []


def test_the_readme_stays_a_page() -> None:
    assert len(README.splitlines()) <= 150
