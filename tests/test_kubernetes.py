"""The manifest for Kubernetes: what it sets are settings, what it starts is there, and its numbers fit the code's."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
import yaml

from longhaul.starter.cli.main import app
from longhaul.starter.settings import OTHER_VARIABLES, PREFIX, Settings

ROOT = Path(__file__).parents[1]
PARTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8"))
)
BY_NAME = {(part["kind"], part["metadata"]["name"]): part for part in PARTS}


def pod(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = BY_NAME["Deployment", name]["spec"]["template"]["spec"]
    return spec


def variables() -> Iterator[str]:
    yield from BY_NAME["ConfigMap", "longhaul"]["data"]
    for name in ("longhaul-worker", "longhaul-serve"):
        for container in pod(name)["containers"]:
            yield from (one["name"] for one in container.get("env", ()))


def test_every_variable_is_a_setting() -> None:
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES

    assert {name for name in variables() if name.startswith(PREFIX)} - known == set()
    assert {name for name in variables() if not name.startswith(PREFIX)} == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}


def test_workers_get_longer_than_their_calls_and_are_not_killed_for_an_absent_server() -> None:
    (worker,) = pod("longhaul-worker")["containers"]

    assert (
        pod("longhaul-worker")["terminationGracePeriodSeconds"]
        > Settings.model_fields["graceful_shutdown_timeout"].default
    )
    assert "livenessProbe" not in worker
    assert find_spec(worker["startupProbe"]["exec"]["command"][-1]) is not None


def test_the_server_is_started_by_flags_that_there_are_and_probed_by_its_own_name() -> None:
    (serve,) = pod("longhaul-serve")["containers"]
    hosts = [one["value"] for one in serve["env"] if one["name"] == "LONGHAUL_SERVE_HOSTS"]
    command: Any = typer.main.get_command(app)
    flags = {flag for one in command.commands["serve"].params for flag in one.opts}

    assert {word for word in serve["command"] if word.startswith("--")} <= flags
    for probe in ("livenessProbe", "readinessProbe"):
        assert [header["value"] for header in serve[probe]["httpGet"]["httpHeaders"]] == hosts
