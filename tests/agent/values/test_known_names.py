"""Names in an agent's settings: what can be told from our own tables is refused where an agent is made."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from longhaul.activities.compression.condensers import BUILT_IN
from longhaul.activities.memory import RecordToMemory, RetrieveFromMemory, RetrieveKnowledge
from longhaul.activities.models import providers
from longhaul.activities.tools.recall import Recall
from longhaul.activities.tools.registry import default_tools
from longhaul.activities.tools.web import WebFetch, WebSearch
from longhaul.agent.decisions.session_tools.all_session_tools import INSIDE
from longhaul.agent.operations.bodies import Compact, Configure
from longhaul.agent.plain.errors import what_is_wrong
from longhaul.agent.plain.text import did_you_mean
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.known_names import CLOUDS, CONDENSERS, PROVIDERS, TOOLS, unknown_model
from longhaul.agent.values.subagents import AGENT, RUN_PROGRAM

MISSPELT: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"model": "antropic:claude-x"}, "did you mean 'anthropic:claude-x'?"),
    "model_config.fallback_model": ({"model_config": {"fallback_model": "opnai:x"}}, "did you mean 'openai:x'?"),
    "model_config.reasoning_effort": (
        {"model_config": {"reasoning_effort": "hihg"}},
        "no effort 'hihg'; did you mean 'high'?",
    ),
    "models.provider": (
        {"models": {"tide": {"provider": "antropic", "model": "x"}}},
        "no provider 'antropic'; did you mean 'anthropic'?",
    ),
    "models.service_tier": (
        {"models": {"tide": {"provider": "openai", "model": "x", "service_tier": "felx"}}},
        "no 'felx'; did you mean 'flex'?",
    ),
    "permission.analyzer_model": ({"permission": {"analyzer_model": "qewn:plus"}}, "did you mean 'qwen:plus'?"),
    "mcps.sampling.model": (
        {"mcps": [{"name": "quay", "sampling": {"model": "qewn:plus"}}]},
        "did you mean 'qwen:plus'?",
    ),
    "permission.analyzers": ({"permission": {"analyzers": ["rule"]}}, "no analyzer 'rule'; did you mean 'rules'?"),
    "permission.tools": ({"permission": {"tools": {"Bsh": {}}}}, "no tool 'Bsh'; did you mean 'Bash'?"),
    "permission.deadline.tools": (
        {"permission": {"deadline": {"tools": {"Gerp": {}}}}},
        "no tool 'Gerp'; did you mean 'Grep'?",
    ),
    "permission.rules.tool_name": (
        {"permission": {"rules": [{"tool_name": "Bsh", "behavior": "deny"}]}},
        "permission.rules: there is no tool 'Bsh', so a rule about it binds nothing; did you mean 'Bash'?",
    ),
    "secrets.tools": ({"secrets": {"tools": {"bash": ["A"]}}}, "no tool 'bash'; did you mean 'Bash'?"),
    "stuck.polling": ({"stuck": {"polling": ["Raed"]}}, "no tool 'Raed'; did you mean 'Read'?"),
    "context_config.condensers": ({"context_config": {"condensers": ["sumary"]}}, "did you mean 'summary'?"),
    "context_config.summary_schema": (
        {"context_config": {"summary_schema": {"type": "array"}}},
        "summary_schema: it has to describe an object",
    ),
    "temporal_tools": (
        {"tools": ["refund"], "temporal_tools": {"refnd": {"target": "activity:refund@q"}}},
        "the agent does not have this tool; add 'refnd' to tools",
    ),
    "temporal_tools.target": (
        {"tools": ["refund"], "temporal_tools": {"refund": {"target": "actvity:refund@q"}}},
        "write activity:NAME@QUEUE",
    ),
    "temporal_tools.parameters": (
        {
            "tools": ["activity:refund@q"],
            "temporal_tools": {
                "refund": {"input_schema": {"type": "object", "properties": {}}, "parameters": ["odrer"]}
            },
        },
        "input_schema has no property 'odrer'",
    ),
    "offloader": ({"offloader": "workspce"}, "no offloader 'workspce'; did you mean 'workspace'?"),
    "workspace.root": ({"workspace": {"root": "src"}}, "root: it has to be an absolute path"),
    "workspace.at": (
        {"workspace": {"root": "/src", "place": "worktree", "at": "main"}},
        "at: String should match pattern",
    ),
    "workspace.host": (
        {"workspace": {"root": "/src", "place": "local", "host": "my den"}},
        "host: 'my den' is no name of a host",
    ),
}
"""Refused by whoever reads the agent: a client, an agent file, a session that is started by hand."""

BY_WORKERS = {
    *(
        "tools",
        "tool_groups",
        "tool_groups.tools",
        "middlewares",
        "custom_agent",
        "postprocess",
        "skills",
        "secrets.allow",
    ),
    *("agent_context.prompt_template", "offloader", "context_config.condensers", "permission.analyzers"),
    *("knowledge_bases", "workspace.root", "workspace.seal.image", "model_config.base_url", "model_config.api_key_env"),
    *("models.base_url", "models.api_key_env"),
}
"""Looked for by the first activity: `tests.workflows.workers.test_misspelt_names`."""
LISTED = {
    *("mcps.name", *(f"mcps.mcp_config.{name}" for name in ("command", "args", "env", "cwd", "url", "headers"))),
}
"""And held against what the operator has listed: `tests.activities.mcp.test_offered`."""

NO_NAMES = {
    *(
        "name",
        "description",
        "agents",
        "team",
        "system_prompt",
        "tool_groups.description",
        "react_config.interruption_message",
    ),
    *("context_config.compression_prompt", "context_config.summary_template", "permission.deadline.escalate_to"),
    *("permission.deadline.tools.escalate_to", "permission.deadline.by_risk.escalate_to"),
    *("mcps.enable_tools", "mcps.disable_tools"),
    *("agent_context.system_prefix", "agent_context.system_suffix"),
    *("agent_context.knowledge.name", "agent_context.knowledge.triggers", "agent_context.knowledge.text"),
    *("permission.working_directories", "permission.grantable"),
    *(f"permission.rules.{name}" for name in ("rule_content", "source", "id", "author", "reason")),
    *(f"permission.rules.{name}" for name in ("created_at", "expires_at")),
    *("models", "models.prices.source", "custom_agent_config", "fairness_key"),
    *("temporal_tools.description", "temporal_tools.input_schema"),
    *(f"models.{name}" for name in ("model", "family", "headers", "betas", "extra_body", "stop")),
    *(f"models.{name}" for name in ("region", "project", "api_version")),
}
"""Words of whoever writes them and of the servers that they write to, times, and patterns of rules, which are checked
as rules."""


def texts(model: type[BaseModel], before: str = "") -> Iterator[str]:
    """The settings that hold text, by their paths."""
    for name, field in model.model_fields.items():
        path = f"{before}{field.alias or name}"
        kinds = {*_kinds(field.annotation)}
        if str in kinds or path.endswith("summary_schema"):
            yield path
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel) and kind is not AgentSpec:  # agents within agents
                yield from texts(kind, f"{path}.")


def _kinds(annotation: Any) -> Iterator[Any]:
    yield annotation
    for inner in get_args(annotation):
        yield from _kinds(inner)


@pytest.mark.proves("A6")
def test_each_setting_with_text_is_checked_somewhere_or_is_no_name() -> None:
    of_calls = {name for name in texts(AgentSpec) if name.startswith("model_config.profiles")}  # refused in an agent

    assert {*texts(AgentSpec)} - of_calls == {*MISSPELT, *BY_WORKERS, *LISTED, *NO_NAMES}


@pytest.mark.proves("A6")
@pytest.mark.parametrize("where", MISSPELT)
def test_a_misspelt_name_is_refused_with_the_nearest(where: str) -> None:
    body, sentence = MISSPELT[where]
    with pytest.raises(ValidationError) as refusal:
        AgentSpec.model_validate(body)

    assert sentence in what_is_wrong(refusal.value)


@pytest.mark.parametrize(
    ("operation", "body", "sentence"),
    [
        (Configure, {"model": "opena:x"}, "did you mean 'openai:x'?"),
        (Configure, {"model": "ai:xai:grok-4.7"}, "did you mean 'xai:grok-4.7'?"),
        (Configure, {"model": "ai:anthropic:x"}, "did you mean 'anthropic:x'?"),
        (Configure, {"analyzers": ["modle"]}, "did you mean 'model'?"),
        (Configure, {"mode": "bypas"}, "'default', 'accept_edits', 'explore', 'bypass'"),
        (Compact, {"context_config": {"condensers": ["drop_odlest"]}}, "did you mean 'drop_oldest'?"),
        (Compact, {"context_config": {"summary_schema": {"properties": {}}}}, "has to describe an object"),
    ],
)
def test_an_operation_with_a_misspelt_name_is_refused(
    operation: type[BaseModel], body: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        operation.model_validate(body)

    said = what_is_wrong(refusal.value)
    assert sentence in said
    assert "opena:x" not in said or said.count("'opena:x'") == 1, "a text that is quoted is not told once more"


def test_what_only_workers_know_is_left_to_them() -> None:
    spec = AgentSpec.model_validate(
        {
            "offloader": "shop.buckets:for_owner",
            "context_config": {"condensers": ["shop.memory:Keep"]},
            "permission": {"analyzers": ["shop.safety:Guard"]},
        }
    )

    assert spec.offloader == "shop.buckets:for_owner"


def test_the_tables_of_the_workers_have_the_same_names() -> None:
    assert (tuple(providers.PROVIDERS), tuple(BUILT_IN)) == ((*PROVIDERS, *CLOUDS), CONDENSERS)
    of_memory = (RecordToMemory.name, RetrieveFromMemory.name, RetrieveKnowledge.name)
    of_web = (WebFetch.name, WebSearch.name, RUN_PROGRAM)
    # Grep is left out where there is no ripgrep.
    assert {*(tool.name for tool in default_tools()), "Grep", Recall.name, AGENT, *INSIDE, *of_memory, *of_web} == {
        *TOOLS
    }


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("redactr", "did you mean 'redactor'?"),
        ("REDACTOR", "did you mean 'redactor'?"),
        ("x", "they have: audit, redactor"),
        ("r" * 1_000_000, "they have: audit, redactor"),
    ],
)
def test_the_nearest_name_is_told_else_all(name: str, answer: str) -> None:
    assert did_you_mean(name, ["redactor", "audit"], "they have") == answer


def test_of_many_names_twenty_are_told() -> None:
    assert did_you_mean("x", [f"tool_{number:02}" for number in range(30)]).endswith("tool_19 and 10 more")
    assert did_you_mean("x", []) == "there are: none"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("anthropic/claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("claude:claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("openai/gpt-6.1-sol", "openai:gpt-6.1-sol"),
        ("openai-responses:gpt-6.1-sol", "openai:gpt-6.1-sol"),
        ("OpenAI:gpt-5", "openai:gpt-5"),
        ("gemini/gemini-3-pro", "ai:google:gemini-3-pro"),
        ("google:gemini-3-pro", "ai:google:gemini-3-pro"),
        ("grok:grok-4.7", "xai:grok-4.7"),
        ("x-ai/grok-4.7", "xai:grok-4.7"),
        ("moonshotai/Kimi-K3", "ai:moonshotai:Kimi-K3"),
        ("z-ai/glm-5.3", "ai:zai:glm-5.3"),
        ("openrouter/anthropic/claude-opus-4.8", "ai:openrouter:anthropic/claude-opus-4.8"),
        ("groq:openai/gpt-oss-120b", "ai:groq:openai/gpt-oss-120b"),
        ("ollama/qwen3:32b", "ai:ollama:qwen3:32b"),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours(typed: str, meant: str) -> None:
    assert unknown_model(typed) == f"model {typed!r} is unknown: did you mean {meant!r}?"
