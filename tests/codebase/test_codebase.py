"""The rules of the house that no other tool keeps. HOUSE rules about imports stand in pyproject.toml."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG
from tests.codebase.figures import DOORS, ROOMS, functions_of, lines_of, source_files
from tests.codebase.syntax import tree_of

ROOT = Path(__file__).parents[2]

MOST_LINES_OF_A_FILE = 600
LEAST_LINES_OF_A_FILE = 60
MOST_CALLED_ONCE = 0.235
"""Of all functions, those that are private and called at one place: each sends a reader elsewhere. It only falls."""

LONGER_FILES: dict[str, str] = {
    "longhaul/agent/entries.py": "all that can happen in a session, in one list",
    "tests/activities/models/replies/shapes.py": "every shape in which servers stream, in one table",
}
"""Path to the reason why the file is better in one piece."""

OWN_LAYER = "what the files of its folder share, and what lists them all, stand in different layers"
ONE_SUBJECT = "the commands of one subject, which alone are loaded when one of them is called"
SHORTER_FILES: dict[str, str] = {
    "longhaul/agent/decisions/session_tools/all_session_tools.py": OWN_LAYER,
    "longhaul/agent/decisions/session_tools/session_tool.py": OWN_LAYER,
    "longhaul/agent/values/scheduled_request.py": "it holds an agent's settings, which hold all other values",
    "longhaul/agent/operations/sentences.py": "it is all that `longhaul --help` loads of the room",
    "activities/models/apis/bedrock_client.py": "it loads boto3",
    "activities/models/failures/retry_errors.py": "it knows Temporal, and how failures are judged does not",
    "activities/process/relay.py": "a program of its own",
    "activities/worker_parts.py": "what all activities take, and none of them owns",
    "starter/cli/commands/codec.py": ONE_SUBJECT,
    "starter/cli/commands/keys.py": ONE_SUBJECT,
    "starter/cli/commands/trust.py": ONE_SUBJECT,
    "starter/cli/entry_point.py": "it runs before anything is known to be installed",
    "starter/client/hooks.py": "a public name's home, which loads nothing else",
    "starter/client/pipelines.py": "a public name's home, which loads nothing else",
    "starter/worker_host/polling_here.py": "a program of its own: the health check of a container",
    "starter/worker_host/worker_extra.py": "it is asked before the parts of a worker are known to be installed",
    "starter/visible.py": "the one way for text from outside to a terminal, for all of the room",
}
"""Path to the reason why so little has a file of its own."""

NETWORK = (
    "a2a", "anthropic", "httpx", "httpx2", "mcp", "openai", "redis", "sqlalchemy", "psycopg", "pymysql", "tiktoken",
    "requests", "aiohttp", "starlette", "tree_sitter", "typer", "uvicorn",
)  # fmt: skip
"""Libraries that a workflow must never load: each session's sandbox would pay for them."""


def python_files(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported_modules(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def tracked_texts() -> Iterator[tuple[str, str]]:
    """Every text file that a clone would hold, so also the new ones that are not committed yet."""
    # A checkout owned by another user, as in a container, is none of git's business here.
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        if b"\0" not in content:
            yield name, content.decode("utf-8")


def test_a_file_is_a_chapter() -> None:
    lengths = {name_of(path): lines_of(path) for path in source_files()}
    tests = {name_of(path): lines_of(path) for path in python_files("tests")}

    too_long = {name: lines for name, lines in (lengths | tests).items() if lines > MOST_LINES_OF_A_FILE}
    too_short = {
        name: lines
        for name, lines in lengths.items()
        if lines < LEAST_LINES_OF_A_FILE and not name.endswith("__init__.py")
    }

    assert too_long.keys() == LONGER_FILES.keys(), too_long
    assert too_short.keys() == SHORTER_FILES.keys(), too_short


def test_few_private_functions_are_called_at_one_place() -> None:
    functions = [function for path in source_files() for function in functions_of(path)]
    share = sum(function.called_once for function in functions) / len(functions)

    assert MOST_CALLED_ONCE - 0.01 < share <= MOST_CALLED_ONCE, "lower the bound when it has fallen"


def test_every_file_says_what_it_owns() -> None:
    silent = [name_of(path) for path in python_files(*ROOMS) if path.stat().st_size and not has_docstring(path)]

    assert silent == []


def has_docstring(path: Path) -> bool:
    return ast.get_docstring(tree_of(path)) is not None


def test_init_files_outside_agent_are_empty() -> None:
    """An import in `activities/__init__.py` would drag network libraries into the workflow, unseen by the linters."""
    inits = [path for path in python_files(*ROOMS[1:], "tests") if path.name == "__init__.py"]

    assert [name_of(path) for path in inits if path.stat().st_size] == []


def test_every_folder_of_a_room_is_a_package() -> None:
    folders = {path.parent for path in python_files(*ROOMS, "tests")}

    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


def test_the_activities_contract_imports_no_activity() -> None:
    imported = imported_modules(ROOT / "activities" / "contract.py")

    assert {name for name in imported if name.startswith(("longhaul.activities", "longhaul.stores"))} == set()


@pytest.mark.parametrize(
    "module",
    [
        "workflows.session",
        "workflows.contract",
        "activities.contract",
        "agent.decision",
    ],
)
def test_a_cold_import_loads_no_network_library(module: str) -> None:
    script = f"import json, sys, longhaul.{module}; print(json.dumps(sorted(set(sys.modules) & set({NETWORK!r}))))"

    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)

    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout) == []


def test_no_test_asserts_seconds_of_the_clock() -> None:
    """They are compared with `usual(...)`, so that a slow or crowded machine fails no test."""
    spent = re.compile(r"(?:monotonic|perf_counter|process_time|\.time)\(\) - \w+ <=? (?:[\d.]+|[A-Z_]*SECONDS)")

    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in (ROOT / "tests").rglob("test_*.py")
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if "assert" in line and spent.search(line)
    ]

    assert found == []


def test_nobody_imports_the_worker() -> None:
    importers = [name_of(path) for path in python_files(*ROOMS) if "longhaul.worker" in imported_modules(path)]

    assert importers == []


@pytest.mark.proves("X20")
def test_everything_is_imported_under_its_one_name() -> None:
    """At the top of a checkout `import agent` works too, and makes a second copy of every class."""
    bare = {
        name_of(path): sorted(
            name
            for name in imported_modules(path)
            if name.split(".", maxsplit=1)[0] in ("activities", "starter", "workflows", "worker")
        )
        for path in [
            *python_files(*ROOMS, "tests", "examples", "benchmarks"),
            ROOT / "longhaul" / "__init__.py",
            ROOT / "worker.py",
            *DOORS,
        ]
    }

    assert {name: found for name, found in bare.items() if found} == {}


def test_names_say_what_a_file_is_for() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "base", "manager", "handler", "misc"}

    assert [name_of(path) for path in python_files(*ROOMS, "tests") if path.stem in vague] == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    """Such a line works for one person only; registries are the business of whoever installs."""
    # Put together here so that this file does not find itself.
    hosts = ("pypi" + ".org", "files.python" + "hosted.org", "registry." + "npmjs", "proxy.golang" + ".org")
    here = (f"{ROOT}/", f"{Path.home()}/.cache")

    found = [name for name, text in tracked_texts() if any(mark in text for mark in (*hosts, *here))]

    assert found == []


def test_lock_files_pin_every_package_by_hash() -> None:
    for lock in ("requirements.lock", "requirements-dev.lock"):
        entries = re.split(r"\n(?=\S)", re.sub(r"(?m)^\s+#.*\n", "", (ROOT / lock).read_text().strip()))
        loose = [entry for entry in entries if not re.match(r"[\w.-]+(\[[\w, -]+\])?==\S+(.|\n)*--hash=sha256:", entry)]

        assert loose == [], lock


def test_what_runs_is_a_part_of_what_is_tested() -> None:
    runtime, development = (versions(ROOT / name) for name in ("requirements.lock", "requirements-dev.lock"))

    assert runtime - development == set()


def test_what_a_package_asks_for_with_an_extra_is_pinned_with_it() -> None:
    """pip takes the two for different packages: of one that is pinned without, it looks at the newest release, which
    has no hash here, and installs nothing."""
    pinned = {one.name: one for one in map(Requirement, pins(ROOT / "requirements-dev.lock"))}
    asked = [
        needed
        for one in pinned.values()
        for text in (metadata.requires(one.name) if is_installed(one.name) else None) or ()
        if (needed := Requirement(text)).extras and any(applies(needed, extra) for extra in ("", *one.extras))
    ]

    assert [str(needed) for needed in asked if not needed.extras <= pinned[canonicalize_name(needed.name)].extras] == []
    assert asked


def is_installed(name: str) -> bool:
    """False for what the lock has for other platforms."""
    return any(metadata.distributions(name=name))


def applies(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def versions(lock: Path) -> set[str]:
    """A package may have more extras where tests are."""
    return {re.sub(r"\[.*\]", "", pin) for pin in pins(lock)}


def pins(lock: Path) -> set[str]:
    return set(re.findall(r"(?m)^[\w.-]+(?:\[[\w, -]+\])?==[^\s;]+", lock.read_text()))


@pytest.mark.proves("F5")
def test_compose_runs_the_server_with_the_settings_that_we_test_with() -> None:
    lines = (ROOT / "deploy" / "dynamicconfig.yaml").read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]

    in_compose = {key.rstrip(":"): json.loads(value.removeprefix("  - value: ")) for key, value in pairwise(settings)
                  if value.startswith("  - value: ")}  # fmt: skip

    assert in_compose == dict(DYNAMIC_CONFIG)
