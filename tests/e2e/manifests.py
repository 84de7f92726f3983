"""What docker-compose.yml and deploy/kubernetes.yaml say of each container of ours, and the Dockerfile of its image:
environment, command, folders, user, and how it is asked whether it is well.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.servers.compose import read_by

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
OBJECTS: tuple[dict[str, Any], ...] = tuple(yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text()))
OURS = "longhaul:local"
FOLDERS = {"redis": "/data"}
"""In which images of others start: Redis writes to its own."""

_ASKS = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Host": "10.4.0.7:8000"})  # a pod's address, as kubelet asks
urllib.request.urlopen(request, timeout=5)
"""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine, or the name of a volume, and where the container sees it."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Container:
    """As a manifest describes it."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    """The image's own variables below it."""
    user: tuple[int, int]
    workdir: str
    mounts: tuple[Mount, ...] = ()
    in_memory: tuple[str, ...] = ()
    """Folders that are empty at each start."""
    is_read_only: bool = False
    check: tuple[str, ...] = ()
    """Ends with 0 when it is well; empty: nobody asks."""
    grace_seconds: float = 10.0
    is_ours: bool = field(default=False)


def of_image(instruction: str) -> list[str]:
    """What stands behind each such instruction of our Dockerfile."""
    return re.findall(rf"(?m)^{instruction} (.*)$", DOCKERFILE)


def variables_of_image() -> dict[str, str]:
    return dict(re.findall(r"([A-Z_]+)=(\S+)", " ".join(of_image("ENV"))))


def files_of_image() -> Iterator[str]:
    """Files and folders of the project that it is made of; all lie in its first WORKDIR."""
    for words in of_image("COPY"):
        yield from (word for word in words.split()[:-1] if not word.startswith("--"))


def containers_of_compose(loader: Path, folder: Path) -> dict[str, Container]:
    """Of the compose file in a folder, with the `.env` beside it and nothing of any shell."""
    services: dict[str, dict[str, Any]] = read_by(loader, folder / "docker-compose.yml")["services"]
    return {name: container_of_service(name, service) for name, service in services.items()}


def container_of_service(name: str, service: Mapping[str, Any]) -> Container:
    is_ours = service["image"] == OURS
    user = [int(word) for word in service.get("user", "65534:65534").split(":")]
    declared = service.get("environment") or {}
    kind, *check = service.get("healthcheck", {}).get("test", ["CMD"])
    return Container(
        name,
        tuple(service.get("command") or (command_of_image() if is_ours else ())),
        (variables_of_image() if is_ours else {}) | {key: text for key, text in declared.items() if text is not None},
        (user[0], user[1]),
        service.get("working_dir", of_image("WORKDIR")[-1] if is_ours else FOLDERS.get(name, "/")),
        tuple(
            Mount(mount["source"], mount["target"], mount.get("read_only", False))
            for mount in service.get("volumes", ())
        ),
        tuple(each.partition(":")[0] for each in service.get("tmpfs", ())),
        service.get("read_only", False),
        tuple(check) if kind == "CMD" else (),
        float(service.get("stop_grace_period", "10s").rstrip("s")),
        is_ours,
    )


def command_of_image() -> list[str]:
    command: list[str] = json.loads(of_image("CMD")[-1])
    return command


@dataclass(frozen=True, slots=True)
class ClusterObjects:
    """What whoever applies the manifests has made beforehand, by name."""

    secrets: Mapping[str, Mapping[str, str]]
    config_maps: Mapping[str, Mapping[str, str]]
    folder: Path
    """Where files of config maps lie for the containers."""
    settings: Mapping[str, str]
    """Lines that were added to the ConfigMap of the manifests."""

    def read(self, kind: str, name: str, *, optional: bool = False) -> Mapping[str, str]:
        """Raises KeyError, as a pod that does not start."""
        own = {
            part["metadata"]["name"]: part["data"] | self.settings for part in OBJECTS if part["kind"] == "ConfigMap"
        }
        known = {**self.config_maps, **own} if kind == "configMapRef" else self.secrets
        return known.get(name, {}) if optional else known[name]

    def files(self, name: str) -> str:
        """A folder with the entries of a config map: links, as Kubernetes makes them to change them all at once."""
        folder, dated = self.folder / name, self.folder / name / "..2026_11_28_07_00_00.1"
        if not folder.exists():
            dated.mkdir(parents=True)
            (folder / "..data").symlink_to(dated.name)
            for file, text in self.config_maps[name].items():
                (dated / file).write_text(text)
                (folder / file).symlink_to(f"..data/{file}")
        return str(folder)


def pod_of(name: str) -> dict[str, Any]:
    (found,) = (part for part in OBJECTS if part["kind"] == "Deployment" and part["metadata"]["name"] == name)
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


def container_of_pod(name: str, objects: ClusterObjects) -> Container:
    """The one container of a Deployment. Raises KeyError for a config map or secret that is needed and not there."""
    pod = pod_of(name)
    (container,) = pod["containers"]
    security = {**pod["securityContext"], **container["securityContext"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts, in_memory = list[Mount](), list[str]()
    for mount in container["volumeMounts"]:
        volume = volumes[mount["name"]]
        if "emptyDir" in volume:
            in_memory.append(mount["mountPath"])
        elif "configMap" in volume:
            mounts.append(Mount(objects.files(volume["configMap"]["name"]), mount["mountPath"], read_only=True))
        else:
            mounts.append(Mount(volume["persistentVolumeClaim"]["claimName"], mount["mountPath"]))
    return Container(
        name,
        tuple(container.get("command") or command_of_image()),
        variables_of_image() | dict(variables_of_container(container, objects)),
        (security["runAsUser"], security["runAsUser"]),
        container.get("workingDir", of_image("WORKDIR")[-1]),
        tuple(mounts),
        tuple(in_memory),
        security["readOnlyRootFilesystem"],
        tuple(_check_of(container)),
        float(pod.get("terminationGracePeriodSeconds", 30)),
        is_ours=True,
    )


def variables_of_container(container: Mapping[str, Any], objects: ClusterObjects) -> Iterator[tuple[str, str]]:
    """In the order in which Kubernetes takes them: later ones win."""
    for source in container.get("envFrom", ()):
        ((kind, reference),) = source.items()
        yield from objects.read(kind, reference["name"], optional=reference.get("optional", False)).items()
    for variable in container.get("env", ()):
        if "value" in variable:
            yield variable["name"], variable["value"]
        else:
            key = variable["valueFrom"]["secretKeyRef"]
            yield variable["name"], objects.read("secretRef", key["name"])[key["key"]]


def _check_of(container: Mapping[str, Any]) -> Iterator[str]:
    probe = container.get("readinessProbe") or container["startupProbe"]
    if "exec" in probe:
        yield from probe["exec"]["command"]
        return
    asked = probe["httpGet"]
    yield from ("python", "-c", _ASKS, f"http://127.0.0.1:{asked['port']}{asked['path']}")
