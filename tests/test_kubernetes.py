"""The manifest for Kubernetes: what it sets are settings, what it starts is there, and its numbers fit the code's."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import SecretStr

from longhaul.starter.cli.main import app
from longhaul.starter.serve.request_checks import PROBES
from longhaul.starter.settings import OTHER_VARIABLES, PREFIX, SECRET, Settings
from tests.e2e.manifests import ClusterObjects, of_image, pod_of, variables_of_container

SIDES = ("longhaul-worker", "longhaul-serve")
OF_BOTH = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
SECRETS = {
    *(f"{PREFIX}{name.upper()}" for name, each in Settings.model_fields.items() if each.annotation is SecretStr),
    "TEMPORAL_API_KEY",
}
"""Which both sides read."""
OF_WORKERS = {f"{PREFIX}NOTIFY_KEY", f"{SECRET}SHOP_TOKEN", "ANTHROPIC_API_KEY"}
OF_SERVE = {"LONGHAUL_TRUST": "1", "LONGHAUL_SERVE_HOSTS": "agents.example.com", "LONGHAUL_SERVE_TOKENS": "0af7 ana"}
"""The server's own container says them, whatever the ConfigMap does."""


def variables(side: str, settings: set[str], tmp_path: Path) -> dict[str, str]:
    """What a container gets where somebody has set all these."""
    objects = ClusterObjects(
        secrets={
            "longhaul-secrets": dict.fromkeys(SECRETS, "of both"),
            "longhaul-worker-secrets": dict.fromkeys(OF_WORKERS, "of workers"),
            "longhaul-tokens": {"lines": OF_SERVE["LONGHAUL_SERVE_TOKENS"]},
        },
        config_maps={},
        folder=tmp_path,
        settings=dict.fromkeys(settings, "set"),
    )
    (container,) = pod_of(side)["containers"]
    return dict(variables_of_container(container, objects))


def test_every_variable_is_a_setting(tmp_path: Path) -> None:
    said = variables("longhaul-serve", set(), tmp_path).keys() - SECRETS

    assert {name for name in said if name.startswith(PREFIX)} - OF_BOTH == set()
    assert {name for name in said if not name.startswith(PREFIX)} == {"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"}


@pytest.mark.parametrize("side", SIDES)
def test_every_setting_of_the_config_map_reaches_both_sides(side: str, tmp_path: Path) -> None:
    settings = OF_BOTH - SECRETS - OF_WORKERS

    given = variables(side, settings, tmp_path)

    own = OF_SERVE if side == "longhaul-serve" else {}
    assert {name: given[name] for name in settings} == dict.fromkeys(settings, "set") | own


def test_secrets_reach_the_sides_that_read_them_and_no_other(tmp_path: Path) -> None:
    worker, serve = (variables(side, set(), tmp_path) for side in SIDES)

    assert {"LONGHAUL_MASTER_KEY", "LONGHAUL_APPROVAL_KEY", "LONGHAUL_ID_KEY"} < SECRETS
    assert {name: (worker[name], serve[name]) for name in SECRETS} == dict.fromkeys(SECRETS, ("of both", "of both"))
    assert {name: worker[name] for name in OF_WORKERS} == dict.fromkeys(OF_WORKERS, "of workers")
    assert OF_WORKERS & serve.keys() == set()


def test_a_pod_whose_secrets_nobody_has_made_does_not_start(tmp_path: Path) -> None:
    (container,) = pod_of("longhaul-worker")["containers"]
    nothing = ClusterObjects({}, {}, tmp_path, {})

    with pytest.raises(KeyError, match="longhaul-secrets"):
        dict(variables_of_container(container, nothing))


@pytest.mark.parametrize("side", SIDES)
def test_a_pod_has_no_rights_that_it_does_not_need(side: str) -> None:
    pod = pod_of(side)
    (container,) = pod["containers"]
    written = {volume["name"] for volume in pod["volumes"] if "configMap" not in volume}

    assert not pod["automountServiceAccountToken"]
    assert not pod["enableServiceLinks"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in written} >= {"/data", "/tmp"}


@pytest.mark.parametrize("side", SIDES)
def test_agents_and_tools_lie_where_the_image_looks_for_them(side: str) -> None:
    (container,) = pod_of(side)["containers"]
    (agents,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "agents"]

    assert f"PYTHONPATH={agents}" in of_image("ENV")[-1].split()
    assert Path(agents).parent == Path(of_image("WORKDIR")[-1])
    assert "workingDir" not in container


def test_workers_get_longer_than_their_calls_and_are_not_killed_for_an_absent_server() -> None:
    (worker,) = pod_of("longhaul-worker")["containers"]

    assert (
        pod_of("longhaul-worker")["terminationGracePeriodSeconds"]
        > Settings.model_fields["graceful_shutdown_timeout"].default
    )
    assert "livenessProbe" not in worker
    assert find_spec(worker["startupProbe"]["exec"]["command"][-1]) is not None


def test_the_server_is_started_by_flags_that_there_are_and_probed_where_it_answers_everybody() -> None:
    (serve,) = pod_of("longhaul-serve")["containers"]
    command: Any = typer.main.get_command(app)
    flags = {flag for one in command.commands["serve"].params for flag in one.opts}
    port = int(serve["command"][serve["command"].index("--port") + 1])

    assert {word for word in serve["command"] if word.startswith("--")} <= flags
    probes = [serve[probe]["httpGet"] for probe in ("livenessProbe", "readinessProbe")]
    assert probes == [{"path": path, "port": port} for path in PROBES]
