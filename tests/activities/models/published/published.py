"""Rules by which providers refuse requests, as they publish them, and a server on a real port that knows no mercy.

The rules stand in `published_messages`, `published_responses`, `published_chat`, `published_google` and
`published_converse`. Each was looked
up on the day that it names, on the page that it names, and has a request that breaks it.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.activities.models.strict import Refused, Strict

ANTHROPIC, RESPONSES, AZURE, XAI = "Anthropic", "OpenAI Responses", "Azure Responses", "xAI"
CHAT, DEEPSEEK, KIMI, GEMINI, OPEN = "OpenAI Chat", "DeepSeek", "Kimi", "Gemini", "vLLM, OpenRouter"
GOOGLE, CONVERSE = "Gemini's own API", "Bedrock Converse"
SERVERS = (ANTHROPIC, RESPONSES, AZURE, XAI, CHAT, DEEPSEEK, KIMI, GEMINI, OPEN, GOOGLE, CONVERSE)
OF_RESPONSES, OF_CHAT = (RESPONSES, AZURE), (CHAT, DEEPSEEK, KIMI, GEMINI, OPEN)

Body = dict[str, Any]


@dataclass(frozen=True)
class Sent:
    body: Body
    betas: str = ""
    version: str = "2026-10-21"
    """Of Anthropic's API."""
    signed: Mapping[str, str] = field(default_factory=dict)
    """By signature: the digest of what its thought stood behind, or the model that has signed."""

    @property
    def model(self) -> str:
        return str(self.body["model"])


@dataclass(frozen=True)
class Rule:
    name: str
    servers: Sequence[str]
    source: str
    words: str
    """With which the provider refuses, as far as we read them."""
    breaks: Callable[[Sent], bool]
    broken: Callable[[Body], None]
    """Changes a request that all rules allow into one that this rule refuses."""
    asked_again: bool = False
    """We learn of it by a refusal, and ask once more in words."""
    date: str = "2026-11-23"


def refused_by(rules: Sequence[Rule], sent: Sent) -> list[str]:
    return [rule.name for rule in rules if rule.breaks(sent)]


def changed(body: Body, change: Callable[[Body], None]) -> Body:
    told = copy.deepcopy(body)
    change(told)
    return told


@dataclass
class Published(Strict):
    """A server of one kind. What it answers, and what it has signed, `Strict` knows."""

    rules: Sequence[Rule] = ()
    broken: list[str] = field(default_factory=list)
    """Names of the rules by which it has refused."""

    def _answer(self, path: str, body: Body) -> bytes:
        for message in body.get("messages", ()):
            message.setdefault("content", None)  # to say nothing of it is to say that it is null
        for rule in self.rules:
            if rule.breaks(Sent(body, self.betas, self.version, self.signed)):
                self.broken.append(rule.name)
                raise Refused(rule.words)
        return super()._answer(path, body)


NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
STARTS_WITH_A_LETTER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
TOP_LEVEL = ("anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref")


def functions(body: Body) -> list[Body]:
    """Of the tools, whichever API they are for, and of those that came in the midst of messages."""
    return [tool.get("function", tool) for tool in (*body.get("tools", ()), *late_in(body))]


def late_in(body: Body) -> list[Body]:
    """Anthropic's `tool_addition` and OpenAI's `additional_tools`."""
    items = body.get("input", ())
    named = [tool for item in items if item.get("type") == "additional_tools" for tool in item["tools"]]
    defined = [block["tool"] for block in additions(body) if "definition" in block["tool"]]
    return [*named, *(tool["definition"] for tool in defined)]


def additions(body: Body) -> list[Body]:
    """What Anthropic's `system` messages add."""
    told = [message["content"] for message in body.get("messages", ()) if message["role"] == "system"]
    return [
        block for blocks in told if isinstance(blocks, list) for block in blocks if block["type"] == "tool_addition"
    ]


def schemas(body: Body) -> list[Body]:
    return [about.get("input_schema") or about["parameters"] for about in functions(body)]


def is_no_object(body: Body) -> bool:
    return not all(is_object(schema) for schema in schemas(body))


def is_object(schema: Body) -> bool:
    return schema.get("type") == "object" and not any(word in schema for word in TOP_LEVEL)


def within(value: Any) -> Iterator[Body]:
    """Each object in it, itself among them."""
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from within(part)
    elif isinstance(value, list):
        for part in value:
            yield from within(part)


def lacks_items(body: Body) -> bool:
    """As `enum` or `required` may be an array's name, only what says its type counts."""
    return any(
        "array" in (kind if isinstance(kind := part.get("type"), list) else [kind]) and "items" not in part
        for schema in schemas(body)
        for part in within(schema)
    )


def names_no_tool(body: Body) -> bool:
    """A choice of a tool that is not offered."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return choice is not None and not body.get("tools")
    name = choice.get("name") or choice.get("function", {}).get("name")
    return name is not None and name not in [about["name"] for about in functions(body)]


def long_descriptions(body: Body) -> bool:
    return any(len(about.get("description") or "") > 1024 for about in functions(body))


def too_many_tools(body: Body, most: int = 128) -> bool:
    return len(body.get("tools", ())) > most


def forces(body: Body) -> bool:
    """Whether one of the tools has to be called."""
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        return choice.get("type") in ("tool", "any", "function")
    return choice == "required"


def effort_in(body: Body) -> str | None:
    """Over either of OpenAI's APIs."""
    effort: str | None = body.get("reasoning", {}).get("effort") or body.get("reasoning_effort")
    return effort


_LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_EFFORTS = (
    (r"gpt-([6-9]\.[1-9]-sol|[6-9](\.\d)?-astra)", _LEVELS[2:]),
    (r"gpt-(5\.6|6-|6\.1-terra)", ("none", *_LEVELS[2:])),
    (r"gpt-5\.[2-5]", ("none", *_LEVELS[2:6])),
    (r"gpt-5\.1", ("none", *_LEVELS[2:5])),
)


def efforts_of(model: str) -> tuple[str, ...]:
    """Of OpenAI's models (developers.openai.com/api/docs/models, 2026-11-29); a new one has those of the newest."""
    return next((efforts for pattern, efforts in _EFFORTS if re.match(pattern, model)), ())


def samples(body: Body) -> bool:
    """Whether OpenAI's model takes a temperature and the like: those that can do without reasoning, while they do."""
    model, effort = body["model"], effort_in(body)
    rests = re.match(r"gpt-5\.[124]", model) is not None
    return not reasons(model) or effort == "none" or (effort is None and rests)


def reasons(model: str) -> bool:
    """OpenAI's."""
    return bool(re.match(r"gpt-[5-9]|o\d", model)) and "-chat" not in model
