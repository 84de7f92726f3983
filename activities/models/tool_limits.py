"""Limits of providers on the number of tools and the length of their descriptions: what is above them is told
otherwise, and no request is refused for it twice.

Published, as looked up on 2026-11-24: 128 tools by OpenAI, Azure ("Quotas and limits"), DeepSeek and Groq, 200 by xAI,
512 by Google; descriptions of 1,024 characters by Azure. Others say it when they refuse: that is kept for the model.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from longhaul.activities.models.model import ModelReply, ModelRequest
from longhaul.agent.values.conversation.tools import ToolDescriptor


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
            return await _told(request, known, attempt)
        except Exception as error:
            narrower = known.within(limits_in(error))
            if fitted(request, narrower) == fitted(request, known):
                raise
        self._learned[where] = narrower
        if len(self._learned) > MODELS_KEPT:
            del self._learned[next(iter(self._learned))]
        return await _told(request, narrower, attempt)


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


async def _told(
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
