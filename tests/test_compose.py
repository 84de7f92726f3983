"""The compose file and what its services read: every name in it means something, and nothing asks the network for more
than this machine. What its processes do is seen in tests/e2e/test_composition.py; nobody here starts containers."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from longhaul.starter.settings import OTHER_VARIABLES, PREFIX, SECRET, Settings
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
def test_a_service_mounts_what_there_is_and_listens_on_this_machine_alone(name: str, compose_loader: Path) -> None:
    service = read_by(compose_loader, ROOT / "docker-compose.yml")["services"][name]

    for mount in service.get("volumes", ()):
        assert Path(mount["source"]).exists() if mount["type"] == "bind" else mount["source"] in COMPOSE["volumes"]
    assert [port for port in service.get("ports", ()) if port["host_ip"] != "127.0.0.1"] == []
    assert service["image"].partition(":")[2] not in {"", "latest"}


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


SIDES = ("worker", "serve")
PINNED = {
    "TEMPORAL_ADDRESS": "temporal:7233",
    "LONGHAUL_STORE": "redis://redis:6379/0",
    "LONGHAUL_BLOBS": "redis://redis:6379/0",
    "LONGHAUL_KEYS": "redis://redis:6379/0",
    "LONGHAUL_REDIS_URL": "redis://redis:6379/0",
    "LONGHAUL_DATA_DIR": "/data",
}
"""Places, which lie elsewhere for clients: what `.env` says of them is said to these."""
OF_A_SIDE = {"serve": {"LONGHAUL_TRUST": "1"}, "worker": dict[str, str]()}
OF_OTHERS = (
    *("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DASHSCOPE_API_KEY", "GITHUB_TOKEN", f"{SECRET}SHOP_TOKEN"),
    *("TEMPORAL_NAMESPACE", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_METRIC_EXPORT_INTERVAL"),
)
"""Read by packages that we use, or named by other settings."""
EVERY_SETTING = sorted({*(f"{PREFIX}{name.upper()}" for name in Settings.model_fields), *OTHER_VARIABLES, *OF_OTHERS})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the composition alone, for a `.env` beside it."""
    (tmp_path / "docker-compose.yml").write_text((ROOT / "docker-compose.yml").read_text())
    return tmp_path


def environments(loader: Path, checkout: Path, **shell: str) -> dict[str, dict[str, str | None]]:
    services = read_by(loader, checkout / "docker-compose.yml", shell=shell)["services"]
    return {side: services[side]["environment"] for side in SIDES}


@pytest.mark.proves("F5")
@pytest.mark.parametrize("side", SIDES)
def test_every_setting_of_the_env_file_reaches_both_sides(side: str, checkout: Path, compose_loader: Path) -> None:
    said = {name: f"/{name.lower()} of 7" for name in {*EVERY_SETTING, *PINNED}}
    (checkout / ".env").write_text("".join(f"{name}='{text}'\n" for name, text in said.items()))

    given = environments(compose_loader, checkout)[side]

    assert given == said | PINNED | OF_A_SIDE[side]


def test_without_an_env_file_services_have_their_places_alone(checkout: Path, compose_loader: Path) -> None:
    given = environments(compose_loader, checkout)
    own = PINNED | {
        "LONGHAUL_KEYS": "",
        "LONGHAUL_MEMORY": "sqlite:///memory/memory.db",
        "LONGHAUL_KNOWLEDGE": "sqlite:///memory/knowledge.db",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "",
        "OTEL_METRIC_EXPORT_INTERVAL": "15000",
    }

    assert {name: text for name, text in given["worker"].items() if text is not None} == own
    assert given["serve"] == own | {"LONGHAUL_TRUST": "1", "LONGHAUL_SERVE_TOKENS": "/data/serve-tokens"}


def test_a_key_of_a_model_that_the_shell_has_reaches_the_worker(checkout: Path, compose_loader: Path) -> None:
    given = environments(compose_loader, checkout, ANTHROPIC_API_KEY="sk-of-the-shell")

    assert given["worker"]["ANTHROPIC_API_KEY"] == "sk-of-the-shell"
    assert "ANTHROPIC_API_KEY" not in given["serve"]


def test_both_sides_keep_memories_in_one_place(compose_loader: Path) -> None:
    services = read_by(compose_loader, ROOT / "docker-compose.yml")["services"]
    places = {
        side: [mount["source"] for mount in services[side]["volumes"] if mount["target"] == "/memory"] for side in SIDES
    }

    assert places == {"worker": ["memory"], "serve": ["memory"]}


def test_agents_and_tools_are_those_of_the_folder_that_is_named(checkout: Path, compose_loader: Path) -> None:
    (checkout / ".env").write_text("LONGHAUL_AGENTS=/home/ana/shop/agents\n")
    services = read_by(compose_loader, checkout / "docker-compose.yml")["services"]
    on_the_path = dict(re.findall(r"([A-Z_]+)=(\S+)", (ROOT / "Dockerfile").read_text()))["PYTHONPATH"]

    for side in SIDES:
        (mount,) = [mount for mount in services[side]["volumes"] if mount["target"] == on_the_path]
        assert (mount["source"], mount["read_only"]) == ("/home/ana/shop/agents", True)


def examples(page: str, language: str, word: str) -> list[str]:
    """Those in a page's fences that have a word."""
    text = (ROOT / "docs" / "operating" / page).read_text()
    return [found for found in re.findall(rf"(?ms)^```{language}\n(.*?)^```", text) if word in found]


def test_the_image_that_the_page_makes_from_ours_holds_agents_where_ours_looks_for_them() -> None:
    (written,) = examples("compose.md", "dockerfile", "FROM")
    instructions = [line.split() for line in written.splitlines()]
    on_the_path = dict(re.findall(r"([A-Z_]+)=(\S+)", (ROOT / "Dockerfile").read_text()))["PYTHONPATH"]

    assert instructions[0] == ["FROM", SERVICES["worker"]["image"]]
    assert ["COPY", "agents", on_the_path] in instructions
    assert instructions[-1] == ["USER", "longhaul"], "what was installed as root is not run as root"


def test_the_pages_overrides_give_both_sides_another_image_and_the_worker_a_sandbox(
    checkout: Path, compose_loader: Path
) -> None:
    (image,) = examples("compose.md", "yaml", "services:")
    (sandbox,) = examples("sandbox.md", "yaml", "services:")
    (checkout / "image.yml").write_text(image)
    (checkout / "sandbox.yml").write_text(sandbox)
    files = [checkout / name for name in ("docker-compose.yml", "image.yml", "sandbox.yml")]

    services = read_by(compose_loader, *files)["services"]

    assert {side: services[side]["image"] for side in SIDES} == dict.fromkeys(SIDES, "shop:local")
    assert {side: services[side]["build"]["context"] for side in SIDES} == dict.fromkeys(SIDES, "/home/me/shop")
    assert services["web"]["image"] == SERVICES["web"]["image"]
    assert {"seccomp=unconfined", "no-new-privileges:true"} < set(services["worker"]["security_opt"])
    assert services["worker"]["cap_drop"] == ["ALL"]


@pytest.mark.parametrize("name", ["worker", "serve", "web"])
def test_what_runs_our_image_has_no_rights_that_it_does_not_need(name: str, compose_loader: Path) -> None:
    service = read_by(compose_loader, ROOT / "docker-compose.yml")["services"][name]

    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"]
    assert "privileged" not in service
    assert "cap_add" not in service
    assert {each.partition(":")[0] for each in service["tmpfs"]} == {"/tmp", "/home/longhaul"}


def test_the_number_of_shards_is_said_before_the_database_is_made() -> None:
    assert SERVICES["temporal"]["environment"]["NUM_HISTORY_SHARDS"] == "512"


def lines_of_example(pattern: str) -> dict[str, str]:
    return dict(re.findall(pattern, (ROOT / ".env.example").read_text()))


@pytest.mark.proves("F5")
def test_clients_outside_reach_what_the_worker_keeps_by_the_lines_of_the_example() -> None:
    env = lines_of_example(r"(?m)^([A-Z_]+)=(.*)$")
    outside = {"redis://redis:6379/0": "redis://127.0.0.1:6379/0", "temporal:7233": "127.0.0.1:7233"}
    published = {port for service in SERVICES.values() for port in service.get("ports", ())}

    assert set(env) == {"TEMPORAL_ADDRESS", "LONGHAUL_STORE", "LONGHAUL_BLOBS", "LONGHAUL_REDIS_URL"}
    assert env == {name: outside[PINNED[name]] for name in env}
    assert {"127.0.0.1:6379:6379", "127.0.0.1:7233:7233"} <= published


def test_the_example_holds_no_variable_that_nobody_reads() -> None:
    """Those for clients are set; the others are comments."""
    offered = set(lines_of_example(r"(?m)^#([A-Z_]+)=(.*)$"))

    assert {f"{PREFIX}TOOLS", f"{PREFIX}AGENTS", f"{PREFIX}MCP", f"{PREFIX}NOTIFY", f"{SECRET}SHOP_TOKEN"} < offered
    assert offered - {*EVERY_SETTING, "POSTGRES_PASSWORD"} == set()
    assert "${POSTGRES_PASSWORD:-" in (ROOT / "docker-compose.yml").read_text()


def test_nothing_of_what_is_kept_is_thrown_away() -> None:
    assert SERVICES["redis"]["command"][1:] == ["--appendonly", "yes", "--maxmemory-policy", "noeviction"]
    assert SERVICES["redis"]["volumes"] == ["redis:/data"]


@pytest.mark.parametrize(
    ("lines", "mounted"),
    [("LONGHAUL_PROJECT=/home/ana/shop\n", ("/home/ana/shop", "/home/ana/shop")), ("", ("project", "/project"))],
    ids=["named", "a volume of its own, where nobody names one"],
)
def test_a_project_has_the_same_path_inside_as_outside(
    lines: str, mounted: tuple[str, str], checkout: Path, compose_loader: Path
) -> None:
    (checkout / ".env").write_text(lines)
    worker = read_by(compose_loader, checkout / "docker-compose.yml")["services"]["worker"]

    assert mounted in [(mount["source"], mount["target"]) for mount in worker["volumes"]]


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
    page = (ROOT / "docs" / "operating" / "compose.md").read_text()

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
