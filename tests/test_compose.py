"""The compose file and what its services read: every name in it means something, and nothing asks the network for more
than this machine. The containers themselves are started by nobody here."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OBSERVABILITY = {"collector", "jaeger", "prometheus"}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "observability" / name).read_text())
    return found


def test_the_profile_adds_its_services_and_nobody_else_waits_for_them() -> None:
    profiled = {name for name, service in SERVICES.items() if service.get("profiles") == ["observability"]}
    others = [
        needed for name, service in SERVICES.items() if name not in profiled for needed in service.get("depends_on", ())
    ]

    assert profiled == OBSERVABILITY
    assert OBSERVABILITY.isdisjoint(others)


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_mounts_what_there_is_and_listens_on_this_machine_alone(name: str) -> None:
    service = SERVICES[name]
    mounts = [volume.split(":")[0] for volume in service.get("volumes", ())]

    for mount in mounts:
        assert (ROOT / mount).is_file() if mount.startswith("./") else mount in COMPOSE["volumes"]
    assert [port for port in service.get("ports", ()) if not port.startswith("127.0.0.1:")] == []
    assert "image" not in service or service["image"].partition(":")[2] not in {"", "latest"}


def test_each_service_is_told_of_a_file_where_it_is_mounted() -> None:
    for name in ("collector", "prometheus"):
        targets = [volume.split(":")[1] for volume in SERVICES[name]["volumes"]]
        assert any(target in SERVICES[name]["command"][0] for target in targets), name


def test_the_collector_takes_what_workers_send_and_hands_on_both_signals() -> None:
    config = read("collector.yaml")
    pipelines = config["service"]["pipelines"]
    kinds = ("receivers", "processors", "exporters")

    assert set(pipelines) == {"traces", "metrics"}
    for pipeline in pipelines.values():
        assert [name for kind in kinds for name in pipeline[kind] if name not in config[kind]] == []
    assert config["receivers"]["otlp"]["protocols"]["http"]["endpoint"].endswith(":4318")
    assert config["exporters"]["otlphttp/jaeger"]["endpoint"] == "http://jaeger:4318"


def test_prometheus_asks_the_collector_where_that_answers() -> None:
    port = read("collector.yaml")["exporters"]["prometheus"]["endpoint"].rpartition(":")[2]
    (job,) = read("prometheus.yaml")["scrape_configs"]

    assert job["static_configs"] == [{"targets": [f"collector:{port}"]}]


def test_without_the_profile_a_worker_sends_nothing() -> None:
    assert SERVICES["worker"]["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"] == "${OTEL_EXPORTER_OTLP_ENDPOINT:-}"


def test_docker_itself_reads_the_file() -> None:
    command = ["docker", "compose", "--profile", "observability", "config", "--quiet"]
    if not there_is("docker", "compose", "version"):
        pytest.skip("there is no `docker compose` here to read it")

    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert told.returncode == 0, told.stderr


def there_is(*command: str) -> bool:
    return bool(shutil.which(command[0])) and not subprocess.run(command, check=False, capture_output=True).returncode
