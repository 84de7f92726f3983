"""The pods of deploy/kubernetes.yaml as processes: each with exactly the environment and the folders that the manifests
give it, and with the ConfigMaps and Secrets that docs/operating/deploying.md has somebody make."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import found
from tests.e2e.composition import Composition, composed
from tests.e2e.manifests import OBJECTS, ClusterObjects, container_of_pod, pod_of
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
METADATA = "169.254.169.254"
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


def test_the_network_lets_each_pod_reach_what_its_settings_name_and_no_metadata_of_a_cloud() -> None:
    (config,) = (part["data"] for part in OBJECTS if part["kind"] == "ConfigMap")
    ports = {config["TEMPORAL_ADDRESS"].rpartition(":")[2], str(urlsplit(config["LONGHAUL_REDIS_URL"]).port), "53"}
    opened = {"longhaul-worker": config["LONGHAUL_METRICS"].rpartition(":")[2], "longhaul-serve": "8000"}
    policies = {part["metadata"]["name"]: part["spec"] for part in OBJECTS if part["kind"] == "NetworkPolicy"}

    assert policies.keys() == set(PODS)
    for name, policy in policies.items():
        assert policy["podSelector"] == {"matchLabels": {"app": name}}
        assert [str(port["port"]) for rule in policy["ingress"] for port in rule["ports"]] == [opened[name]]
        assert {str(port["port"]) for rule in policy["egress"] for port in rule.get("ports", ())} == ports
        assert not any(lets(rule, METADATA) for rule in policy["egress"])
    assert any(lets(rule, "93.184.215.14") for rule in policies["longhaul-worker"]["egress"])


def lets(rule: dict[str, Any], address: str) -> bool:
    """Whether the rule names the address by a block; other rules name pods, or a port alone."""
    blocks = [peer["ipBlock"] for peer in rule.get("to", ()) if "ipBlock" in peer]
    asked = ip_address(address)
    return any(
        asked in ip_network(block["cidr"]) and not any(asked in ip_network(part) for part in block["except"])
        for block in blocks
    )
