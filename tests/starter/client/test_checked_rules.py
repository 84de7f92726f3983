"""Rules that come in with an agent made in Python, or with a state, are held to what agent files are held to."""

from typing import Any

import pytest

from longhaul.agent.reducer.agent_state import AgentState
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent, checked
from longhaul.starter.client.states.state_json import edited, read
from longhaul.starter.client.wire import Refused
from tests.agent.play import Play, text

BAD: list[tuple[dict[str, Any], str]] = [
    ({"tool_name": "Bash", "rule_content": "git *", "behavior": "deny"}, r"rules: Bash\(git \*\): .*'git add:\*'"),
    ({"tool_name": "Bash", "rule_content": "rm -rf /; ls"}, "write a rule for each"),
    ({"tool_name": "Read", "rule_content": "~/.ssh/**", "behavior": "allow"}, "write the absolute path"),
    ({"tool_name": "Edit", "rule_content": "src**", "behavior": "deny"}, r"Edit\(src\*\*\)"),
    ({"tool_name": "Ba*"}, r"tool_name 'Ba\*' is no tool's name"),
]
GOOD = PermissionRule(tool_name="Bash", rule_content="git push:*", behavior=Behavior.DENY)


@pytest.mark.parametrize(("rule", "complaint"), BAD)
def test_an_agent_made_in_python_with_a_rule_that_means_nothing_is_refused(
    rule: dict[str, Any], complaint: str
) -> None:
    spec = AgentSpec(name="mason", permission=PermissionContext(rules=(GOOD, PermissionRule.model_validate(rule))))

    with pytest.raises(BadAgent, match=f"agent 'mason': permission.rules.*{complaint.removeprefix('rules: ')}"):
        checked(spec)


@pytest.mark.parametrize(("rule", "complaint"), BAD)
def test_a_state_with_a_rule_that_means_nothing_is_refused(rule: dict[str, Any], complaint: str) -> None:
    state = AgentState(session_id="s", user_id=None, agent="mason")
    document = state.model_dump(mode="json") | {"permission_context": {"rules": [rule]}}

    with pytest.raises(Refused, match=complaint):
        read(document)
    with pytest.raises(Refused, match="permission_context"):
        edited(state, {"permission_context": {"rules": [rule]}})


def test_what_can_be_meant_so_is_taken() -> None:
    context = PermissionContext(rules=(GOOD,))

    assert checked(AgentSpec(permission=context)).permission.rules == (GOOD,)
    assert read(AgentState(session_id="s", user_id=None, permission_context=context)).permission_context == context


def test_an_operation_with_such_a_state_changes_nothing() -> None:
    play = Play([text("Done.")])
    play.say("Go")
    play.run()
    state = play.journal.state.model_dump(mode="json") | {"permission_context": {"rules": [BAD[0][0]]}}

    answer = play.tell("replace_state", {"state": state, "by": "eve"})

    assert "state.permission_context.rules: Bash(git *)" in str(answer)
    assert "git *" not in [rule.rule_content for rule in play.journal.state.permission_context.rules]
