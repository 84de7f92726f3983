"""The documentation: its site builds strictly and asks nobody else for anything, and its references are the code's."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml

import longhaul
from docs.making.reference import PAGES as REFERENCE
from docs.making.tables import rows, schemas_of
from longhaul.activities.models.scripted_model import ScriptLine
from longhaul.agent.entries import AnyEntry
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.views.event_types import AgentEvent, EventType
from longhaul.starter.cli.main import app
from longhaul.starter.console.site import LOOKED_AT, S
from longhaul.starter.serve.routes import OPERATIONS
from longhaul.starter.settings import PREFIX, Settings
from tests.codebase.headings import anchor_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAV: list[dict[str, list[Any]]] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def listed(part: Any) -> Iterator[str]:
    """All pages of a part of the site's list."""
    match part:
        case str():
            yield part
        case list():
            for each in part:
                yield from listed(each)
        case _:
            yield from listed(list(part.values()))


WRITTEN_BY_PEOPLE = [page for page in PAGES if page not in REFERENCE]
FOR_USERS = sorted({page for part in NAV if "Project" not in part for page in listed(part)} & {*PAGES})
FOR_CONTRIBUTORS = (
    "architecture.md",
    "benchmarks.md",
    "coverage.md",
    "decisions/",
    "making/",
    "people/console-comparison.md",
)
MOST_WORDS = 60_000
MOST_WORDS_OF_A_PAGE = 2_000
NO_PAGES = {f"{S}/state", f"{S}/events"}
"""Of the console: a file, and a stream."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # Not quietly: warnings that are not told are not counted, and then nothing is strict.
    building = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(building, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def page_of_reference(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def headings_of(name: str) -> list[str]:
    return re.findall(r"(?m)^#+ (.+)$", page_of_reference(name))


def test_the_site_builds_strictly_and_no_page_asks_another_server_for_anything(site: Path) -> None:
    parts = re.compile(
        r"<(?:script|link|img|iframe|source|video|audio)\b[^>]*?(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]+)"
    )
    asked = {found for page in site.rglob("*.html") for found in parts.findall(page.read_text(encoding="utf-8"))}
    styles = {
        found for one in site.rglob("*.css") for found in re.findall(r"url\((?:https?:)?//[^)]+", one.read_text())
    }

    assert (site / "index.html").is_file()
    assert asked | styles == set()


@pytest.mark.parametrize("name", REFERENCE)
def test_a_page_of_reference_is_what_the_code_says(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == REFERENCE[name](), "run `make reference`"


def test_nothing_else_lies_in_the_folder_of_reference() -> None:
    there = {path.relative_to(DOCS).as_posix() for path in (DOCS / "reference").iterdir()}

    assert there == {name for name in REFERENCE if name.startswith("reference/")}


@pytest.mark.parametrize("name", [name for name in REFERENCE if name.startswith("reference/") and name.endswith(".md")])
def test_no_page_has_two_headings_under_one_anchor(name: str) -> None:
    times = Counter(map(anchor_of, headings_of(Path(name).stem)))

    assert [anchor for anchor, found in times.items() if found > 1] == []


def test_every_command_is_in_the_reference() -> None:
    def named(words: str, command: Any) -> Iterator[tuple[str, set[str]]]:
        yield words, {name for one in command.params if not getattr(one, "hidden", False) for name in one.opts}
        for name, below in getattr(command, "commands", {}).items():
            if not below.hidden:
                yield from named(f"{words} {name}", below)

    commands = dict(named("longhaul", typer.main.get_command(app)))

    assert set(commands) <= set(headings_of("commands"))
    flags = {flag for names in commands.values() for flag in names if flag.startswith("--")}
    assert {flag for flag in flags if f"`{flag}`" not in page_of_reference("commands")} == set()


def test_every_key_every_setting_and_every_word_of_a_script_is_in_the_reference() -> None:
    keys = {field.alias or name for name, field in AgentSpec.model_fields.items()} | set(ReActConfig.model_fields)
    words = {field.alias or name for name, field in ScriptLine.model_fields.items()}
    variables = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}

    for names, page in ((keys, "agent-files"), (variables, "settings"), (words, "script")):
        assert {name for name in names if f"`{name}`" not in page_of_reference(page)} == set()


@pytest.mark.proves("F1")
def test_every_name_request_event_and_entry_is_in_the_reference() -> None:
    entries = {entry.__name__ for entry in get_args(get_args(AnyEntry)[0])}
    requests = {f"{one.method} `{one.path}`" for one in OPERATIONS}

    assert (
        set(longhaul.__all__) - {heading.split("`")[1] for heading in headings_of("python") if "`" in heading} == set()
    )
    assert requests - set(headings_of("http")) == set()
    assert entries - set(headings_of("entries")) == set()
    names = {*get_args(EventType), *AgentEvent.model_fields}
    assert {name for name in names if f"`{name}`" not in page_of_reference("events")} == set()


def test_a_field_is_told_with_what_it_may_be_and_what_it_is_when_nothing_is_said() -> None:
    (line,) = (row for row in rows(schemas_of(ReActConfig)["ReActConfig"]).splitlines() if "`max_continuations`" in row)

    assert line.startswith(
        "| `max_continuations` | whole number, ≥ 0, ≤ 100 | `3` | How often in a row a model is asked"
    )


def test_every_page_is_in_the_navigation_unless_it_is_for_contributors() -> None:
    found = {*listed(NAV)}
    for_contributors = {page for page in PAGES if page.startswith(FOR_CONTRIBUTORS)}

    assert set(PAGES) - found == for_contributors


def test_the_page_for_contributors_leads_to_each_page_outside_the_navigation() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")

    outside = {page if page.endswith(".md") else page.rstrip("/") for page in FOR_CONTRIBUTORS} - {"making"}
    assert {page for page in outside if f"](docs/{page})" not in text} == set()


def test_pages_are_short_enough_to_be_read() -> None:
    """All that people wrote for readers; and each page, unless it is looked things up in."""
    counted = {page: words_of((DOCS / page).read_text(encoding="utf-8")) for page in FOR_USERS if page not in REFERENCE}
    looked_up = {*listed([part for part in NAV if "Reference" in part])}

    assert sum(counted.values()) <= MOST_WORDS
    assert {
        page: words for page, words in counted.items() if words > MOST_WORDS_OF_A_PAGE and page not in looked_up
    } == {}


def words_of(page: str) -> int:
    """As readers see them: no code blocks, which tests run or read, no targets of links, no marks of tables."""
    prose = re.sub(r"(?ms)^ *```.*?^ *```", "", page)
    prose = re.sub(r"<[^>]*>", "", re.sub(r"\]\([^)]*\)", "]", prose))
    return sum(any(map(str.isalnum, word)) for word in prose.split())


def test_code_and_marks_are_not_counted_as_words() -> None:
    page = '# Two lamps\n\n```sh\nlonghaul run\n```\n| a | [lamp](lamp.md) |\n|---|---|\n<img alt="x y"> `b c`\n'

    assert words_of(page) == 6


@pytest.mark.parametrize("page", FOR_USERS)
def test_a_page_opens_with_what_one_can_do_after_it(page: str) -> None:
    _title, opening, *_ = (DOCS / page).read_text(encoding="utf-8").split("\n\n")

    assert "fter this page you " in opening.replace("\n", " ")


@pytest.mark.parametrize("page", [*WRITTEN_BY_PEOPLE, "../README.md"])
def test_what_stands_in_fences_can_be_read(page: str) -> None:
    for language, text in re.findall(r"(?ms)^```(\w+)[^\n]*\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8")):
        match language:
            case "python":
                assert unknown_names(text) == [], text
            case "toml":
                tomllib.loads(text)
            case "json":
                assert lines_or_one(text)
            case "yaml":
                assert list(yaml.safe_load_all(text))
            case "dockerfile":
                assert {line.split()[0] for line in text.splitlines()} <= {"FROM", "USER", "RUN", "COPY"}
            case _:
                assert language in {"sh", "text", "sql", "html", "ini"}, language


@pytest.mark.parametrize("page", [*WRITTEN_BY_PEOPLE, "../README.md"])
def test_all_that_is_shown_stands_in_fences_that_say_what_it_is(page: str) -> None:
    """What stands in none, or in one without a word, is read by nobody here."""
    assert loose((DOCS / page).read_text(encoding="utf-8").splitlines()) == []


@pytest.mark.parametrize("page", [*WRITTEN_BY_PEOPLE, "../README.md"])
def test_the_name_of_a_shown_file_can_be_read_in_plain_markdown(page: str) -> None:
    """The title of a fence is seen on the site alone."""
    text = (DOCS / page).read_text(encoding="utf-8")
    shown = {fence[1]: text[: fence.start()].rstrip() for fence in re.finditer(r'(?m)^```\w+ title="([^"]+)"', text)}

    assert [name for name, before in shown.items() if name not in before.rpartition("\n\n")[2]] == []


def loose(lines: list[str]) -> list[str]:
    """Lines that begin code without saying of which kind. What is indented below an item of a list is part of it."""
    found, is_fenced, in_list, before = list[str](), False, False, ""
    for line in lines:
        if line.lstrip().startswith("```"):
            if not is_fenced and line.strip() == "```":
                found.append(line)
            is_fenced = not is_fenced
        elif not is_fenced and line.startswith("    ") and not before.strip() and not in_list:
            found.append(line)
        elif line.strip() and not line.startswith(" "):
            in_list = bool(re.match(r"([-*]|\d+\.) ", line))
        before = line
    return found


def test_each_page_of_the_console_has_its_picture_in_light_and_in_dark() -> None:
    told = (DOCS / "people" / "console.md").read_text(encoding="utf-8")
    named = {"console": "inbox", "{session}": "session", "log": "events"}
    pages = {named.get(last, last) for path in LOOKED_AT if path not in NO_PAGES for last in [path.rpartition("/")[2]]}

    shown = {name for name in pages for scheme in ("", "-dark") if f'="../images/console-{name}{scheme}.png"' in told}
    assert shown == pages
    assert "docs/images/console-inbox.png" in (ROOT / "README.md").read_text(encoding="utf-8")


def lines_or_one(text: str) -> list[Any]:
    """JSON lines, or one document over several."""
    try:
        return [json.loads(line) for line in text.splitlines()]
    except json.JSONDecodeError:
        return [json.loads(text)]


def unknown_names(program: str) -> list[str]:
    """Of those that it imports from longhaul; waiting at the top is allowed, for pages show parts of programs."""
    tree = compile(program, "page", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "longhaul"]
    return [name.name for node in imports for name in node.names if name.name not in longhaul.__all__]


def test_the_service_on_its_page_is_the_one_that_is_tested() -> None:
    page = (DOCS / "web-service.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'(?ms)^```python title="web_service.py"\n(.*?)^```$', page)

    assert shown == (ROOT / "examples" / "web_service.py").read_text(encoding="utf-8")
    assert len(shown.splitlines()) <= 66
