"""`longhaul rules …`: the rules of a session and of a user, listed, added, revoked."""

from dataclasses import replace

import pytest

from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.client import Longhaul
from tests.e2e.conftest import Cli

pytestmark = pytest.mark.server


@pytest.mark.proves("X5")
async def test_rules_of_a_session_are_listed_added_and_revoked(cli: Cli, app: Longhaul) -> None:
    await app.session("ruled", agent=AgentSpec(model=cli.script({"text": "Noted."}))).reply("Hi")

    added = cli(
        "rules", "add", "ruled", "--allow", "Bash(git add:*)", "--deny", "Bash(rm:*)",
        "--until", "30d", "--why", "spring cleaning", "--as", "ana", "--json",
    )  # fmt: skip
    foreign = cli("rules", "add", "ruled", "--deny", "kite", "--json")
    listed = replace(cli, environment={**cli.environment, "COLUMNS": "160"})("rules", "list", "ruled")
    revoked = cli("rules", "revoke", "ruled", added.document["added"][0], "--why", "done")
    left = cli("rules", "list", "ruled", "--json").document
    refused = cli("rules", "add", "ruled", "--deny", "Bash(git *)")

    misspelt = cli("rules", "add", "ruled", "--deny", "Bsh")

    assert (misspelt.code, "did you mean 'Bash'?" in misspelt.err) == (2, True)
    assert (foreign.document["no_tool"], "its agent has no such tool" in foreign.err) == (["kite"], True)
    assert "kite (no such tool)" in listed.out
    assert "Bash(git add:*)" in listed.out
    assert "spring cleaning" in listed.out
    assert revoked.code == 0
    assert [(rule["rule_content"], rule["behavior"], rule["author"]) for rule in left[:1]] == [("rm:*", "deny", "ana")]
    assert [(rule["tool_name"], rule["no_tool"]) for rule in left[1:]] == [("kite", True)]
    assert left[0]["expires_at"] > left[0]["created_at"]
    assert (refused.code, "'*' has no meaning in a command" in refused.err) == (2, True)


def test_rules_of_a_user_need_no_session(cli: Cli) -> None:
    added = cli(
        "rules", "add", "--user", "u-7", "--deny", "Bash(git push:*)", "--why", "freeze", "--as", "ana", "--json"
    )
    (rule_id,) = added.document["added"]
    listed = cli("rules", "list", "--user", "u-7")
    of_another = cli("rules", "list", "--user", "u-8")
    revoked = cli("rules", "revoke", "--user", "u-7", rule_id, "--as", "ben")
    changes = cli("rules", "list", "--user", "u-7", "--changes", "--json").document
    misspelt = cli("rules", "add", "--user", "u-7", "--deny", "Bsh")

    assert "Bash(git push:*)" in listed.out
    assert of_another.out == "no rules\n"
    assert revoked.out == f"revoked {rule_id}\n"
    assert [(change["by"], len(change.get("revoked", []))) for change in changes] == [("ana", 0), ("ben", 1)]
    assert (misspelt.code, "did you mean 'Bash'?" in misspelt.err) == (2, True)
