"""Tells what a model takes: efforts, sampling parameters, window, limit of output, forced tools, kinds of thinking, and
tools per API, all read from one file that ships with the package.

`make rules` writes the file; no rule about a model stands in code. A new name of a known family has the rules of the
family's newest models: where several are newest, those that all of them keep. A model of no known family has none, and
is sent nothing that nobody asked for.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from longhaul.agent.values.spec.known_names import CLOUDS, PROVIDERS, split_model

RULES_FILE = "model_rules.json"
AT_BEDROCK = re.compile(
    r"^(?:[a-z-]+\.)?(?:amazon|anthropic|google|meta|minimax|mistral|moonshot(?:ai)?|nvidia|openai|qwen|writer|xai|zai)\."
)
"""What stands before a model's name at Bedrock: `us.amazon.`."""

Thinks = Literal["", "no", "asked", "default", "always"]
"""Ascending: unknown; never; when it is asked to; unless it is told not to; always."""
Thinking = Literal["", "none", "budget", "interleaved", "adaptive"]
"""Of Claude: how it is asked to think. `budget`: with a number of tokens, at its first call of a turn; `interleaved`:
between its calls too, with a beta; `adaptive`: it finds its own budget."""
Samples = Literal["", "yes", "idle", "no"]
"""Whether it takes a temperature and `top_p`; `idle`: while it does not think."""
ChatTools = Literal["", "without effort", "effort none", "no"]
"""How OpenAI's own Chat Completions takes tools; empty: as they are."""


@dataclass(frozen=True, slots=True)
class ModelRules:
    """What is not known is empty, or None."""

    maker: str = ""
    window: int | None = None
    """Tokens of input and output together."""
    output: int | None = None
    """The most tokens that it writes in one reply, thoughts included."""
    efforts: tuple[str, ...] | None = None
    """Ascending; empty: it has none."""
    thinks: Thinks = ""
    thinking: Thinking = ""
    off: str = ""
    """The type of thinking by which Claude is told not to think; empty: it cannot be."""
    samples: Samples = ""
    forced: bool = True
    """Whether it can be told which tool it has to call."""
    binds: bool = False
    """Whether it refuses its own thoughts after a changed beginning."""
    chat_tools: ChatTools = ""
    hears: bool = False
    late_tools: bool = False
    """Whether its maker's own API takes tools in the midst of messages."""
    wants_back: Literal["", "reasoning", "signature"] = ""
    """What each call of a conversation has to carry, also one of another model."""
    wants_answer: bool = False
    """Whether it refuses a user's words directly after a tool's result."""
    old_at_bedrock: bool = False
    """Whether Bedrock serves it by the API version of 2023 alone."""

    @property
    def is_known(self) -> bool:
        return bool(self.maker)

    @property
    def may_think(self) -> bool:
        """Where nobody knows, it may."""
        return self.thinks != "no"

    @property
    def thinks_unasked(self) -> bool:
        return self.thinks in ("default", "always")


UNKNOWN = ModelRules()
NAMES_KEPT = 1_000
"""Of one that was forgotten the rules are looked for again."""

_PREFIXES = frozenset((*PROVIDERS, *CLOUDS))
_Words = tuple[str, ...]
_Version = tuple[int, ...]

_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}(?=-|$)|[-@]20\d{6}(?=-|$)|-(?:\d{4}|\d{6})(?=-|$)")
_NOTHING_SAID = frozenset({"latest", "preview", "exp", "experimental", "beta", "free", "instruct", "it"})
_TOKEN = re.compile(r"\d+x\d+b|[ae]?\d+(?:\.\d+)?b(?![a-z])|\d+|[a-z]+")


@dataclass(frozen=True, slots=True)
class ParsedName:
    """A name as its makers build it: words in order, and the numbers between them."""

    words: _Words
    version: _Version


def plain_name(model: str) -> str:
    """The maker's own name of a model, in small letters, of any form that people type: with a provider's prefix, a
    gateway's organisations, a cloud's region and version, a fine-tuned model's owner, or a note in brackets."""
    name = model.strip().partition(" ")[0].lower()
    prefix, rest = split_model(name)
    name = rest if prefix in _PREFIXES and rest else name
    name = name.removeprefix("ft:").rpartition("/")[2]
    at_bedrock = AT_BEDROCK.sub("", name, count=1)
    if at_bedrock != name:
        at_bedrock = re.sub(r"-v?\d+:\d+(?::\w+)?$|-v\d$", "", at_bedrock)
    return re.sub(r"\[[^\]]*\]$|[:@].*$", "", at_bedrock)


def parse(model: str) -> ParsedName:
    """Of `openai/gpt-5.4-mini-2026-03-17`: the words `gpt` and `mini`, and 5.4."""
    name = re.sub(r"(?<=\d)p(?=\d)", ".", _DATE.sub("", plain_name(model)))
    tokens = [token for token in _TOKEN.findall(name) if token not in _NOTHING_SAID]
    numbers = [int(token) for token in tokens if token.isdecimal()]
    return ParsedName(tuple(token for token in tokens if not token.isdecimal()), tuple(numbers[:3]))


@lru_cache(maxsize=1)
def _file() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(files(__package__).joinpath(RULES_FILE).read_text(encoding="utf-8"))
    return data


def made_on() -> str:
    """The day on which the file was made, as 2026-11-29."""
    return str(_file()["made"])


def sources_of(name: str) -> Sequence[str | int]:
    """Of a listed model: packages, and numbers of our own rows."""
    sources: Sequence[str | int] = _file()["models"][name]["from"]
    return sources


def sources_of_ours() -> Sequence[str]:
    """Of our own rows, each with the day on which it was read."""
    sources: Sequence[str] = _file()["ours"]
    return sources


def price_rows() -> Sequence[Mapping[str, Any]]:
    """As `activities.telemetry.prices` reads them."""
    rows: Sequence[Mapping[str, Any]] = _file()["prices"]
    return rows


def api_rules(api: str) -> Mapping[str, str]:
    """What a version of an API takes, whatever the model: for `anthropic` until which one it takes a temperature."""
    rules: Mapping[str, str] = _file()["apis"][api]
    return rules


@lru_cache(maxsize=1)
def load_rules() -> Mapping[str, ModelRules]:
    """All models of the file, by the makers' names."""
    return {name: rules_in(row) for name, row in _file()["models"].items()}


def rules_in(row: Mapping[str, Any]) -> ModelRules:
    """A row without what says where it comes from."""
    return _ROW.validate_python(row)


_ROW = TypeAdapter(ModelRules)


@lru_cache(maxsize=1)
def _families() -> Mapping[_Words, Mapping[_Version, ModelRules]]:
    """By words and version. Of two names that differ in their dates the first counts."""
    found: dict[_Words, dict[_Version, ModelRules]] = {}
    for name, row in _file()["models"].items():
        parsed = parse(name)
        found.setdefault(parsed.words, {}).setdefault(tuple(row.get("version", parsed.version)), rules_in(row))
    return found


def rules_of(model: str) -> ModelRules:
    """Of a model by any name; UNKNOWN for one of no known family."""
    return _resolved(plain_name(model))


@lru_cache(maxsize=NAMES_KEPT)
def _resolved(name: str) -> ModelRules:
    if (rules := load_rules().get(name) or _with_more_words(name)) is not None:
        return rules
    parsed = parse(name)
    families = _families()
    if (rules := families.get(parsed.words, {}).get(parsed.version)) is not None:
        return rules
    for length in range(len(parsed.words), 0, -1):
        words = parsed.words[:length]
        near = _nearest(families, words, parsed.version)
        if near:
            return shared(near)
    return UNKNOWN


def _with_more_words(name: str) -> ModelRules | None:
    """Of a listed model whose name has a date or words behind it; a number behind it makes another model of it."""
    undated = _DATE.sub("", name)
    found = [
        each for each in load_rules() if undated == each or re.match(rf"{re.escape(each)}-(?:[a-z]|\d+b)", undated)
    ]
    return load_rules()[max(found, key=len)] if found else None


def _nearest(
    families: Mapping[_Words, Mapping[_Version, ModelRules]], words: _Words, version: _Version
) -> list[ModelRules]:
    """The rules of the newest models whose names begin with these words and that are no newer than `version`; of the
    oldest, where all are newer. A name without a number means the newest."""
    own = families.get(words, {})
    if own and version in own:
        return [own[version]]
    group = [
        (each, family, rules)
        for family, rows in families.items()
        if family[: len(words)] == words
        for each, rules in rows.items()
    ]
    if not group:
        return []
    older = [each for each, _, _ in group if not version or each <= version]
    chosen = max(older) if older else min(each for each, _, _ in group)
    same = [(family, rules) for each, family, rules in group if each == chosen]
    plain = [rules for family, rules in same if family == words]
    return plain or [rules for _, rules in same]


_ASCENDING = {
    "thinks": get_args(Thinks),
    "samples": ("yes", "idle", "no", ""),
    "chat_tools": get_args(ChatTools),
    "wants_back": ("", "signature", "reasoning"),
}
"""Of each the last one is safe with all models of a group: what it forbids is only left out."""


def shared(group: Sequence[ModelRules]) -> ModelRules:
    """What may be sent to any of these."""
    first = group[0]
    efforts = [rules.efforts for rules in group]
    common = None
    if all(each is not None for each in efforts):
        common = tuple(effort for effort in efforts[0] or () if all(effort in (each or ()) for each in efforts))
    return ModelRules(
        maker=first.maker,
        window=_least(rules.window for rules in group),
        output=_least(rules.output for rules in group),
        efforts=common,
        thinking=first.thinking if len({rules.thinking for rules in group}) == 1 else "",
        off=first.off if len({rules.off for rules in group}) == 1 else "",
        forced=all(rules.forced for rules in group),
        binds=any(rules.binds for rules in group),
        hears=all(rules.hears for rules in group),
        late_tools=all(rules.late_tools for rules in group),
        wants_answer=any(rules.wants_answer for rules in group),
        old_at_bedrock=all(rules.old_at_bedrock for rules in group),
        **{name: max((getattr(rules, name) for rules in group), key=order.index) for name, order in _ASCENDING.items()},
    )


def _least(numbers: Iterable[int | None]) -> int | None:
    return min((number for number in numbers if number is not None), default=None)
