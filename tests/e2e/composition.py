"""The composition without containers: each service is a process with a root, a host name and processes of its own, set
up by docker-compose.yml, the Dockerfile and deploy/env.example. All share a network that nobody else is in, where the
published ports are; commands of "the host" run in it as well, with the folders of this machine.

Two images have stand-ins: Temporal's server is its development server with the composition's dynamic configuration, and
redis-server that of this machine. Databases, the Web UI and what observes are not started.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from longhaul.starter.provision.dev_server import SQLITE_PRAGMAS
from longhaul.starter.provision.processes import bound_to_parent, tail
from tests.limits import SURE_SECONDS

ROOT = Path(__file__).parents[2]
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
STARTED = ("redis", "temporal", "namespace", "worker", "serve")
OURS = ("worker", "serve")
ETC = ("passwd", "group", "nsswitch.conf", "ld.so.cache", "alternatives", "localtime", "ssl")
DATABASE = "/var/lib/postgresql/data"

_LOOPBACK = """
import fcntl, socket, struct, sys
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh", b"lo", 0x41))  # SIOCSIFFLAGS: up and running
print("up", flush=True)
sys.stdin.read()
"""


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """`${NAME:-otherwise}` as compose reads it."""
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: variables.get(found[1]) or found[2], text).replace("$$", "$")


def lines_of_env(text: str) -> dict[str, str]:
    """A file of settings, as compose and a shell read it."""
    lines = [line.partition("=") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in lines}


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
    variables: Mapping[str, str]
    """Of `.env`, for both sides."""
    enter: list[str] = field(default_factory=list[str])
    running: dict[str, Running] = field(default_factory=dict[str, Running])

    def start(self, name: str) -> None:
        """And wait until its health check says that it is well, or it has ended with 0. Raises RuntimeError."""
        command = [*self.enter, *self._walls(name), "--info-fd", "{info}", *self._command(name)]
        reading, writing = os.pipe()
        command[command.index("{info}")] = str(writing)
        with self.log(name).open("ab") as sink:
            process = subprocess.Popen(
                bound_to_parent(command),
                pass_fds=[writing],
                env=self._environment(name),
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
        check = SERVICES[name].get("healthcheck")
        deadline = time.monotonic() + SURE_SECONDS
        while time.monotonic() < deadline:
            code = self.running[name].process.poll()
            if code is not None and (check is not None or code):
                raise RuntimeError(f"{name} ended with {code}:\n{tail(self.log(name))}")
            if code == 0 or (check is not None and self.is_well(name)):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{name} was not well after {SURE_SECONDS:g} s:\n{tail(self.log(name))}")

    def is_well(self, name: str) -> bool:
        """By the composition's own check, in the service's own surroundings."""
        if name == "temporal":
            return self.listens(7233)  # `nc` of the image
        kind, *test = SERVICES[name]["healthcheck"]["test"]
        assert kind == "CMD"
        walls = [*self.enter, *self._walls(name), *test]
        return not subprocess.run(walls, env=self._environment(name), capture_output=True, check=False).returncode

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
            return one.process.wait(timeout=int(SERVICES[name].get("stop_grace_period", "10s").rstrip("s")))
        except subprocess.TimeoutExpired:
            one.process.kill()
            one.process.wait()
            return -9

    def restart(self, name: str) -> int:
        """Its exit status."""
        status = self.stop(name)
        self.start(name)
        return status

    def host(self, *arguments: str, cwd: Path, stdin: str = "", project: str = "") -> Answer:
        """A command of this machine: Python's module or file with arguments, in a folder, with the lines of .env."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TEMPORAL_", "LONGHAUL_"))}
        further = {"LONGHAUL_PROJECT": project} if project else {}
        home = self.folder / "home"
        done = subprocess.run(
            [*self.enter, sys.executable, "-P", *arguments],
            env=ours
            | lines_of_env((ROOT / "deploy" / "env.example").read_text())
            | {"LONGHAUL_DATA_DIR": str(home / "data"), "LONGHAUL_TRUST": "0", "TERM": "xterm"}
            | further,
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

    def within(self, name: str, *command: str) -> Answer:
        """As `docker compose exec`."""
        walls = [*self.enter, *self._walls(name), *command]
        done = subprocess.run(walls, env=self._environment(name), capture_output=True, text=True, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def _environment(self, name: str) -> dict[str, str]:
        given = (
            {key: filled_in(str(value), self.variables) for key, value in SERVICES[name]["environment"].items()}
            if "environment" in SERVICES[name]
            else {}
        )
        programs = (
            Path(sys.prefix) / "bin",
            self.temporal.parent,
            Path("/usr/local/bin"),
            Path("/usr/bin"),
            Path("/bin"),
        )
        image = {"PATH": ":".join(map(str, programs)), "HOME": "/home/longhaul", "LANG": "C.UTF-8"}
        if name in OURS:
            image |= dict(re.findall(r"([A-Z_]+)=(\S+)", next(re.finditer(r"(?m)^ENV (.*)$", DOCKERFILE))[1]))
            image |= {"PYTHONPATH": "/app/src"}  # what `pip install -e .` there makes of it
        return image | given

    def _command(self, name: str) -> list[str]:
        if name == "temporal":
            return list(self._development_server())
        given = SERVICES[name].get("command") or json.loads(next(re.finditer(r"(?m)^CMD (.*)$", DOCKERFILE))[1])
        return [filled_in(word, self.variables) for word in given]

    def _development_server(self) -> Iterator[str]:
        yield from (str(self.temporal), "server", "start-dev", "--headless", "--log-level", "warn")
        yield from ("--ip", "127.0.0.1", "--port", "7233", "--db-filename", f"{DATABASE}/temporal.db")
        for pragma, setting in SQLITE_PRAGMAS.items():
            yield from ("--sqlite-pragma", f"{pragma}={setting}")
        for key, values in yaml.safe_load((ROOT / "deploy" / "dynamicconfig.yaml").read_text()).items():
            yield from ("--dynamic-config-value", f"{key}={json.dumps(values[0]['value'])}")

    def _walls(self, name: str) -> list[str]:
        """A root with the system's programs, the image's own files and the service's volumes, and nothing else."""
        user = filled_in(SERVICES[name].get("user", "65534:65534"), self.variables).split(":")
        walls = ["bwrap", "--die-with-parent", "--as-pid-1", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        walls += ["--hostname", name, "--unshare-user", "--disable-userns", "--uid", user[0], "--gid", user[1]]
        walls += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/home/longhaul", "--dir", "/run"]
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
        workdir = "/data" if name == "redis" else "/"
        if name in OURS:
            workdir = next(re.finditer(r"(?m)^WORKDIR (.*)$", DOCKERFILE))[1]
            walls += [
                word for copied in self._copied() for word in ("--ro-bind", str(ROOT / copied), f"{workdir}/{copied}")
            ]
        return [*walls, *self._mounts(name), "--chdir", workdir]

    def _copied(self) -> Iterator[str]:
        """What the image is made of, by the Dockerfile."""
        for words in re.findall(r"(?m)^COPY (.*)$", DOCKERFILE):
            for word in words.split()[:-1]:
                if not word.startswith("--"):
                    yield word

    def _mounts(self, name: str) -> list[str]:
        mounts: list[str] = ["--bind", str(self._volume("postgres")), DATABASE] if name == "temporal" else []
        for volume in SERVICES[name].get("volumes", ()):
            source, target, *how = filled_in(volume, self.variables).split(":")
            if source.startswith("./"):
                source = str(ROOT / source)
            elif not source.startswith("/"):
                source = str(self._volume(source))
            mounts += ["--ro-bind" if how == ["ro"] else "--bind", source, target]
        return mounts

    def _volume(self, name: str) -> Path:
        path = self.folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        return path


@contextlib.contextmanager
def composed(folder: Path, temporal: Path, variables: Mapping[str, str]) -> Iterator[Composition]:
    """All that is started of it, one after the other as `depends_on` has it."""
    there = Composition(folder, temporal, variables)
    (folder / "hosts").write_text(f"127.0.0.1 localhost {' '.join(SERVICES)}\n")
    command = ["unshare", "--map-root-user", "--net", sys.executable, "-c", _LOOPBACK]
    network = subprocess.Popen(bound_to_parent(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with network:
        try:
            assert network.stdout is not None
            assert network.stdout.readline() == b"up\n"
            there.enter = ["nsenter", f"--target={network.pid}", "--user", "--net", "--preserve-credentials"]
            for name in STARTED:
                there.start(name)
            yield there
        finally:
            for name in reversed(tuple(there.running)):
                there.stop(name, signal.SIGKILL)
            network.kill()
