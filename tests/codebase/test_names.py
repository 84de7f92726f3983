"""The names that programs import from `longhaul`: one list that resolves, is documented, and costs nothing unasked."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longhaul
from docs.making.python_names import errors
from tests.codebase.syntax import tree_of
from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
LIST = ROOT / "longhaul" / "__init__.pyi"
PAGE = ROOT / "docs" / "making" / "names.md"
GROUPS = ("## For programs that use agents", "## For code that extends workers")
FEWEST = 200
"""Fewer would mean that the list was not read."""


def listed() -> dict[str, str]:
    """Name to home, read with a parser, unlike `longhaul` itself."""
    imports = [node for node in tree_of(LIST).body if isinstance(node, ast.ImportFrom)]
    return {name.asname or "": node.module or "" for node in imports for name in node.names}


def documented() -> list[list[str]]:
    """The names of each group of the page, in its order."""
    text = PAGE.read_text("utf-8")
    first, second = (text.index(group) for group in GROUPS)
    return [re.findall(r"^\| `(\w+)` \| \S.* \|$", part, re.MULTILINE) for part in (text[first:second], text[second:])]


def in_a_new_process(script: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=SURE_SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.proves("F1", "X20")
def test_every_name_is_what_its_home_has() -> None:
    homes = listed()

    assert len(homes) > FEWEST
    assert sorted(homes) == longhaul.__all__
    assert {name for name in homes if getattr(longhaul, name) is not getattr(sys.modules[homes[name]], name)} == set()
    assert {*homes} <= {*dir(longhaul)}


def test_every_name_is_on_the_page_once_with_a_line_or_in_the_tree_of_errors() -> None:
    use, extend = documented()

    assert len({*use, *extend}) == len([*use, *extend])
    assert sorted({*use, *extend, *(name for name, _ in errors())}) == longhaul.__all__


def test_every_class_of_event_and_every_error_is_a_name() -> None:
    script = (
        "import json, longhaul\n"
        "from longhaul.agent.views import event_types\n"
        "import longhaul.plugin, longhaul.starter.serve.application, longhaul.starter.client.client\n"
        "def below(kind):\n"
        "    return {kind}.union(*map(below, kind.__subclasses__()))\n"
        "met = below(event_types.AgentEvent) | below(longhaul.LonghaulError)\n"
        "print(json.dumps([one.__name__ for one in met if '.starter.cli.' not in one.__module__]))"
    )
    met = json.loads(in_a_new_process(script))

    assert len(met) > 60
    assert sorted({*met} - {*longhaul.__all__}) == []


def test_importing_longhaul_alone_imports_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import longhaul; print(sorted(set(sys.modules) - before))"

    assert in_a_new_process(script).strip() == "['longhaul']"


HEAVY = ("anthropic", "openai", "sqlalchemy", "starlette", "tree_sitter", "typer", "uvicorn", "jsonschema", "tiktoken")


@pytest.mark.parametrize(
    ("name", "not_loaded"),
    [
        ("AgentSpec", (*HEAVY, "temporalio", "redis", "httpx", "asyncio")),
        ("Longhaul", (*HEAVY, "redis", "opentelemetry", "temporalio.worker")),
        (
            "tool",
            (*HEAVY, "temporalio", "redis", "httpx", "longhaul.agent.entries", "longhaul.agent.values.spec.agent_spec"),
        ),
    ],
)
def test_a_name_loads_what_it_needs_and_not_what_others_do(name: str, not_loaded: tuple[str, ...]) -> None:
    script = f"import sys; from longhaul import {name}; print(sorted(set(sys.modules) & set({not_loaded!r})))"

    assert in_a_new_process(script).strip() == "[]"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("longhaul.AgentSpek", "AttributeError: longhaul has no 'AgentSpek'; did you mean 'AgentSpec'?"),
        ("from longhaul import AgentSpek", "ImportError: longhaul has no 'AgentSpek'; did you mean 'AgentSpec'?"),
        ("from longhaul import longhaul", "ImportError: longhaul has no 'longhaul'; did you mean 'Longhaul'?"),
        ("from longhaul import Zebra", "ImportError: longhaul has no 'Zebra'; see docs/reference/python.md"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(line: str, answer: str) -> None:
    script = f"import longhaul\n{line}"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=SURE_SECONDS
    )

    assert answer in ran.stderr.splitlines()[-1]


def test_a_room_is_no_misspelt_name() -> None:
    script = "import longhaul; from longhaul import agent, worker; print(hasattr(longhaul, 'nonsense'))"

    assert in_a_new_process(script).strip() == "False"


def test_docs_and_examples_import_from_longhaul_alone() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.py")]
    deep = re.compile(
        r"(?:from|import) longhaul\.(?!(?:nexus|testing|workflow)\b)"
        r"|`longhaul\.(?:agent|activities|starter|stores|workflows)\.(?!…)"
    )

    assert [path.name for path in pages if deep.search(path.read_text("utf-8"))] == []
