"""The composition without containers: each service is a process with a root, a host name and processes of its own, set
up by docker-compose.yml as compose's own loader reads it, the Dockerfile and a `.env`; and so are the pods of
deploy/kubernetes.yaml. All share a network that nobody else is in, where the published ports are; commands of "the
host" run in it as well, with the folders of this machine.

Two images have stand-ins: Temporal's server is its development server with the composition's dynamic configuration, and
redis-server that of this machine. Databases, the Web UI and what observes are not started.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from longhaul.starter.dev_server.dev_server import SQLITE_PRAGMAS
from longhaul.starter.dev_server.processes import bound_to_parent, tail
from tests.e2e.manifests import ROOT, Container, Mount, containers_of_compose, files_of_image, of_image
from tests.limits import SURE_SECONDS

STARTED = ("redis", "temporal", "namespace", "worker", "serve")
ETC = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "alternatives", "localtime", "ssl")
DATABASE = "/var/lib/postgresql/data"
IN_THE_CLUSTER = "temporal-frontend.temporal"
"""Where Kubernetes has Temporal's server, by the manifests."""
SOURCED = 'set -a; . "$0"; set +a; exec env "$@"'

_LOOPBACK = """
import fcntl, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
print("up", flush=True)
sys.stdin.read()
"""


@dataclass
class Answer:
    """How a command of the host ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@dataclass
class Running:
    """One service's process, as its pid is known here."""

    process: subprocess.Popen[bytes]
    pid: int


@dataclass
class Composition:
    """`with composed(folder, …) as there:` starts everything and ends it."""

    folder: Path
    temporal: Path
    containers: dict[str, Container]
    enter: list[str] = field(default_factory=list[str])
    running: dict[str, Running] = field(default_factory=dict[str, Running])

    @property
    def env_file(self) -> Path:
        """The `.env` of both sides."""
        return self.folder / "checkout" / ".env"

    def start(self, name: str) -> None:
        """And wait until its health check says that it is well, or it has ended with 0. Raises RuntimeError."""
        command = [*self.enter, *self._walls(name), "--info-fd", "{info}", *self._command(name)]
        reading, writing = os.pipe()
        command[command.index("{info}")] = str(writing)
        with self.log(name).open("ab") as sink:
            process = subprocess.Popen(
                bound_to_parent(command),
                pass_fds=[writing],
                env=self.environment(name),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                cwd="/",
            )
        os.close(writing)
        with os.fdopen(reading) as told:
            info = told.read()
        self.running[name] = Running(process, json.loads(info or "{}").get("child-pid", 0))
        self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Until it is well, or has ended with 0 as it should. Raises RuntimeError."""
        check = self.containers[name].check
        deadline = time.monotonic() + SURE_SECONDS
        while time.monotonic() < deadline:
            code = self.running[name].process.poll()
            if code is not None and (check or code):
                raise RuntimeError(f"{name} ended with {code}:\n{tail(self.log(name))}")
            if code == 0 or (check and self.is_well(name)):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{name} was not well after {SURE_SECONDS:g} s:\n{tail(self.log(name))}")

    def is_well(self, name: str) -> bool:
        """By the composition's own check, in the service's own surroundings."""
        if name == "temporal":
            return self.listens(7233)  # `nc` of the image
        return not self.within(name, *self.containers[name].check).code

    def listens(self, port: int) -> bool:
        look = f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)"
        return not subprocess.run(
            [*self.enter, sys.executable, "-c", look], capture_output=True, check=False
        ).returncode

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        """As `docker stop` with the service's grace: the exit status; -9 for one that had to be killed."""
        one = self.running.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid or one.process.pid, number)
        try:
            return one.process.wait(timeout=self.containers[name].grace_seconds)
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()
            return -9

    def restart(self, name: str) -> int:
        """Its exit status."""
        status = self.stop(name)
        self.start(name)
        return status

    def host(self, *arguments: str, cwd: Path, stdin: str = "") -> Answer:
        """A command of this machine: Python's module or file with arguments, in a folder, by a shell that has read
        `.env`."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
        own = {"LONGHAUL_DATA_DIR": self.folder / "home" / "data", "LONGHAUL_TRUST": "0", "TERM": "xterm"}
        sourced = ["sh", "-c", SOURCED, str(self.env_file), *(f"{name}={text}" for name, text in own.items())]
        done = subprocess.run(
            [*self.enter, *sourced, sys.executable, "-P", *arguments],
            env=ours,
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def within(self, name: str, *command: str, namespaces: bool = False) -> Answer:
        """As `docker compose exec`; with `namespaces`, where the profiles of the host allow those of users."""
        walls = [*self.enter, *self._walls(name, namespaces=namespaces), *command]
        done = subprocess.run(walls, env=self.environment(name), capture_output=True, text=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def environment(self, name: str) -> dict[str, str]:
        """Exactly what the manifest and the image give it, and where this machine has the image's programs."""
        container = self.containers[name]
        places = (
            Path(sys.prefix) / "bin",
            self.temporal.parent,
            Path("/usr/local/bin"),
            Path("/usr/bin"),
            Path("/bin"),
        )
        image = {"PATH": ":".join(map(str, places)), "HOME": "/home/longhaul", "LANG": "C.UTF-8"}
        given = dict(container.environment)
        if container.is_ours:
            # What `pip install -e .` there makes of it, behind what else is on the path.
            given["PYTHONPATH"] = f"{given['PYTHONPATH']}:{of_image('WORKDIR')[0]}"
        return image | given

    def _command(self, name: str) -> list[str]:
        return list(self._development_server() if name == "temporal" else self.containers[name].command)

    def _development_server(self) -> Iterator[str]:
        yield from (str(self.temporal), "server", "start-dev", "--headless", "--log-level", "warn")
        yield from ("--ip", "127.0.0.1", "--port", "7233", "--db-filename", f"{DATABASE}/temporal.db")
        for pragma, setting in SQLITE_PRAGMAS.items():
            yield from ("--sqlite-pragma", f"{pragma}={setting}")
        for key, values in yaml.safe_load((ROOT / "deploy" / "dynamicconfig.yaml").read_text()).items():
            yield from ("--dynamic-config-value", f"{key}={json.dumps(values[0]['value'])}")

    def _walls(self, name: str, *, namespaces: bool = False) -> list[str]:
        """A root with the system's programs, the image's own files and the container's volumes, and nothing else: no
        capability, and as Docker's default profile has it, no namespaces of users."""
        container = self.containers[name]
        user, group = container.user
        walls = [
            "bwrap",
            "--die-with-parent",
            "--unshare-ipc",
            "--unshare-uts",
            "--hostname",
            name,
            "--cap-drop",
            "ALL",
        ]
        walls += ["--unshare-user", "--uid", str(user), "--gid", str(group)]
        if namespaces:
            walls += ["--bind", "/proc", "/proc"]  # bubblewrap's own has parts covered: nobody could mount another one
        else:
            walls += ["--as-pid-1", "--unshare-pid", "--disable-userns", "--proc", "/proc"]
        walls += ["--dev", "/dev", "--dir", "/home/longhaul", "--dir", "/run"]
        for place in ETC:
            walls += ["--ro-bind-try", f"/etc/{place}", f"/etc/{place}"]
        for place in ("/usr", "/bin", "/sbin", "/lib", "/lib64"):
            path = Path(place)
            if path.is_symlink():
                walls += ["--symlink", str(path.readlink()), place]
            elif path.exists():
                walls += ["--ro-bind", place, place]
        for place in (sys.base_prefix, sys.prefix, str(self.temporal.parent)):
            walls += ["--ro-bind", place, place]
        walls += ["--ro-bind", str(self.folder / "hosts"), "/etc/hosts"]
        if container.is_ours:
            into = of_image("WORKDIR")[0]
            walls += [word for file in files_of_image() for word in ("--ro-bind", str(ROOT / file), f"{into}/{file}")]
        for place in container.in_memory:
            walls += ["--perms", "1777", "--tmpfs", place]
        for mount in (*container.mounts, *([Mount("postgres", DATABASE)] if name == "temporal" else ())):
            source = mount.source if mount.source.startswith("/") else str(self._volume(mount.source))
            walls += ["--ro-bind" if mount.read_only else "--bind", source, mount.target]
        walls += ["--dir", container.workdir]
        return [*walls, *(["--remount-ro", "/"] if container.is_read_only else []), "--chdir", container.workdir]

    def _volume(self, name: str) -> Path:
        path = self.folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path


def checked_out(folder: Path, lines: str, agents: Path) -> Path:
    """What a user has who has read docs/operating/compose.md: the project's files, agents, and the example of `.env`
    with lines added."""
    checkout = folder / "checkout"
    checkout.mkdir()
    shutil.copy(ROOT / "docker-compose.yml", checkout)
    (checkout / "deploy").symlink_to(ROOT / "deploy")
    shutil.copytree(agents, checkout / "agents")
    (checkout / ".env").write_text((ROOT / ".env.example").read_text() + lines)
    return checkout


@contextlib.contextmanager
def composed(
    folder: Path, temporal: Path, loader: Path, *, lines: str, agents: Path, started: tuple[str, ...] = STARTED
) -> Iterator[Composition]:
    """All that is started of it, one after the other as `depends_on` has it; `lines` are the user's in `.env`."""
    there = Composition(folder, temporal, containers_of_compose(loader, checked_out(folder, lines, agents)))
    (folder / "hosts").write_text(f"127.0.0.1 localhost {' '.join(there.containers)} {IN_THE_CLUSTER}\n")
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", _LOOPBACK]
    network = subprocess.Popen(bound_to_parent(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with network:
        try:
            assert network.stdout is not None
            assert network.stdout.readline() == b"up\n"
            there.enter = ["nsenter", f"--target={network.pid}", "--user", "--net", "--preserve-credentials"]
            for name in started:
                there.start(name)
            yield there
        finally:
            for name in reversed(tuple(there.running)):
                there.stop(name, signal.SIGKILL)
            network.kill()
