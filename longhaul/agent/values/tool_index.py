"""Tools found when needed: of many tools a model is sent names and one-liners, and looks up the rest.

What stands in the head of a request is paid for in each call, and a change there costs the provider's cache of all that
follows. So the head stays as it is, whatever the model finds: `find_tools` answers with schemas, at the end of the
context, and `call_tool` calls a tool by its name. An agent with tool groups has `call_tool` for the groups that it
activates late. What the model says through `call_tool` is recorded as a call of that
tool, with its own arguments, before anybody looks at it: permission, previews and rules see nothing else.

The index ranks by BM25 over names, descriptions and parameters, with endings cut off and words of one meaning taken
for one. It is worked out from the recorded descriptors: the same words find the same tools on each worker and in each
replay.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from longhaul.agent.plain.text import names, parsed
from longhaul.agent.values.conversation.messages import ToolCallBlock
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE, ToolDescriptor
from longhaul.agent.values.spec.known_names import MCP, TOOLS

FIND_TOOLS, CALL_TOOL = "find_tools", "call_tool"
MOST_HEAD_CHARS = 40_000
"""Of names, descriptions and schemas as JSON, about 10,000 tokens: what is longer is looked up."""
LISTED_SHARE = 12
"""The list of names and one-liners has at most this part of what all schemas would have."""
LINE_CHARS = (100, 80, 60, 40, 25, 0)
"""Of a one-liner: the longest with which the list fits."""
INDEXED_CHARS = 2_000
"""Of a description, and of parameters: what is beyond says no more of what the tool is for."""
SCHEMA_CHARS = 12_000
"""Of one answer: what else was found comes by name."""
MOST_SCHEMAS = 5


def looked_up(tools: Sequence[ToolDescriptor]) -> tuple[str, ...]:
    """The tools that the model gets by name alone; none where all of them are short enough. Those of servers first,
    then all that are not built in."""
    sizes = {tool.name: _size(tool) for tool in tools}
    if sum(sizes.values()) <= MOST_HEAD_CHARS:
        return ()
    of_servers = tuple(name for name in sizes if name.startswith(MCP))
    if sum(size for name, size in sizes.items() if name not in of_servers) <= MOST_HEAD_CHARS:
        return of_servers
    always = {tool.name for tool in tools if tool.inside or tool.child} | {*TOOLS, GENERATE_RESPONSE}
    return tuple(name for name in sizes if name not in always)


def head_of(tools: Sequence[ToolDescriptor]) -> tuple[ToolDescriptor, ...]:
    """What a request has in the place of these: those that are not looked up, and the list of the others."""
    away = {*looked_up(tools)}
    if not away:
        return tuple(tool for tool in tools if tool.name != FIND_TOOLS)
    named = _list_tools([tool for tool in tools if tool.name in away])
    return tuple(
        tool.model_copy(update={"description": f"{tool.description}\n\n{named}"}) if tool.name == FIND_TOOLS else tool
        for tool in tools
        if tool.name not in away
    )


def _size(tool: ToolDescriptor) -> int:
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema, ensure_ascii=False))


def _list_tools(tools: Sequence[ToolDescriptor]) -> str:
    """By the beginning of their names; as much of each description as there is room for."""
    groups = dict[str, list[ToolDescriptor]]()
    for tool in tools:
        server, between, _ = tool.name.removeprefix(MCP).partition("__")
        groups.setdefault(f"{MCP}{server}__" if between and tool.name.startswith(MCP) else "", []).append(tool)
    room = sum(map(_size, tools)) // LISTED_SHARE
    texts = (_group_lines(groups, chars) for chars in LINE_CHARS)
    shortest = f"{len(tools)} tools: " + ", ".join(f"{start or 'others'} ({len(of)})" for start, of in groups.items())
    return next((text for text in texts if len(text) <= room), shortest[:room])


def _group_lines(groups: Mapping[str, Sequence[ToolDescriptor]], chars: int) -> str:
    lines = list[str]()
    for start, tools in groups.items():
        lines += [f"{start}…"] if start else []
        told = ((tool.name.removeprefix(start), _one_line(tool.description, chars)) for tool in tools)
        if chars:
            lines += [f"- {name}: {said}" if said else f"- {name}" for name, said in told]
        else:
            lines.append(", ".join(name for name, _ in told))
    return "\n".join(lines)


def _one_line(text: str, chars: int) -> str:
    sentence = re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]
    line = " ".join(sentence.split()).rstrip(".")
    return line if len(line) <= chars else f"{line[: chars - 1].rstrip()}…"


def found(query: str, tools: Sequence[ToolDescriptor], most: int) -> list[ToolDescriptor]:
    """Those of the tools that fit best, the best first. A tool that is named whole comes before all others."""
    said = {word.strip("`'\",;()").lower() for word in query.split()}
    named = [tool for tool in tools if {tool.name.lower(), tool.name.rpartition("__")[2].lower()} & said]
    wanted = Counter(_terms(query))
    texts = [_weighted(tool) for tool in tools]
    lengths = [sum(text.values()) for text in texts]
    mean = (sum(lengths) / len(lengths) if lengths else 0.0) or 1.0
    having = Counter(term for text in texts for term in text)
    scored = list[tuple[float, int]]()
    for at, text in enumerate(texts):
        score = 0.0
        for term, times in wanted.items():
            if (count := text.get(term, 0.0)) > 0:
                rare = math.log(1 + (len(tools) - having[term] + 0.5) / (having[term] + 0.5))
                score += min(times, 2) * rare * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * lengths[at] / mean))
        if score > 0:
            scored.append((-score, at))
    ranked = [tools[at] for _, at in sorted(scored)]
    return [*named, *(tool for tool in ranked if tool not in named)][:most]


def _weighted(tool: ToolDescriptor) -> dict[str, float]:
    """The words of a tool, each with how much it says of what the tool is for."""
    first, _, rest = tool.description[:INDEXED_CHARS].partition(".")
    properties = tool.input_schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    said = " ".join(
        str(field["description"]) for field in fields.values() if isinstance(field, dict) and "description" in field
    )
    weights = Counter[str]()
    for text, weight in (
        (tool.name.removeprefix(MCP), 3.0),
        (first, 2.0),
        (rest, 0.5),
        (" ".join(map(str, fields)), 0.5),
        (said[:INDEXED_CHARS], 0.25),
    ):
        for term, times in Counter(_terms(text)).items():
            weights[term] += weight * min(times, 2)  # type: ignore[assignment]  # a counter of fractions
    return dict(weights)


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NOTHING_SAID = names(
    "a an and any are as at be by can do does for from has have how i in into is it its let like me my of on one onto"
    " or our please somebody some than that the their them then there these they this those to under up use used using"
    " want was we what when where which who whole whose why will with you your"
)
_OF_ONE_MEANING = (
    "create make new add insert open start file save write",
    "delete remove erase drop clear forget discard",
    "list show enumerate exist which",
    "get read retrieve fetch load view see",
    "find search look query lookup filter",
    "update edit change modify set patch alter",
    "send post write publish say",
    "reply answer respond response",
    "run execute evaluate",
    "go visit open navigate",
    "stop pause halt end suspend",
    "start begin resume launch",
    "connect link relate relation",
    "remember memory remind observation note",
    "group sum aggregate average total",
    "field column schema property attribute",
    "count number many",
    "move rename relocate",
    "copy clone fork duplicate",
    "allow permit grant let access",
    "export dump download",
    "import upload",
    "folder directory",
    "picture image screenshot photo",
    "repository repo project",
    "pull merge pr mr",
    "issue bug problem ticket",
    "person user member people colleague",
    "row record document entry",
    "page site website url address",
    "big size large",
    "popup alert dialog",
    "pointer mouse cursor",
    "previous last back",
    "text word string content",
    "disk filesystem",
    "ci check build status",
    "slow performance slowly speed",
)


def _meanings() -> dict[str, tuple[str, ...]]:
    """By the stem of a word: the number of each line that has it."""
    lines = dict[str, tuple[str, ...]]()
    for number, line in enumerate(_OF_ONE_MEANING):
        for word in line.split():
            lines[_stem(word)] = (*lines.get(_stem(word), ()), f"={number}")
    return lines


@lru_cache(maxsize=4_096)
def _stem(word: str) -> str:
    """Without the endings of English that change no meaning; nothing of a short word."""
    for ending, instead in (
        ("ations", "ate"), ("ation", "ate"), ("ies", "y"), ("sses", "ss"), ("ings", ""), ("ing", ""), ("edly", ""),
        ("ied", "y"), ("ed", ""), ("ers", "er"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("ly", ""), ("es", "e"),
        ("s", ""),
    ):  # fmt: skip
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=4_096)
def _terms(text: str) -> tuple[str, ...]:
    """The stems of a text, and what they mean."""
    return tuple(_each_term(text))


def _each_term(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        plain = word.lower()
        stem = _stem(plain)
        if plain not in _NOTHING_SAID:
            yield stem
        yield from _MEANINGS.get(stem, ())


_MEANINGS = _meanings()


def best_of(
    query: str, tools: Sequence[ToolDescriptor], most: int
) -> tuple[list[ToolDescriptor], list[ToolDescriptor]]:
    """Of those that fit best, as `fitting`."""
    return fitting(found(query, tools, most))


def fitting(ranked: list[ToolDescriptor]) -> tuple[list[ToolDescriptor], list[ToolDescriptor]]:
    """The first, whose schemas are short enough to be read together, and the others; the very first in any case."""
    room, at = SCHEMA_CHARS, 0
    while at < min(len(ranked), MOST_SCHEMAS) and (at == 0 or _size(ranked[at]) <= room):
        room -= _size(ranked[at])
        at += 1
    return ranked[:at], ranked[at:]


def names_text(tools: Sequence[ToolDescriptor]) -> str:
    return "\n".join(f"- {tool.name}: {_one_line(tool.description, LINE_CHARS[0])}" for tool in tools)


def schema_text(tools: Sequence[ToolDescriptor]) -> str:
    """Each tool on a line, as JSON."""
    return "\n".join(
        json.dumps(
            {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}, ensure_ascii=False
        )
        for tool in tools
    )


def direct(call: ToolCallBlock, known: Callable[[str], bool]) -> ToolCallBlock:
    """A call through `call_tool` as the call that it stands for. One that names no known tool stays: the session
    answers it with what is wrong."""
    given = parsed(call.input) if call.name == CALL_TOOL else None
    name = given.get("tool") if given else None
    if given is None or not isinstance(name, str) or name in (CALL_TOOL, FIND_TOOLS) or not known(name):
        return call
    arguments = given.get("arguments", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return call.model_copy(update={"name": name, "input": text, "indirect": True})


def as_said(call: ToolCallBlock) -> ToolCallBlock:
    """The call as the model made it: what it reads of itself later is what it said."""
    if not call.indirect:
        return call
    arguments = parsed(call.input)
    said = {"tool": call.name, "arguments": call.input if arguments is None else arguments}
    return call.model_copy(update={"name": CALL_TOOL, "input": json.dumps(said, ensure_ascii=False)})
