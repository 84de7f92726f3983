"""Makes descriptors of what a server says of its tools: names that every provider takes, texts and schemas that are
bounded. All of it is written by others: nothing of it is obeyed here, and hints count where the operator says so."""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from jsonschema.exceptions import SchemaError

from longhaul.activities.mcp.allowed_servers import Server
from longhaul.activities.mcp.lenient_answers import notes_in
from longhaul.activities.tools.arguments import check_schema
from longhaul.agent.plain.text import LONGEST_NAME as SHOWN_CHARS
from longhaul.agent.plain.text import did_you_mean, harmless, nearest, visible
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.known_names import MCP

log = logging.getLogger(__name__)

LONGEST_NAME = 64
DIGEST_CHARS = 8
DESCRIPTION_CHARS = 4_000
SCHEMA_CHARS = 20_000
SCHEMA_LEVELS = 30
TEXT_CHARS = 2_000
MOST_TOOLS = 1_000
ALL_CHARS = 500_000
"""Of one server: what it says is in the history, and in each request."""
_LEFT_OUT = frozenset({"pattern", "$schema", "$id"})
"""Words with a text: an expression of a stranger's can keep the worker busy for hours, and the server judges arguments
itself. A property may have such a name; what is said of one is no text."""
_EXACT = frozenset({"enum", "const", "default", "required"})
"""What stands there is compared: only what would harm is written otherwise."""

MEANT = 0.8
"""How near a name has to be to one that is to be left out, to be left out with it."""

MOST_TOLD = 5
"""Names of no tool: a reply begins with each sentence."""

Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Described:
    """One tool of a server, in words that can be recorded."""

    name: str
    remote_name: str
    description: str
    input_schema: dict[str, Any]
    effect: Effect
    read_only: bool
    destructive: bool
    notes: tuple[str, ...] = ()
    """What is wrong with what the server says of it, in words, for whoever looks after workers."""


def described(server: Server, listed: Iterable[types.Tool], mask: Mask) -> Iterator[Described]:
    """Those that agents have, in the server's order, as long as there is room."""
    tools = [*listed]
    withheld = set(_withheld(server, [tool.name for tool in tools]).values())
    wanted = {tool.name: tool for tool in reversed(tools) if server.offers(tool.name) and tool.name not in withheld}
    names = names_for(server.name, list(reversed(wanted)))
    often = Counter(tool.name for tool in tools)
    room = ALL_CHARS
    for remote, name in names.items():
        tool = wanted[remote]
        schema, why = _schema(tool, mask)
        notes = tuple(visible(mask(note)) for note in notes_in(tool.meta))
        notes += ((f"its inputSchema can't be used ({why}), and is left out",) if why else ()) + (
            (f"the server lists it {often[remote]} times: the first one counts",) if often[remote] > 1 else ()
        )
        for note in notes:
            log.info("MCP server %s: the tool %r: %s", server.name, visible(remote[:200]), note)
        said = visible(mask(tool.description or tool.title or ""))
        cut = said if len(said) <= DESCRIPTION_CHARS else f"{said[:DESCRIPTION_CHARS]}…"
        if name.endswith(f"__{tool.name}"):
            description = cut
        else:
            description = f"{cut}\n(The server's own name of this tool is {visible(mask(tool.name[:200]))!r}.)".lstrip()
        # What happens when a call runs twice, whether it changes nothing, and whether it destroys.
        hints = tool.annotations if server.trusted else None
        reads = hints is not None and hints.read_only_hint is True
        again = hints is not None and hints.idempotent_hint is True
        of_hints = Effect.READ if reads else Effect.IDEMPOTENT if again else Effect.ONCE
        effect = dict(server.effects).get(tool.name, of_hints)
        destroys = hints is not None and hints.destructive_hint is True and not reads
        judged = effect, reads and effect is Effect.READ, destroys
        about = Described(name, remote, description, schema, *judged, notes)
        room -= len(about.description) + len(json.dumps(about.input_schema))
        if room < 0:
            log.warning("MCP server %s: %r and later tools are left out: it says too much", server.name, visible(name))
            return
        yield about


def left_out(server: Server, listed: Sequence[types.Tool], given: int) -> tuple[str, ...]:
    """A sentence where agents have fewer tools than they might, for the server has, or says, too much."""
    withheld = set(_withheld(server, [tool.name for tool in listed]).values())
    wanted = {tool.name for tool in listed if server.offers(tool.name)} - withheld
    told = f"the MCP server {server.name!r}"
    more = (
        [f"{told} has more than {MOST_TOOLS:,} tools: those behind them are left out"]
        if len(listed) >= MOST_TOOLS
        else []
    )
    if given < len(wanted):
        more.append(
            f"{told} says more than {ALL_CHARS:,} characters of its tools: the last {len(wanted) - given} are left out"
        )
    return tuple(f"{sentence}; name those that are needed in enable_tools" for sentence in more)


def misspelt(server: Server, listed: Iterable[types.Tool]) -> tuple[str, ...]:
    """A sentence about each name that somebody gives of a tool of this server, and that the server does not have; of
    many, about the first ones."""
    there = [tool.name for tool in listed]
    withheld = _withheld(server, there)
    given = [
        *(("enable_tools", name) for names in server.enable_tools for name in names),
        *(("disable_tools", name) for name in server.disable_tools),
        *(("effects", name) for name, _ in server.effects),
    ]
    slips = [(where, name) for where, name in dict.fromkeys(given) if name not in there]
    shown = [name[:SHOWN_CHARS] for name in there]
    sentences = [
        f"the MCP server {server.name!r} has no tool {name[:SHOWN_CHARS]!r}, which its {where} names; "
        + did_you_mean(name, shown, "it has")
        + (
            f" {withheld[name][:SHOWN_CHARS]!r} is left out too."
            if where == "disable_tools" and name in withheld
            else ""
        )
        for where, name in slips[:MOST_TOLD]
    ]
    more = [f"{len(slips) - MOST_TOLD} more names are no tools of it"] if len(slips) > MOST_TOLD else []
    return tuple(visible(sentence) for sentence in (*sentences, *more))


def _withheld(server: Server, there: Sequence[str]) -> dict[str, str]:
    """By a name that is to be left out, and that the server does not have, the tool that may be meant: a slip must not
    give an agent what it was not to have."""
    slips = [name for name in server.disable_tools if name not in there]
    return {name: meant for name in slips if (meant := nearest(name, there, MEANT))}


def names_for(server: str, remote: Iterable[str]) -> dict[str, str]:
    """By the server's own name the one that the agent has. One that had to be changed, and would then be another's or
    too long, ends with a digest of it."""
    plain = {name: f"{MCP}{server}__{re.sub(r'[^A-Za-z0-9_-]', 'x', name)}" for name in remote}
    often = Counter(plain.values())
    given: dict[str, str] = {}
    for name, made in plain.items():
        is_own = made == f"{MCP}{server}__{name}"
        if len(made) > LONGEST_NAME or (often[made] > 1 and not is_own):
            digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:DIGEST_CHARS]
            made = f"{made[: LONGEST_NAME - DIGEST_CHARS - 1]}_{digest}"  # noqa: PLW2901
        if made in given.values():
            log.warning("MCP server %s: the tool %r is left out: its name is taken", server, visible(name[:200]))
            continue
        given[name] = made
    return given


def _schema(tool: types.Tool, mask: Mask) -> tuple[dict[str, Any], str]:
    """And why the server's own can't be used; empty: it can."""
    try:
        schema: dict[str, Any] = _sound(tool.input_schema, mask, SCHEMA_LEVELS)
        check_schema(schema)
        if schema.get("type") == "object" and len(json.dumps(schema, allow_nan=False)) <= SCHEMA_CHARS:
            return schema, ""
        why = f"it is of no object, or has more than {SCHEMA_CHARS:,} characters"
    except (ValueError, TypeError, RecursionError, SchemaError) as error:
        why = type(error).__name__
    return {"type": "object", "description": "The server's schema of the arguments can't be shown."}, why


def _sound(value: Any, mask: Mask, levels: int, *, exact: bool = False) -> Any:
    """The same without what is expensive, refers to elsewhere, hides or is too long. Raises ValueError for one that is
    too deep."""
    if levels == 0:
        raise ValueError("it is too deep")
    match value:
        case str():
            return harmless(mask(value)) if exact else visible(mask(value))[:TEXT_CHARS]
        case list():
            return [_sound(inner, mask, levels - 1, exact=exact) for inner in value]
        case dict():
            return {
                mask(key): _sound(inner, mask, levels - 1, exact=exact or key in _EXACT)
                for key, inner in value.items()
                if _is_kept(key, inner)
            }
        case _:
            return value


def _is_kept(key: object, inner: object) -> bool:
    if not isinstance(key, str) or not key.isprintable() or len(key) > TEXT_CHARS:
        return False
    if key == "$ref":
        return isinstance(inner, str) and inner.startswith("#")
    return key != "patternProperties" and not (key in _LEFT_OUT and isinstance(inner, str))
