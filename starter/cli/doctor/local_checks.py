"""`longhaul doctor` on this machine."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from temporalio.exceptions import ApplicationError

from longhaul.activities.process.program_run import find_ripgrep
from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.activities.tools.skills import find_project_files, find_skills, skill_folders
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.client.agent_files import BadAgent, agent_names, named_agent
from longhaul.starter.dev_server.temporal_cli import cache_directory
from longhaul.starter.folder_trust import Untrusted
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.secret_values import BadSecrets, read_secrets

PACKAGES = ("temporalio", "pydantic", "anthropic", "openai", "typer", "rich", "tree-sitter-bash", "redis")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
    """What to do about it, when it is not ok."""
    essential: bool = False
    """Without it nothing runs."""


def on_this_machine(settings: Settings) -> Iterator[Check]:
    """Everything that can be told without a server."""
    yield python()
    yield packages()
    yield temporal_cli()
    yield data_dir(settings.data_dir)
    yield redis(settings.redis_url)
    yield ripgrep()
    yield sandbox(settings)
    yield from (key(name) for name in KEYS)
    yield secrets(settings)


def sandbox(settings: Settings) -> Check:
    """How commands of Bash run on a worker with these settings."""
    problem, wanted = bwrap_problem(), settings.sandbox
    if wanted == "off":
        possible = problem or "bubblewrap would work here: LONGHAUL_SANDBOX=proven"
        return Check("sandbox", ok=True, detail=f"off: commands that run without approval have no sandbox ({possible})")
    if problem:
        fix = "install bubblewrap and allow it user namespaces; LONGHAUL_SANDBOX=off runs without, at your own risk"
        what = "no Bash command runs" if wanted == "all" else "even commands that only read ask"
        return Check("sandbox", ok=False, detail=f"{wanted}: {what}, for {problem}", fix=fix)
    network = "with network" if settings.sandbox_network else "no network"
    rest = f"so does everything else, {network}" if wanted == "all" else "allowed commands run outside it"
    return Check("sandbox", ok=True, detail=f"{wanted}: commands that run without approval run in bubblewrap; {rest}")


def python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check("python", sys.version_info >= (3, 11), found, "install Python 3.11 or newer", essential=True)


def packages() -> Check:
    missing = [name for name in PACKAGES if not _installed(name)]
    detail = f"missing: {', '.join(missing)}" if missing else f"temporalio {importlib.metadata.version('temporalio')}"
    return Check("packages", not missing, detail, "run `make setup`", essential=True)


def _installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def temporal_cli() -> Check:
    """Only looked for: a doctor does not download."""
    fix = "run `longhaul dev`, which fetches or builds it, or install Temporal's CLI"
    named = os.environ.get("LONGHAUL_TEMPORAL_CLI")
    found = named or shutil.which("temporal") or str(cache_directory() / "temporal")
    answer = _first_line([found, "--version"])
    return Check("temporal cli", bool(answer), f"{found}: {answer}" if answer else "not found", fix)


def _first_line(command: list[str]) -> str:
    """Of what a program prints; empty when it does not start or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.partition("\n")[0].strip() if done.returncode == 0 else ""


def data_dir(path: Path) -> Check:
    wrong = why_not_writable(path)
    return Check("data directory", not wrong, wrong or str(path), "set LONGHAUL_DATA_DIR to another", essential=True)


def why_not_writable(path: Path) -> str:
    """Empty for a directory that can be written to; it is made when it is missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return ""
    except OSError as error:
        return f"{path}: {error.strerror}"


def redis(url: str) -> Check:
    """The one that agents offload to."""
    if not url:
        return Check("redis", ok=True, detail="not used (LONGHAUL_REDIS_URL is not set)")
    from redis import Redis, RedisError  # noqa: PLC0415  only who uses it waits for it

    try:
        with Redis.from_url(url, socket_connect_timeout=3, socket_timeout=3) as client:
            client.ping()
    except (RedisError, ValueError, OSError) as error:
        # The address may hold a password, and redis does not repeat it in its errors.
        return Check("redis", ok=False, detail=f"{type(error).__name__}", fix="start Redis, or fix LONGHAUL_REDIS_URL")
    return Check("redis", ok=True, detail="answers")


def agents_instructions() -> Iterator[Check]:
    """For each agent of the current folder that reads skills, or a workspace's own instructions: what workers would
    leave out, or read otherwise than it is written. None for a folder that nobody trusts."""
    for name in sorted(agent_names()):
        title = f"instructions of {name}"
        try:
            spec = named_agent(name)
            root = Path(spec.workspace.root if spec.workspace is not None and spec.workspace.root else Path.cwd())
            yield from _instructions(title, spec, root.resolve())
        except Untrusted:
            return
        except BadAgent as error:
            yield Check(title, ok=False, detail="its file can't be used", fix=str(error))


def _instructions(title: str, spec: AgentSpec, root: Path) -> Iterator[Check]:
    own = spec.agent_context is not None and spec.agent_context.repo_skills
    if not spec.skills and not own:
        return
    left_out = list[str]()
    try:
        skills = find_skills(skill_folders(spec.skills, root, left_out.append), root, note=left_out.append)
    except ApplicationError as error:
        yield Check(title, ok=False, detail=error.message, fix="make the folder, or take it out of `skills`")
        return
    files = find_project_files(root, left_out.append) if own else []
    read = ", ".join((f"{len(skills)} skill{'' if len(skills) == 1 else 's'}", *(file.path for file in files)))
    detail = "; ".join((f"{read} in {root}", *left_out))
    yield Check(title, ok=not left_out, detail=detail, fix="change or remove these files")


def ripgrep() -> Check:
    """Which one Grep runs."""
    found = find_ripgrep()
    version = _first_line([found, "--version"]) if found else ""
    detail = f"{found}: {version}" if version else f"{found or 'not found'}: workers here lack the tool Grep"
    return Check("rg", bool(version), detail, "run `make setup`, or install ripgrep")


def secrets(settings: Settings) -> Check:
    """Their names; their values go nowhere."""
    try:
        names = sorted(read_secrets(settings))
    except BadSecrets as error:
        return Check("secrets", ok=False, detail="can't be taken", fix=str(error))
    return Check("secrets", ok=True, detail=", ".join(names) or "none are set (LONGHAUL_SECRET_NAME)")


def key(name: str) -> Check:
    """Whether it is set; its value goes nowhere."""
    is_set = bool(os.environ.get(name))
    fix = f"export {name}=… where the worker starts, if you use that provider"
    return Check(name, is_set, "set" if is_set else "not set", fix)
