"""The pages of reference, and the list of decisions, written from what they describe: `make reference` writes them.

They are plain Markdown, for readers of a checkout and of the site alike: links lead to the anchors that forges give to
headings. tests/codebase/test_site.py fails when a page differs from the code.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

from docs.making.command_lines import commands
from docs.making.python_names import python
from docs.making.tables import Json, cell, docstring, meaning, model, referred_by, rows, schemas_of, words
from longhaul.activities.models.requests.model_rules import load_rules, made_on, sources_of, sources_of_ours
from longhaul.activities.models.scripted_model import ScriptLine
from longhaul.activities.telemetry.prices import packaged_price
from longhaul.agent.entries import AnyEntry
from longhaul.agent.values.budget import Price
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.views.event_types import AgentEvent, EventType
from longhaul.starter.serve.openapi import document
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.settings import OF_A_FOLDER, PREFIX, Settings
from tests.codebase.headings import anchor_of

DOCS = Path(__file__).parents[1]

WHOSE = frozenset({"user", "anonymous"})
"""Whose session is meant: nearly every request takes it, so it is said once."""


def agent_files() -> str:
    schemas = schemas_of(AgentSpec)
    intro = (
        "# Agent files, key by key\n\n"
        "After this page you know each key that `agents/NAME.toml` may have; `AgentSpec` in Python has the same. "
        "A key that is not here is refused with the nearest one that is.\n\n"
        "Only files have these keys: `system_prompt_file` names a file next to this one, with the text of"
        ' `system_prompt`; `agents = ["researcher"]` names agent files next to this one as sub-agents.'
        " [Schedules](../agents/schedules.md) and [hubs](../agents/hubs.md) describe the tables `[schedules.NAME]` and"
        " `[hubs.NAME]`.\n\n"
    )
    places = _places("AgentSpec", "", schemas, {})
    return intro + "".join(_place(name, place, schemas[name]) for name, place in places.items())


def _places(name: str, path: str, schemas: dict[str, Json], found: dict[str, str]) -> dict[str, str]:
    """Each model that an agent file is made of, with where it stands in the file first."""
    found[name] = path
    for field, schema in schemas[name].get("properties", {}).items():
        for inner in referred_by(schema):
            if inner not in found:
                shape = ".".join(part for part in (path.strip("[]"), field) if part)
                many, by_name = "array" in str(schema.get("type")), "additionalProperties" in schema
                below = f"[[{shape}]]" if many else f"[{shape}.NAME]" if by_name else f"[{shape}]"
                _places(inner, below, schemas, found)
    return found


def _place(name: str, place: str, schema: Json) -> str:
    shown = f"In the file: `{place}`.\n\n" if place and "properties" in schema else ""
    return model(name, schema, "##", shown if place else "At the top of the file.\n\n")


def settings() -> str:
    schema = schemas_of(Settings)["Settings"]
    lines = [
        f"| `{PREFIX}{name.upper()}` | `{name}`{' *' if name in OF_A_FOLDER else ''} | {words(each)} | "
        f"{_as_code(each.get('default'))} | {meaning(each)} |\n"
        for name, each in schema["properties"].items()
    ]
    return (
        "# Settings, one by one\n\n"
        "After this page you know each setting of clients and workers, as variable and as key of "
        "`longhaul.toml`. A flag counts before the variable, the variable before the folder's file, and that before "
        "your own file. The file of a trusted folder may set keys with a star. [Settings by "
        "subject](../operating/settings.md) says what they are for.\n\n"
        "| variable | key | may be | default | means |\n|---|---|---|---|---|\n" + "".join(lines)
    )


def _as_code(value: object) -> str:
    return "" if value in (None, "") else f"`{json.dumps(value)}`"


def script() -> str:
    schemas = schemas_of(ScriptLine)
    sections = [
        model(name, schema, "##", "A line of the script.\n\n" if name == "ScriptLine" else "")
        for name, schema in sorted(schemas.items(), key=lambda pair: pair[0] != "ScriptLine")
        if "properties" in schema
    ]
    return (
        "# Scripts of the scripted model\n\n"
        "After this page you can write each line that `scripted:FILE` understands. A line is a JSON object; empty "
        "lines are ignored; an unknown key is an error that names file and line. [Testing an agent"
        " offline](../testing.md) says how to use a script.\n\n" + "\n".join(sections)
    )


def events() -> str:
    schemas = schemas_of(AgentEvent)
    kinds = "".join(f"- `{kind}`: `{_class_of(kind)}`\n" for kind in get_args(EventType))
    return (
        "# Fields of events\n\n"
        "After this page you know each field that an event may have, and the Python class of each type. "
        "[Events](../people/events.md) says when each type comes.\n\n"
        f"## Types\n\n{kinds}\n" + "".join(model(name, schema, "##") for name, schema in schemas.items())
    )


def _class_of(kind: str) -> str:
    return type(AgentEvent.model_validate({"type": kind})).__name__


def entries() -> str:
    kinds = get_args(get_args(AnyEntry)[0])
    schemas = schemas_of(*kinds)
    sections = [
        f"### {kind.__name__}\n\n`kind`: `{kind.model_fields['kind'].default}`. "
        f"{cell(docstring(kind))}\n\n{rows(schemas[kind.__name__], leave_out=frozenset({'kind'}))}\n"
        for kind in kinds
    ]
    own = {kind.__name__ for kind in kinds}
    values = [model(name, schema, "###") for name, schema in sorted(schemas.items()) if name not in own]
    return (
        "# Entries of the journal\n\n"
        "After this page you can read a session's journal in Temporal's history and in segments. Each entry is one "
        "recorded fact, and the session's state follows from all of them. Empty fields are left out.\n\n"
        "## Entries\n\n" + "".join(sections) + "## Values in entries\n\n" + "".join(values)
    )


def http() -> str:
    whole = document(OPERATIONS)
    paths = (
        _operation(method, path, operation)
        for path, methods in whole["paths"].items()
        for method, operation in methods.items()
    )
    bodies = (model(name, schema, "###") for name, schema in sorted(whole["components"]["schemas"].items()))
    return (
        "# HTTP, request by request\n\n"
        "After this page you know each request that `longhaul serve` answers, with its bodies. The guide is [serve "
        "sessions by HTTP](../people/http.md). The [OpenAPI document](openapi.json) says the same; each server has it "
        "under `/openapi.json`. Requests about a session also take `user=NAME` or `anonymous=true`, with the scope"
        " `admin`.\n\n## Requests\n\n" + "".join(paths) + "## Bodies\n\n" + "".join(bodies)
    )


def _operation(method: str, path: str, operation: Json) -> str:
    taken = [one for one in operation["parameters"] if one["in"] != "path" and one["name"] not in WHOSE]
    lines = [f"- `{one['name']}` ({one['in']}; {words(one['schema'])}): {meaning(one)}\n" for one in taken]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    answers = "".join(_answers(operation))
    return (
        f"### {method.upper()} `{path}`\n\n{operation['summary']}. "
        f"{operation.get('description', 'For anybody.')}\n\n"
        + ("".join(lines) + "\n" if lines else "")
        + (f"Body: {words(body)}\n\n" if body else "")
        + f"{answers}\n"
    )


def _answers(operation: Json) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        if status == "default":
            continue
        shapes = [f"{words(one['schema'])} as `{kind}`" for kind, one in answer.get("content", {}).items()]
        yield f"- {status}: {', '.join(shapes) or 'no content'}\n"


def decisions() -> str:
    """One line for each decision, newest first in each subject."""
    intro = (
        "# Decisions\n\n"
        "One line for each choice that has a price. It leads to the question, the choice, its cost and what would "
        "change it.\n"
    )
    return intro + "".join(
        _decisions_of(page) for page in sorted((DOCS / "decisions").glob("*.md")) if page.stem != "index"
    )


def _decisions_of(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    subject = text.splitlines()[0].removeprefix("# Decisions: ")
    listed = [
        f"- {date} [{question}]({page.name}#{anchor_of(f'{date} — {question}')})\n"
        for date, question in re.findall(r"(?m)^## (\S+) — (.+)$", text)
    ]
    return f"\n## {subject}\n\n{''.join(listed)}"


def models() -> str:
    """What ships with us of each model, and where it is from."""
    intro = (
        "# Models, one by one\n\n"
        "After this page you know what each model takes and costs, and who says so. [Models](../agents/models.md) says "
        f"how Longhaul uses it. `make rules` wrote the list on {made_on()}.\n\n"
        "Prices are dollars for a million tokens: input, output, input read from the cache, and from how much input on "
        "they rise.\n\n"
        "| model | maker | window | output | efforts | thinks | temperature | forced tools | prices | from |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    lines = list[str]()
    for name, rules in sorted(load_rules().items(), key=lambda item: (item[1].maker, item[0])):
        efforts = "?" if rules.efforts is None else ", ".join(rules.efforts) or "none"
        cells = [
            f"`{name}`", rules.maker, _number(rules.window), _number(rules.output), efforts, rules.thinks or "?",
            {"idle": "without thinking"}.get(rules.samples, rules.samples) or "?", "yes" if rules.forced else "no",
            _dollars(packaged_price(name)), _from(name),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |\n")
    rows = "".join(f"- {number}: {source}\n" for number, source in enumerate(sources_of_ours()))
    return intro + "".join(lines) + f"\n## Our own rows\n\nThey count before the packages.\n\n{rows}"


def _number(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"


def _dollars(price: Price | None) -> str:
    if price is None:
        return "?"
    higher = f", above {price.above[0].tokens:,}" if price.above else ""
    cached = "" if price.cached is None else f", {price.cached:g}"
    return f"{price.input:g}, {price.output:g}{cached}{higher}"


def _from(name: str) -> str:
    return ", ".join(f"row {each}" if isinstance(each, int) else str(each) for each in sources_of(name))


PAGES: dict[str, Callable[[], str]] = {
    "reference/commands.md": commands,
    "reference/agent-files.md": agent_files,
    "reference/settings.md": settings,
    "reference/script.md": script,
    "reference/python.md": python,
    "reference/http.md": http,
    "reference/openapi.json": lambda: json.dumps(document(OPERATIONS), indent=1) + "\n",
    "reference/events.md": events,
    "reference/entries.md": entries,
    "reference/models.md": models,
    "decisions/index.md": decisions,
}


if __name__ == "__main__":
    for name, written in PAGES.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(written(), encoding="utf-8")
