"""The pages that were rewritten in plain words stay so: the words that the glossary retires do not come back."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
REWRITTEN = (
    "README.md",
    "docs/application.md",
    "docs/application-test.md",
    "docs/architecture.md",
    "docs/agents/background-commands.md",
    "docs/agents/budgets.md",
    "docs/agents/context.md",
    "docs/agents/hubs.md",
    "docs/agents/kinds.md",
    "docs/agents/mcp-questions.md",
    "docs/agents/mcp-reference.md",
    "docs/agents/mcp.md",
    "docs/agents/memory.md",
    "docs/agents/middlewares.md",
    "docs/agents/models.md",
    "docs/agents/objects.md",
    "docs/agents/permission.md",
    "docs/agents/providers.md",
    "docs/agents/schedules.md",
    "docs/agents/structured-output.md",
    "docs/agents/snapshots.md",
    "docs/agents/stuck.md",
    "docs/agents/subagents.md",
    "docs/agents/tools.md",
    "docs/agents/unattended.md",
    "docs/agents/workspace-sandbox.md",
    "docs/agents/workspaces.md",
    "docs/coming-from/agentscope.md",
    "docs/coming-from/langgraph.md",
    "docs/coming-from/openai-agents.md",
    "docs/coming-from/openhands.md",
    "docs/coming-from/pydantic-ai.md",
    "docs/coming-from/temporal.md",
    "docs/cost.md",
    "docs/first-agent.md",
    "docs/index.md",
    "docs/install.md",
    "docs/operating/backups.md",
    "docs/operating/compose.md",
    "docs/operating/deleting.md",
    "docs/operating/deploying.md",
    "docs/operating/encryption.md",
    "docs/operating/monitoring.md",
    "docs/operating/observability.md",
    "docs/operating/production.md",
    "docs/operating/sandbox.md",
    "docs/operating/secrets.md",
    "docs/operating/security.md",
    "docs/operating/settings.md",
    "docs/operating/stores.md",
    "docs/operating/symptoms.md",
    "docs/operating/temporal-server.md",
    "docs/operating/upgrading.md",
    "docs/parts.md",
    "docs/people/approvals.md",
    "docs/people/chat.md",
    "docs/people/console.md",
    "docs/people/errors.md",
    "docs/people/events.md",
    "docs/people/http.md",
    "docs/people/mcp-server.md",
    "docs/people/names.md",
    "docs/people/state.md",
    "docs/people/steering.md",
    "docs/people/streams.md",
    "docs/people/waiting.md",
    "docs/testing.md",
    "docs/web-service.md",
)
"""In no list are pages that still have to be rewritten, and the two that quote the retired words."""
RETIRED = (
    "anew",
    "begun",
    "beside",
    "doubt",
    "firing",
    "findings",
    "held",
    "ledger",
    "letter",
    "mend",
    "mended",
    "mends",
    "one's own",
    "roll-over",
    "roll-overs",
    "rubbish",
    "settle",
    "settled",
    "settles",
    "spelt",
    "told",
    "unasked",
    "whoever",
    "(?:are|is|was|were) away",
)
"""Patterns of whole words. Each has no other use on these pages."""


def prose_of(page: str) -> str:
    """Without code, the targets of links, and the rows of operations, which are the program's own words."""
    prose = re.sub(r"(?ms)^ *```.*?^ *```", "", page)
    prose = re.sub(r"(?m)^\|.*`POST …/.*$", "", prose)
    prose = re.sub(r"`[^`]*`", "", prose)
    return re.sub(r"\]\([^)]*\)", "]", prose)


@pytest.mark.parametrize("page", REWRITTEN)
def test_a_rewritten_page_has_no_retired_word(page: str) -> None:
    prose = prose_of((ROOT / page).read_text(encoding="utf-8"))

    found = re.findall(rf"(?i)(?<![\w-])(?:{'|'.join(RETIRED)})(?![\w-])", prose)

    assert found == []


def test_code_and_targets_of_links_are_no_prose() -> None:
    page = "See [here](letters.md#told) `settle`.\n```sh\nlonghaul settle\n```\nDone."

    assert prose_of(page) == "See [here] .\n\nDone."
