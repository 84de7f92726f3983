"""Rules about the tools of MCP servers: of one tool, of a whole server (`mcp__NAME`), and of what an argument says.
`Agent`, whose arguments are no paths either, has the same: `Agent(agent=researcher)`.

`path=/srv/data/*` speaks of the argument `path`, `filter.owner=ana` of one within another; `*` stands for any
characters. A server alone knows what its arguments mean, so a pattern is compared with what is written, and nothing
else: an allow rule with `*` leaves out what could lead elsewhere (`..`).
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from longhaul.agent.plain.gist import parsed
from longhaul.agent.values.spec.known_names import MCP
from longhaul.agent.values.spec.mcp import server_of
from longhaul.agent.values.subagents import AGENT

_PATTERN = re.compile(r"([^\s=*][^=*]*)=(.*)", re.DOTALL)
_ELSEWHERE = re.compile(r"\.\.|%2e|[\x00-\x1f\x7f]", re.IGNORECASE)


def rule_names(tool: str) -> tuple[str, ...]:
    """The names under which rules speak of a tool."""
    server = server_of(tool)
    return (tool, f"{MCP}{server}") if server else (tool,)


def is_by_argument(tool: str) -> bool:
    """Whether the content of a rule about this tool speaks of its arguments."""
    return tool == AGENT or tool.startswith(MCP)


def wrong_pattern(content: str) -> str:
    """What is wrong with a pattern about an argument, as the end of a sentence; empty when it can be used."""
    if _PATTERN.fullmatch(content) is None or not content.isprintable():
        what = "a rule about an MCP tool, or about Agent, names an argument and what it says"
        return f"{what}, as in 'path=/srv/data/*', on one line"
    return ""


def argument_matches(content: str, raw_input: str) -> bool:
    """Whether a deny or ask rule speaks of the call: of any of the values that the argument holds."""
    pattern, values = _split(content, raw_input)
    return any(_fits(pattern, value) for value in values)


def argument_allowed(content: str, raw_input: str) -> bool:
    """Whether an allow rule covers the argument: all of the values that it holds, and there is one."""
    pattern, values = _split(content, raw_input)
    if "*" in pattern and any(_ELSEWHERE.search(value) for value in values):
        return False
    return bool(values) and all(_fits(pattern, value) for value in values)


def _split(content: str, raw_input: str) -> tuple[str, tuple[str, ...]]:
    spelt, arguments = _PATTERN.fullmatch(content), parsed(raw_input)
    if spelt is None or arguments is None:
        return "", ()
    return spelt[2], tuple(_values(_found(arguments, spelt[1])))


def _found(arguments: Mapping[str, Any], name: str) -> Any:
    """The argument of that name, or, of a dotted one, what lies within; an empty list when it is not there."""
    if name in arguments:
        return arguments[name]
    outer, dot, rest = name.partition(".")
    inner = arguments.get(outer)
    return _found(inner, rest) if dot and isinstance(inner, dict) else []


def _values(value: Any) -> Iterator[str]:
    """As text: each element of a list, and of an object its JSON."""
    if isinstance(value, list):
        for inner in value:
            yield from _values(inner)
    else:
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fits(pattern: str, text: str) -> bool:
    """From part to part, each as early as it goes: no pattern takes longer than the text is."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])
