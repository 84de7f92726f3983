"""What sessions rest on in Temporal's SDK beyond its promises: listed in one file, there, and missed at start."""

import ast
import re
from pathlib import Path

import pytest
import temporalio.worker
from packaging.requirements import Requirement
from temporalio.client import Client

from longhaul.workflows.sdk_internals import (
    OF_A_WORKER,
    PRIVATE,
    VERSIONS,
    ChangedSdk,
    check_sdk,
    check_worker,
)
from longhaul.workflows.session import AgentSession
from tests.codebase.figures import source_files
from tests.codebase.syntax import tree_of

ROOT = Path(__file__).parents[3]


def private_imports() -> set[str]:
    """`module:name` of whatever the sources import from a part of the SDK that is not public."""
    found = set[str]()
    for path in source_files():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and re.match(r"temporalio\.(.*\.)?(bridge|_)", f"{node.module}."):
                found |= {f"{node.module}:{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("name", [*PRIVATE])
def test_the_installed_sdk_has_it(name: str) -> None:
    check_sdk([name])


@pytest.mark.parametrize("name", [*PRIVATE, *OF_A_WORKER])
def test_it_is_used(name: str) -> None:
    last = re.split(r"[.:]", name)[-1]
    users = [path for path in source_files() if path.stem != "sdk_internals" and last in path.read_text("utf-8")]
    own = (ROOT / "workflows" / "sdk_internals.py").read_text("utf-8")

    assert users or own.count(last) > 1


def test_what_is_imported_from_its_private_parts_is_listed() -> None:
    modules = {name.partition(":")[0] for name in PRIVATE}

    assert {name for name in private_imports() if f"{name.replace(':', '.')}" not in modules} - {*PRIVATE} == {
        "temporalio.bridge.proto.workflow_activation:InitializeWorkflow",
        "temporalio.bridge.proto.workflow_activation:SignalWorkflow",
        "temporalio.bridge.proto.workflow_activation:WorkflowActivationJob",
    }, "parts of WorkflowActivation alone are listed with it"


@pytest.mark.parametrize(
    "name", ["temporalio.nowhere:Worker", "temporalio.worker:Nobody", "temporalio.converter:DataConverter._nothing"]
)
def test_a_worker_does_not_start_without_it_and_says_what_to_install(name: str) -> None:
    with pytest.raises(ChangedSdk, match=rf"temporalio [\d.]+ has no {name.replace(':', '.')}") as error:
        check_sdk([name])

    assert str(error.value).endswith(f"install temporalio{VERSIONS}")


@pytest.mark.server
async def test_a_worker_that_lacks_a_part_is_not_run(temporal_server: object) -> None:
    client = await Client.connect(temporal_server.address)  # type: ignore[attr-defined]
    worker = temporalio.worker.Worker(client, task_queue="sdk-internals", workflows=[AgentSession])
    check_worker(worker)
    del worker._workflow_worker._deadlock_timeout_seconds  # type: ignore[union-attr]  # noqa: SLF001

    with pytest.raises(ChangedSdk, match=r"no temporalio\.worker\.Worker\._workflow_worker\._deadlock_timeout_seconds"):
        check_worker(worker)


def test_the_versions_are_those_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    named = [Requirement(each) for each in re.findall(r'"(temporalio\[[^"]+)"', text)]

    assert {str(each.specifier) for each in named} == {str(Requirement(f"temporalio{VERSIONS}").specifier)}
