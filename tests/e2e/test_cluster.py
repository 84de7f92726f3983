"""The pods of deploy/kubernetes.yaml as processes: each with exactly the environment and the folders that the manifests
give it, and with the ConfigMaps and Secrets that docs/operating/deploying.md has somebody make."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import found
from tests.e2e.composition import Composition, composed
from tests.e2e.manifests import ClusterObjects, container_of_pod, pod_of
from tests.e2e.test_composition import (
    ASKS_AND_ORDERS,
    agents_of_a_user,
    asks,
    find_redis_of_the_system,
    script_of,
    until_said,
)
from tests.e2e.test_places import find_walls
from tests.servers.bubblewrap import find_working_bubblewrap

pytestmark = [pytest.mark.server, pytest.mark.redis]

PODS = ("longhaul-worker", "longhaul-serve")
TOKEN = "lh_cluster_token_of_the_tests"


@pytest.fixture(scope="module")
def pods(temporal_cli: Path, compose_loader: Path) -> Iterator[Composition]:
    found("mount namespaces", find_walls)
    found("bubblewrap", find_working_bubblewrap)
    found("redis", find_redis_of_the_system)
    folder = Path(tempfile.mkdtemp(prefix="longhaul-cluster-"))
    data = folder / "volumes" / "longhaul-data"
    data.mkdir(parents=True)
    script_of(data / "shop.jsonl", *ASKS_AND_ORDERS)
    agents = agents_of_a_user(folder, "scripted:/data/shop.jsonl")
    objects = ClusterObjects(
        {
            "longhaul-secrets": {},
            "longhaul-worker-secrets": {"LONGHAUL_SECRET_SHOP_TOKEN": "seven $letters and more"},
            "longhaul-tokens": {"lines": f"{hashlib.sha256(TOKEN.encode()).hexdigest()} ana read,answer,approve"},
        },
        {"longhaul-agents": {file.name: file.read_text() for file in agents.iterdir() if file.is_file()}},
        folder / "config-maps",
        {"LONGHAUL_TOOLS": "shop_tools"},
    )
    try:
        servers = ("redis", "temporal", "namespace")
        with composed(folder, temporal_cli, compose_loader, lines="", agents=agents, started=servers) as running:
            for name in PODS:
                running.containers[name] = container_of_pod(name, objects)
                running.start(name)
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_an_agent_of_a_config_map_works_with_its_tools_and_secrets(pods: Composition) -> None:
    session = "/v1/sessions/shop/lamps"

    parked = asks(pods, "POST", f"{session}/messages?wait=30", TOKEN, json.dumps({"messages": "Buy a lamp"}))
    (call,) = asks(pods, "GET", f"{session}/pending", TOKEN)[1]["calls"]
    decision = {"call_id": "order-7", "decision": "allow", "digest": call["digest"]}
    allowed = asks(pods, "POST", f"{session}/decisions", TOKEN, json.dumps(decision))
    assert allowed[0] == 200, allowed
    said = until_said(pods, "A lamp is on its way.", session, TOKEN)

    assert parked[1]["message"]["metadata"]["waiting_for"] == ["order-7"]
    assert "seven" not in said


def test_the_http_server_has_no_secret_of_the_workers(pods: Composition) -> None:
    seen = {name: pods.environment(name).get("LONGHAUL_SECRET_SHOP_TOKEN") for name in PODS}

    assert seen == {"longhaul-worker": "seven $letters and more", "longhaul-serve": None}


@pytest.mark.parametrize("name", PODS)
def test_a_pod_writes_to_its_volumes_alone(name: str, pods: Composition) -> None:
    written = {
        place: pods.within(name, "touch", f"{place}/x").code for place in ("/data", "/tmp", "/srv/longhaul", "/app")
    }

    assert written == {"/data": 0, "/tmp": 0, "/srv/longhaul": 1, "/app": 1}
    assert pod_of(name)["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
