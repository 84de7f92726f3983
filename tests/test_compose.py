"""The compose file and what its services read: every name in it means something, and nothing asks the network for more
than this machine. What its processes do is seen in tests/e2e/test_composition.py; nobody here starts containers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.composition import filled_in, lines_of_env
from tests.servers.compose import UnreadableCompose, read_by

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
    mounts = [filled_in(volume, {}).split(":")[0] for volume in service.get("volumes", ())]

    for mount in mounts:
        assert (ROOT / mount).exists() if mount.startswith("./") else mount in COMPOSE["volumes"]
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


def test_clients_outside_reach_what_the_worker_keeps_by_the_lines_of_the_example() -> None:
    worker, env = SERVICES["worker"]["environment"], lines_of_env((ROOT / "deploy" / "env.example").read_text())
    outside = {"redis://redis:6379/0": "redis://127.0.0.1:6379/0", "temporal:7233": "127.0.0.1:7233"}
    published = {port for service in SERVICES.values() for port in service.get("ports", ())}

    assert set(env) == {"TEMPORAL_ADDRESS", "LONGHAUL_STORE", "LONGHAUL_BLOBS", "LONGHAUL_REDIS_URL"}
    for name, address in env.items():
        assert address == outside[worker[name]], name
        assert SERVICES["serve"]["environment"][name] == worker[name]
    assert {"127.0.0.1:6379:6379", "127.0.0.1:7233:7233"} <= published


def test_the_example_holds_no_variable_that_nobody_reads() -> None:
    """Those for clients stand there set; the others as comments, as what the file of the composition fills in."""
    example, composition = (ROOT / "deploy" / "env.example").read_text(), (ROOT / "docker-compose.yml").read_text()
    offered = set(re.findall(r"(?m)^#([A-Z_]+)=", example))

    assert offered == {
        *("LONGHAUL_PROJECT", "LONGHAUL_UID", "LONGHAUL_GID", "LONGHAUL_SANDBOX", "POSTGRES_PASSWORD"),
        *("ANTHROPIC_API_KEY", "OPENAI_API_KEY"),
    }
    assert {name for name in offered if f"${{{name}:-" not in composition} == set()


def test_the_number_of_shards_is_said_before_the_database_is_made() -> None:
    assert SERVICES["temporal"]["environment"]["NUM_HISTORY_SHARDS"] == "512"


def test_nothing_of_what_is_kept_is_thrown_away() -> None:
    assert SERVICES["redis"]["command"][1:] == ["--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    assert SERVICES["redis"]["volumes"] == ["redis:/data"]


def test_a_project_has_the_same_path_inside_as_outside() -> None:
    (mount,) = [volume for volume in SERVICES["worker"]["volumes"] if "LONGHAUL_PROJECT" in volume]

    assert filled_in(mount, {"LONGHAUL_PROJECT": "/home/ana/shop"}) == "/home/ana/shop:/home/ana/shop"
    assert filled_in(mount, {}) == "project:/project", "a volume of its own, where nobody names one"


ENDING = {"schema", "namespace"}
SILENT = {"collector"}
"""Its image holds one program, which can't ask whether it is well."""


def test_every_service_says_whether_it_is_well_and_others_wait_for_that() -> None:
    checked = {name for name, service in SERVICES.items() if "healthcheck" in service}
    wanted = dict.fromkeys(checked, "service_healthy") | dict.fromkeys(ENDING, "service_completed_successfully")
    wanted |= dict.fromkeys(SILENT, "service_started")

    assert checked | ENDING | SILENT == set(SERVICES)
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": wanted[needed]}, f"{name} waits for {needed}"
        assert service["restart"] == ("on-failure" if name in ENDING else "unless-stopped"), name


def test_versions_are_those_that_the_page_names() -> None:
    page = (ROOT / "docs" / "operating" / "production.md").read_text()

    for image in (
        service["image"] for service in SERVICES.values() if service.get("image", "").startswith("temporalio")
    ):
        assert f"`{image}`" in page, image
    assert "auto-setup" not in (ROOT / "docker-compose.yml").read_text()


def test_composes_own_loader_reads_the_file(compose_loader: Path) -> None:
    assert read_by(compose_loader, ROOT / "docker-compose.yml")["services"].keys() == SERVICES.keys()


@pytest.mark.parametrize(
    "wrong", ["services: {a: {imag: x}}", "services: {a: {image: x, ports: [here]}}", "services: ["]
)
def test_and_no_wrong_one(wrong: str, compose_loader: Path, tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(wrong)

    with pytest.raises(UnreadableCompose):
        read_by(compose_loader, tmp_path / "compose.yml")
