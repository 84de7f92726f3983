"""What states of others say of permission: taken over in our words, or refused at its place; never dropped."""

import json
from typing import Any

import pytest

from longhaul.agent.incarnation.imported_state import read_state, read_whole
from longhaul.agent.plain.errors import ImportProblem
from longhaul.agent.reducer.agent_state import AgentState
from tests.agent.incarnation.test_imported_state import JAVA, changed
from tests.agent.play import Play

RULES = {
    "deny_rules": {"Bash": [{"tool_name": "Bash", "rule_content": "git push:*", "behavior": "deny", "source": "user"}]},
    "ask_rules": {"Write": [{"tool_name": "Write", "rule_content": "/proj/*", "behavior": "ask", "source": "user"}]},
    "allow_rules": {"Read": [{"tool_name": "Read", "rule_content": None, "behavior": "allow", "source": "project"}]},
}
AGENTSCOPE: dict[str, Any] = {
    "session_id": "9f3c",
    "summary": "",
    "context": [{"id": "m1", "name": "ana", "role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    "reply_context": {"reply_id": "", "cur_iter": 0, "structured_schema": None, "structured_output": None},
    "permission_context": {
        "mode": "accept_edits",
        "working_directories": {"/proj": {"path": "/proj", "source": "user"}},
        **RULES,
    },
    "tool_context": {"max_cache_files": 100, "read_file_cache": [], "activated_groups": ["files"]},
    "tasks_context": {"tasks": []},
    "middle_context": {"Logger": {"lines": 3}},
}
"""As AgentScope 2.0 writes it."""


def with_permission(**fields: Any) -> str:
    permission = {**AGENTSCOPE["permission_context"], **fields}
    return json.dumps({**AGENTSCOPE, "permission_context": permission})


def problems(text: str) -> dict[str, str]:
    with pytest.raises(ImportProblem) as found:
        read_state(text)
    return dict(found.value.problems)


def test_rules_and_directories_of_agentscope_are_taken_over() -> None:
    whole = read_whole(json.dumps(AGENTSCOPE))

    permission = whole.state.permission_context
    assert [(rule.behavior.value, rule.spelt(), rule.source) for rule in permission.rules] == [
        ("deny", "Bash(git push:*)", "user"),
        ("ask", "Write(/proj/**)", "user"),
        ("allow", "Read", "project"),
    ]
    assert (permission.mode.value, permission.working_directories) == ("accept_edits", ("/proj",))
    assert whole.state.tool_context.activated_groups == ("files",)


def test_what_means_nothing_here_is_named() -> None:
    left_out = read_whole(json.dumps(AGENTSCOPE)).left_out

    assert left_out == ("tool_context.max_cache_files", "tool_context.read_file_cache", "middle_context")


def test_of_our_own_export_nothing_is_left_out() -> None:
    state = read_state(json.dumps(AGENTSCOPE))
    text = json.dumps({"version": 1, **state.model_dump(mode="json")})

    assert read_whole(text) == (state, ())


@pytest.mark.parametrize(
    ("tool", "there", "here"),
    [
        ("Bash", "git push:*", "git push:*"),
        ("Bash", None, None),
        ("Bash", "", None),
        ("Write", "/proj/*", "/proj/**"),
        ("Write", "/proj/**", "/proj/**"),
        ("Write", "/etc/passwd", "/etc/passwd"),
        ("Read", "*.env", "/**/*.env"),
        ("mcp__git__push", None, None),
    ],
)
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_rule_binds_no_less_than_there(kind: str, tool: str, there: str | None, here: str | None) -> None:
    rule = {"tool_name": tool, "rule_content": there, "behavior": kind}

    state = read_state(with_permission(**{"deny_rules": {}, "ask_rules": {}, f"{kind}_rules": {tool: [rule]}}))

    [taken] = [rule for rule in state.permission_context.rules if rule.behavior.value == kind]
    assert (taken.tool_name, taken.rule_content) == (tool, here)


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        ("Bash", "rm -rf"),
        ("Bash", "git * push:*"),
        ("Bash", "rm *"),
        ("Write", "/proj/*/secrets"),
        ("Write", "/proj/s?crets"),
        ("Write", "secrets.txt"),
        ("Write", "/proj/*.env"),
        ("Read", "**"),
    ],
)
def test_a_rule_that_would_bind_less_is_refused(tool: str, content: str) -> None:
    rule = {"tool_name": tool, "rule_content": content, "behavior": "deny"}

    said = problems(with_permission(deny_rules={tool: [rule]}))

    assert "would bind fewer calls here" in said[f"permission_context.deny_rules.{tool}[0].rule_content"]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"denied_rules": {}}, "permission_context.denied_rules"),
        ({"deny_rules": [1]}, "permission_context.deny_rules"),
        ({"deny_rules": {"Bash": {}}}, "permission_context.deny_rules.Bash"),
        ({"deny_rules": {"Bash": ["rm"]}}, "permission_context.deny_rules.Bash[0]"),
        ({"deny_rules": {"Bash": [{"tool_name": "Write"}]}}, "permission_context.deny_rules.Bash[0].tool_name"),
        ({"deny_rules": {"Bash": [{"behavior": "allow"}]}}, "permission_context.deny_rules.Bash[0].behavior"),
        ({"deny_rules": {"Bash": [{"contents": "rm"}]}}, "permission_context.deny_rules.Bash[0].contents"),
        ({"rules": [{"tool_name": "Bash", "behaviour": "deny"}]}, "permission_context.rules[0].behaviour"),
        ({"working_directories": {"/x": 7}}, "permission_context.working_directories./x"),
    ],
)
def test_what_is_not_understood_of_permission_is_refused_at_its_place(fields: dict[str, Any], where: str) -> None:
    assert where in problems(with_permission(**fields))


@pytest.mark.parametrize(
    "field", ["deny_rules", "confirmation_policy", "security_analyzer", "permission_mode", "permissions", "rules"]
)
def test_policies_under_other_names_are_refused(field: str) -> None:
    """OpenHands' among them."""
    said = problems(json.dumps({**AGENTSCOPE, field: {"kind": "AlwaysConfirm"}}))

    assert "says what may be done" in said[field]


def test_an_unknown_word_of_javas_permissions_is_refused() -> None:
    document = changed("permission_context/deny_rules/execute/0/scopes", "all")
    document["permission_context"]["denials"] = {}

    said = problems(json.dumps(document))

    assert set(said) == {"permission_context.denials", "permission_context.deny_rules.execute[0].scopes"}
    assert read_whole(json.dumps(JAVA)).left_out == ()


def test_the_session_itself_reads_a_state_no_laxer_than_the_client() -> None:
    play = Play()
    state = {**AGENTSCOPE, "reply_context": None}

    play.tell("replace_state", {"state": state})
    refused = play.tell("replace_state", {"state": {**state, "permission_context": {"denied_rules": {}}}})

    assert "state.permission_context.denied_rules: is not understood" in str(refused)

    assert [rule.spelt() for rule in play.journal.state.permission_context.rules] == [
        "Bash(git push:*)",
        "Write(/proj/**)",
        "Read",
    ]


@pytest.mark.proves("A11")
def test_a_state_needs_no_arguments() -> None:
    state = AgentState()

    assert AgentState.model_validate_json(state.model_dump_json()) == state
    assert (state.session_id, state.context) == ("", [])
