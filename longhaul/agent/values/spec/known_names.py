"""Names that mean the same on every worker: whoever writes another one hears of it before a session begins.

What an operator adds is named `module:name`, which workers alone know (`activities.attempt.worker_capabilities`).
"""

import re
from collections.abc import Collection, Iterable
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator

from longhaul.agent.plain.text import LONGEST_NAME, did_you_mean, nearest

VENDORS = (
    *("azure", "bedrock", "cerebras", "cohere", "deepseek", "fireworks", "google", "google-vertex", "groq", "litellm"),
    *("mistral", "moonshotai", "nebius", "ollama", "openrouter", "sambanova", "together", "vercel", "vllm", "zai"),
)
"""Of models that are called through pydantic-ai, as `ai:VENDOR:NAME`, where a worker has the extra `ai`."""
_AI = "ai"
CLOUDS = ("azure", "azure-chat", "bedrock", "bedrock-mantle", "foundry", "vertex", "ai:bedrock", "ai:google-vertex")
"""That profiles alone name: a call needs more than the name of a model there, as a region or a project."""
PROVIDERS = (
    *("anthropic", "openai", "openai-chat", "qwen", "xai", "scripted"),
    *(name for vendor in VENDORS if (name := f"{_AI}:{vendor}") not in CLOUDS),
)
"""Of models, by prefix: `activities.models.providers` has their addresses."""
OFFLOADERS = ("workspace", "blobs", "redis", "none")
CONDENSERS = ("summary", "drop_oldest", "mask_observations")
ANALYZERS = ("rules", "model")
EffortName = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(EffortName)
"""Of reasoning, ascending: `activities.models.requests.model_parameters` knows which models have which."""

FILE_TOOLS = ("Read", "Write", "Edit", "Grep", "Glob")
"""Their rules speak of paths, and hold for whichever tool reaches these."""
WEB_FETCH, WEB_SEARCH = "WebFetch", "WebSearch"
DEFAULT_TOOLS = ("Bash", *FILE_TOOLS, "recall")
TOOLS = (
    *(*DEFAULT_TOOLS, "BashOutput", "KillShell", "Skill"),
    *("RunProgram", "Agent", "AgentList", "AgentSend", "AgentStop"),
    *("todo_write", "plan_enter", "plan_exit", "reset_equipped_tools", "sleep", "wait_for"),
    *("create_plan", "revise_current_plan", "update_subtask_state", "finish_subtask", "view_subtasks", "finish_plan"),
    *("view_historical_plans", "recover_historical_plan"),
    *("record_to_memory", "retrieve_from_memory", "retrieve_knowledge"),
    *(WEB_FETCH, WEB_SEARCH),
    *("find_tools", "call_tool"),
)
"""Without a module. A rule about one counts also where the agent lacks it: those of files hold for Bash too."""
MCP = "mcp__"
"""How the names of tools begin that an MCP server brings."""

_MEANT = 0.75
"""Nearer than elsewhere: `TodoRead`, `MultiEdit` and `WriteFile` are tools of others, and no slips for ours."""
_PROFILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
EXAMPLES = (
    "anthropic:NAME, openai:NAME (Responses), openai-chat:NAME (Chat Completions), ai:VENDOR:NAME, qwen:NAME, "
    "xai:NAME or scripted:FILE"
)


def is_profile_name(name: str) -> bool:
    """Whether a model could have this name in a `[models.NAME]`, of the agent or of some worker."""
    return _PROFILE.fullmatch(name) is not None and name not in (*PROVIDERS, _AI)


def split_model(name: str) -> tuple[str, str]:
    """`ai:google:gemini-3-pro` is `ai:google` and `gemini-3-pro`; of a name without a prefix the second part is empty.
    Neither part is looked at."""
    prefix, _, rest = name.partition(":")
    if prefix != _AI:
        return prefix, rest
    vendor, _, rest = rest.partition(":")
    return f"{_AI}:{vendor}", rest


_OTHERS_NAMES = {
    **dict.fromkeys(("claude", "anthropic_messages"), "anthropic"),
    **dict.fromkeys(("openai-responses", "openai_responses", "gpt", "chatgpt"), "openai"),
    **dict.fromkeys(("gemini", "google", "google-gla", "google_genai"), "ai:google"),
    **dict.fromkeys(("grok", "x-ai"), "xai"),
    **dict.fromkeys(("moonshot", "kimi"), "ai:moonshotai"),
    **dict.fromkeys(("z-ai", "glm", "zai-org", "zhipuai"), "ai:zai"),
    **dict.fromkeys(("mistralai", "mistral"), "ai:mistral"),
    **dict.fromkeys(("dashscope", "alibaba"), "qwen"),
}
"""What stands before a model's name for users of LiteLLM, OpenRouter and other libraries."""


def _meant(name: str) -> str:
    """The name as it is written here, for one that is written as elsewhere; empty where that is not known."""
    prefix, _, rest = name.replace("/", ":", 1).partition(":") if "/" in name.partition(":")[0] else name.partition(":")
    ours = _OTHERS_NAMES.get(prefix.lower(), prefix.lower())
    found = next((each for each in (ours, f"{_AI}:{ours}") if each in PROVIDERS), "")
    return f"{found}:{rest}" if found and rest.strip() and f"{found}:{rest}" != name else ""


def unknown_model(name: str) -> str:
    """Why no worker can have a model of this name, as a sentence without its full stop; empty where one may. Names of
    profiles are not looked at."""
    prefix, rest = split_model(name)
    if prefix in PROVIDERS and rest.strip():
        return ""
    if prefix in CLOUDS:
        return f'model {name[:LONGEST_NAME]!r} needs a profile: write [models.NAME] with provider = "{prefix}"'
    plain = prefix.removeprefix(f"{_AI}:")
    meant = (plain if plain in PROVIDERS else nearest(prefix, PROVIDERS)) if rest.strip() else ""
    whole = _meant(name) or (f"{meant}:{rest}" if meant else "")
    hint = f"did you mean {whole[:LONGEST_NAME]!r}?" if whole else f"write {EXAMPLES}"
    return f"model {name[:LONGEST_NAME]!r} is unknown: {hint}"


def check_tools(where: str, named: Iterable[str], tools: Collection[str]) -> None:
    """Raise ValueError for a setting about a tool whose name is nearly one of the agent's: it would never count. One
    about quite another tool may stand there for other agents."""
    for name in named:
        if name not in tools and (meant := nearest(name, tools)):
            raise ValueError(f"{where}: this agent has no tool {name[:LONGEST_NAME]!r}; did you mean {meant!r}?")


def without_tool(named: Iterable[str], tools: Collection[str]) -> tuple[str, ...]:
    """Tools of rules, each once, that are neither among these nor of our own: there the rules bind nothing. `mcp__NAME`
    is there with the first tool of the server."""
    return tuple(
        name
        for name in dict.fromkeys(named)
        if name not in (*tools, *TOOLS)
        and not (name.startswith(MCP) and any(tool.startswith(f"{name}__") for tool in tools))
    )


def misspelt_rule(named: Iterable[str], tools: Collection[str] = ()) -> str:
    """Why the first rule can't be taken whose tool is none of these, but nearly one; empty when there is no such rule.
    A rule about quite another tool may be meant for other agents, and what servers bring has any name."""
    for name in without_tool(named, tools):
        if not name.startswith(MCP) and (meant := nearest(name, (*tools, *TOOLS), _MEANT)):
            shown = name[:LONGEST_NAME]
            return f"rules: there is no tool {shown!r}, so a rule about it binds nothing; did you mean {meant!r}?"
    return ""


def _model(name: str) -> str:
    if name and not is_profile_name(name) and (why := unknown_model(name)):
        raise ValueError(why)
    return name


def _offloader(name: str) -> str:
    return _known("offloader", name, OFFLOADERS)


def _condenser(name: str) -> str:
    return _known("condenser", name, CONDENSERS)


def _analyzer(name: str) -> str:
    return _known("analyzer", name, ANALYZERS)


def _effort(name: str) -> str:
    if name not in EFFORTS:
        raise ValueError(f"there is no effort {name[:LONGEST_NAME]!r}; {did_you_mean(name, EFFORTS)}")
    return name


def _known(kind: str, name: str, known: tuple[str, ...]) -> str:
    """The name. Raises ValueError for one that is none of these, and no `module:name` of some worker either."""
    module, _, attribute = name.partition(":")
    if name not in known and not (module and attribute):
        hint = did_you_mean(name, known, "write module:name for one of a worker's own, or one of")
        raise ValueError(f"there is no {kind} {name[:LONGEST_NAME]!r}; {hint}")
    return name


FullModelName = Annotated[str, AfterValidator(_model)]
"""Empty: none is named."""
OffloaderName = Annotated[str, AfterValidator(_offloader)]
CondenserName = Annotated[str, AfterValidator(_condenser)]
AnalyzerName = Annotated[str, AfterValidator(_analyzer)]
Effort = Annotated[str, AfterValidator(_effort)]
