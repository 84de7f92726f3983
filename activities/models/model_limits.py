"""The limits of a model, known by its name: its window, the most that it writes, and how many tools its provider
takes; and the model that a name stands for. `ModelConfig.context_length` overrules the window.

Limits of providers on the number of tools and the length of their descriptions: what is above them is told
otherwise, and no request is refused for it twice.

Published, as looked up on 2026-11-24: 128 tools by OpenAI, Azure ("Quotas and limits"), DeepSeek and Groq, 200 by xAI,
512 by Google; descriptions of 1,024 characters by Azure. Others say it when they refuse: that is kept for the model.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.activities.models.requests.model_parameters import is_grok, is_reasoning_model, output_limit
from longhaul.activities.models.requests.model_rules import rules_of
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ModelConfig
from longhaul.agent.values.spec.known_names import split_model, unknown_model
from longhaul.agent.values.spec.profiles import APIS, ModelProfile


@dataclass(frozen=True, slots=True)
class ModelName:
    provider: str
    name: str
    """The provider's own name of the model; for `scripted` the path of the file."""


@dataclass(frozen=True, slots=True)
class Called:
    """What a name stands for."""

    name: ModelName
    config: ModelConfig
    """As the model is called, with its address and the name of its key."""
    profile: ModelProfile | None = None
    of_operator: bool = False
    """The profile is the operator's own, whose word on keys and addresses counts."""

    @property
    def full_name(self) -> str:
        """With the provider's prefix."""
        return f"{self.name.provider}:{self.name.name}"

    @property
    def told_by(self) -> str:
        """The name by which the model's family is told, with the provider's prefix."""
        return self.full_name if self.profile is None else f"{self.name.provider}:{self.profile.told_by}"


def parse_model_name(full_model_name: str) -> ModelName:
    """Split `anthropic:claude-x`. Raises SetupError for a name without a known prefix or without a rest."""
    if why := unknown_model(full_model_name):
        raise SetupError(f"{why[0].upper()}{why[1:]}.")
    prefix, name = split_model(full_model_name)
    return ModelName(prefix, name.strip())


@dataclass(frozen=True, slots=True)
class ToolLimits:
    most: int = 10_000
    longest: int = 1_000_000
    """Characters of a description."""

    def within(self, other: "ToolLimits") -> "ToolLimits":
        return ToolLimits(min(self.most, other.most), min(self.longest, other.longest))


_NONE = ToolLimits()
_OPENAI, _AZURE, _GOOGLE, _XAI = ToolLimits(128), ToolLimits(128, 1024), ToolLimits(512), ToolLimits(200)
_OF_PROVIDERS = {
    **dict.fromkeys(("azure", "azure-chat", "ai:azure"), _AZURE),
    **dict.fromkeys(("ai:deepseek", "ai:groq"), _OPENAI),
    **dict.fromkeys(("ai:google", "ai:google-vertex"), _GOOGLE),
    "xai": _XAI,
}
_OF_HOSTS = {
    **dict.fromkeys(("api.openai.com", "api.deepseek.com", "api.groq.com"), _OPENAI),
    **dict.fromkeys(("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"), _AZURE),
    "generativelanguage.googleapis.com": _GOOGLE,
    "api.x.ai": _XAI,
}
"""By the host's name, or what it ends with behind a dot."""

_TOO_MANY = re.compile(
    r"'tools'\s*: (?:array too long\. Expected an array with maximum length|maximum number of items is) (\d+)"
    r"|at most (\d+) (?:function declarations|functions|tools)\b"
    r"|(?:more than|a maximum of|up to) (\d+) (?:functions|tools)\b"
    r"|\btools\b[^.]{0,60}the maximum is (\d+)"
    r"|number of tools exceeds (\d+)",
    re.IGNORECASE,
)
"""OpenAI, Groq, Google, GitHub, xAI."""
_TOO_LONG = re.compile(r"description'?: string too long\. Expected a string with maximum length (\d+)", re.IGNORECASE)
_FEWEST, _SHORTEST = 2, 64
"""A limit below these is misread."""
_REFUSING = (400, 413, 422, 500)
_REST = " (The rest of it stands in the system prompt.)"
_MOST_NAMED = 10
MODELS_KEPT = 1_000
"""Of one that was forgotten it is learned again."""


class KnownToolLimits:
    """Of one worker's providers. What a server has said holds until the worker ends."""

    def __init__(self) -> None:
        self._learned = dict[tuple[str, str], ToolLimits]()

    async def asked(
        self,
        provider: str,
        base_url: str,
        request: ModelRequest,
        attempt: Callable[[ModelRequest], Awaitable[ModelReply]],
    ) -> ModelReply:
        """The reply to the request with what the server takes of its tools; once more where it refuses and says how
        much that is."""
        where = (base_url, request.model if request.profile is None else request.profile.model)
        known = published(provider, base_url).within(self._learned.get(where, _NONE))
        try:
            return await _ask_within(request, known, attempt)
        except Exception as error:
            narrower = known.within(limits_in(error))
            if fitted(request, narrower) == fitted(request, known):
                raise
        self._learned[where] = narrower
        if len(self._learned) > MODELS_KEPT:
            del self._learned[next(iter(self._learned))]
        return await _ask_within(request, narrower, attempt)


def published(provider: str, base_url: str) -> ToolLimits:
    host = urlsplit(base_url).hostname or ""
    found = [each for name, each in _OF_HOSTS.items() if host == name or host.endswith(f".{name}")]
    limits = _OF_PROVIDERS.get(provider, _NONE)
    return limits.within(found[0]) if found else limits


def limits_in(error: Exception) -> ToolLimits:
    """What a refusal says of them."""
    if getattr(error, "status_code", getattr(error, "status", 0)) not in _REFUSING:
        return _NONE
    text = str(error)
    many, long = _TOO_MANY.search(text), _TOO_LONG.search(text)
    most = int(next(filter(None, many.groups()))[:6]) if many else _NONE.most
    longest = int(long[1][:6]) if long else _NONE.longest
    return ToolLimits(most if most >= _FEWEST else _NONE.most, longest if longest >= _SHORTEST else _NONE.longest)


async def _ask_within(
    request: ModelRequest, limits: ToolLimits, attempt: Callable[[ModelRequest], Awaitable[ModelReply]]
) -> ModelReply:
    fit, notes = fitted(request, limits)
    reply = await attempt(fit)
    return replace(reply, notes=(*reply.notes, *notes)) if notes else reply


def fitted(request: ModelRequest, limits: ToolLimits) -> tuple[ModelRequest, list[str]]:
    """The request within the limits, and what to say of it. The last tools are left out, for an agent's own come first,
    and never the one that has to be called."""
    notes: list[str] = []
    room = limits.most - (request.answer is not None)
    tools: Sequence[ToolDescriptor] = request.tools
    if len(tools) > room:
        must = [tool for tool in tools if tool.name == request.must_call]
        kept = {tool.name for tool in [*must, *(tool for tool in tools if tool not in must)][:room]}
        notes.append(
            f"This model's provider takes {limits.most} tools: "
            f"{_named([tool.name for tool in tools if tool.name not in kept])} were left out. Name fewer "
            "(`enable_tools` and `disable_tools` of MCP servers), or put them into tool groups."
        )
        tools = [tool for tool in tools if tool.name in kept]
    long = [tool for tool in tools if len(tool.description) > limits.longest]
    if not long:
        return (replace(request, tools=tools) if notes else request), notes
    notes.append(
        f"This model's provider takes descriptions of {limits.longest:,} characters: the rest of "
        f"{_named([tool.name for tool in long])} stands in the system prompt."
    )
    short = [_shortened(tool, limits.longest) if tool in long else tool for tool in tools]
    whole = "".join(f"\n\n## {tool.name}\n\n{tool.description}" for tool in long)
    return replace(request, tools=short, system=f"{request.system}\n\n# More about tools{whole}"), notes


def _shortened(tool: ToolDescriptor, longest: int) -> ToolDescriptor:
    room = longest - len(_REST)
    words = tool.description[:room].rsplit(maxsplit=1)[0] if room > _SHORTEST // 2 else ""
    return tool.model_copy(update={"description": f"{words}{_REST}".strip()[:longest]})


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join([*names[:_MOST_NAMED], *([f"{rest} more"] if rest > 0 else [])])


def most_written(called: Called | None, config: ModelConfig) -> int:
    """What a call may write at the most, whatever it is about: where nobody knows whether a model thinks, it does."""
    if called is None:
        return output_limit(config, thinks=True)
    config, name = called.config, called.told_by
    asked = config.thinking_budget_tokens is not None or config.reasoning_effort is not None
    api, rules = APIS[called.name.provider], rules_of(name)
    if api == "script":
        return config.max_output_tokens
    unknown = not rules.thinks and api in ("messages", "ai")
    thinks = asked or rules.thinks_unasked or is_reasoning_model(name) or is_grok(name) or unknown
    thinks = thinks or (api == "ai" and rules.may_think)
    most = max(output_limit(config, thinks=thinks), config.max_output_tokens + (config.thinking_budget_tokens or 0))
    return most if rules.output is None else min(most, rules.output)


DEFAULT_TOKENS = 128_000
"""Of a model whose window nobody knows. Where sizes differ by plan or release the smaller one counts: too early a
compression costs little, too late a one costs a refused call."""


def window_of(model: str, config: ModelConfig, called: Called | None) -> int:
    """Of a model as an agent names it. `called`: what that stands for, where it is known."""
    if called is None:
        return config.context_length or context_length(model)
    return called.config.context_length or context_length(called.told_by)


def context_length(full_model_name: str) -> int:
    """Tokens of input and output together, for a name with or without its provider prefix and organisation."""
    return rules_of(full_model_name).window or DEFAULT_TOKENS
