"""What a user may set: names, limits, and JSON that can be read back."""

import json

import pytest
from pydantic import ValidationError

from longhaul.agent.plain.measures import iso
from longhaul.agent.values.permission import PermissionContext, PermissionMode, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec, ModelConfig, ReActConfig
from longhaul.agent.values.spec.workspace import Workspace

SPEC = AgentSpec.model_validate(
    {
        "name": "mason",
        "system_prompt": "Build.",
        "model": "anthropic:stone-4",
        "tools": ["Bash"],
        "permission": {"mode": "explore", "rules": [{"tool_name": "Bash", "rule_content": "make:*"}]},
        "model_config": {"fallback_model": "openai:brick-5", "temperature": 0.5},
        "react_config": {"max_iters": 9},
        "workspace": {"root": "/site"},
    }
)


def test_a_spec_comes_back_from_its_own_json() -> None:
    assert AgentSpec.model_validate_json(SPEC.model_dump_json()) == SPEC
    assert AgentSpec.model_validate(SPEC.model_dump()) == SPEC


def test_the_model_settings_keep_the_seeds_name_in_json() -> None:
    assert json.loads(SPEC.model_dump_json())["model_config"]["fallback_model"] == "openai:brick-5"


def test_a_spec_says_what_was_set() -> None:
    assert SPEC.permission == PermissionContext(
        mode=PermissionMode.EXPLORE, rules=(PermissionRule(tool_name="Bash", rule_content="make:*"),)
    )
    assert SPEC.llm_config == ModelConfig(fallback_model="openai:brick-5", temperature=0.5)
    assert SPEC.react_config == ReActConfig(max_iters=9)
    assert SPEC.workspace == Workspace(root="/site")


@pytest.mark.proves("A6", "B2")
def test_the_seeds_defaults_hold() -> None:
    spec = AgentSpec()

    assert (spec.react_config.max_iters, spec.react_config.stop_on_reject) == (50, False)
    assert (spec.llm_config.fallback_model, spec.permission.mode) == (None, PermissionMode.DEFAULT)


@pytest.mark.proves("A6")
@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"tools": ["Bash", "Read", "Bash"]}, r"names a tool twice; name each one once"),
        ({"name": ""}, "at least 1 character"),
        ({"name": "x" * 201}, "at most 200 characters"),
        ({"react_config": {"max_iters": 0}}, "greater than or equal to 1"),
        ({"model_config": {"temperature": 2.5}}, "less than or equal to 2"),
        ({"model_config": {"api_key": "sk-1"}}, "Extra inputs are not permitted"),
        ({"sytem_prompt": "typo"}, "Extra inputs are not permitted"),
        ({"workspace": {"root": "/site", "place": "host"}}, "Input should be 'shared'"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(body: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        AgentSpec.model_validate(body)


def test_times_are_written_with_milliseconds_and_zone() -> None:
    assert iso(0) == "1970-01-01T00:00:00.000+00:00"
    assert iso(1_764_072_000_250) == "2025-11-25T12:00:00.250+00:00"
