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

from longhaul.starter.provision.dev_server import DYNAMIC_CONFIG
from tests.house.syntax import tree_of

ROOT = Path(__file__).parents[2]
ROOMS = ("agent", "stores", "workflows", "activities", "starter")

MOST_LINES_OF_A_FILE = 250
MOST_LINES_OF_A_TEST_FILE = 400
MOST_LINES_OF_A_FUNCTION = 40

LONGER_FILES: dict[str, str] = {
    "starter/serve/response_bodies.py": "all that the HTTP API answers, in one list",
    "starter/provision/dev_server.py": "one server: how it is started, closed to strangers, awaited and ended",
    "activities/tools/file_search.py": "a chapter",
    "activities/masker.py": "every form in which a secret may be printed, and how it is cut out",
    "starter/client/reading/queries.py": "a chapter: a session's questions, and each thing that its silence may mean",
    "starter/client/session.py": "all that a caller may ask of a session stands on one page",
    "workflows/contract.py": "all that a session and those who ask it must agree on, in one list",
    "activities/contract.py": "all that crosses between workflow and activities, in one list",
    "agent/views/event_types.py": "one event, and a class for each of its types",
    "starter/cli/terminal/conversation.py": "one conversation at one terminal, from its first line to its end",
    "agent/letters/bodies.py": "all that may be asked from outside, in one list",
    "workflows/activity_options.py": "every timeout and retry policy, in one list",
    "workflows/steps.py": "what each step of the loop asks of the world, in one place",
    "worker.py": "the composition root: what it puts together can't be known elsewhere",
    "workflows/session.py": "one class, in which the SDK looks for the loop, the handlers and the queries",
    "workflows/activity_inputs.py": "the input of each activity, and what of the record is in it, in one list",
    "agent/values/conversation/messages.py": "one vocabulary: a message, and each kind of block that it may have",
    "starter/settings.py": "all that may be set on one machine, in one list",
    "agent/values/spec/agent_spec.py": "all that an agent file may say, in one list",
    "agent/views/events.py": "one fold: which events each kind of entry becomes",
    "agent/values/spec/profiles.py": "one profile: all that it may say, and what is looked at of each",
    "activities/run_tool.py": "one call of a tool, from its beginning to what came of it",
    "activities/call_model.py": "one model call, from its context to what is recorded of its answer",
    "tests/agent/play.py": "one player, with an arm for each step",
    "tests/replay/scenarios.py": "every story of which a history is kept, in one list",
    "agent/letters/all_letters.py": "every letter, one row each",
    "starter/render_session.py": "whole sessions as people read them",
    "workflows/unbegun_task_guard.py": "a chapter: what a run may not hear of, or begin, and why",
    "activities/restore.py": "a chapter: what a session begins with, from the store to the runs before it",
    "starter/client/states/session_copies.py": "a chapter: what there is of a session beside its run, read and deleted",
    "starter/client/hubs.py": "a chapter: all that a caller may ask of a hub",
    "agent/permission/decision_table.py": "the table, and what each row asks of a call, side by side",
    "activities/models/apis/openai_responses.py": "a chapter: one API, from its request to its reply",
    "activities/models/apis/sdk_calls.py": "a chapter: what servers send, and what is read of it",
    "activities/models/apis/vendor_model.py": "a chapter: one request through the library, from end to end",
    "activities/models/failures/failure_classification.py": "a chapter: from an exception to a verdict",
    "activities/models/replies.py": "a chapter: from deltas to blocks",
    "tests/activities/models/replies/shapes.py": "every shape in which servers stream, in one list",
}
"""Path to the reason why the file is better in one piece."""

LONGER_FUNCTIONS: dict[str, str] = {
    "worker.py:_assembled": "the one place where everything is put together; in parts it would be passed around",
}
"""`path:name` to the reason why the function is better in one piece."""

NETWORK = (
    "anthropic", "httpx", "httpx2", "mcp", "openai", "redis", "sqlalchemy", "psycopg", "pymysql", "tiktoken",
    "requests", "aiohttp", "starlette", "tree_sitter", "typer", "uvicorn",
)  # fmt: skip
"""Libraries that a workflow must never load: each session's sandbox would pay for them."""


def python_files(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function's name with its number of lines, docstring left out."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]
            yield node.name, (node.end_lineno or first.lineno) - first.lineno + 1


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


def test_files_fit_in_the_head() -> None:
    lengths = {
        name_of(path): len(path.read_text().splitlines())
        for path in [*python_files(*ROOMS, "tests"), ROOT / "worker.py"]
    }

    too_long = {
        name: lines
        for name, lines in lengths.items()
        if lines > (MOST_LINES_OF_A_TEST_FILE if name.startswith("tests/") else MOST_LINES_OF_A_FILE)
    }

    assert too_long.keys() == LONGER_FILES.keys(), too_long


def test_functions_read_like_a_paragraph() -> None:
    too_long = {
        f"{name_of(path)}:{function}": lines
        for path in [*python_files(*ROOMS), ROOT / "worker.py"]
        for function, lines in functions(path)
        if lines > MOST_LINES_OF_A_FUNCTION
    }

    assert too_long.keys() == LONGER_FUNCTIONS.keys(), too_long


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


def test_nobody_imports_the_worker() -> None:
    importers = [name_of(path) for path in python_files(*ROOMS) if "longhaul.worker" in imported_modules(path)]

    assert importers == []


def test_everything_is_imported_under_its_one_name() -> None:
    """At the top of a checkout `import agent` works too, and makes a second copy of every class."""
    bare = {
        name_of(path): sorted(
            name for name in imported_modules(path) if name.split(".", maxsplit=1)[0] in (*ROOMS, "worker")
        )
        for path in [*python_files(*ROOMS, "tests", "examples", "benchmarks", "src"), ROOT / "worker.py"]
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


def test_compose_runs_the_server_with_the_settings_that_we_test_with() -> None:
    lines = (ROOT / "deploy" / "dynamicconfig.yaml").read_text().splitlines()
    settings = [line for line in lines if line and not line.startswith("#")]

    in_compose = {key.rstrip(":"): json.loads(value.removeprefix("  - value: ")) for key, value in pairwise(settings)
                  if value.startswith("  - value: ")}  # fmt: skip

    assert in_compose == dict(DYNAMIC_CONFIG)
