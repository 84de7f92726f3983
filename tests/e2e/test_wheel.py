"""The wheel in a project whose files are named like our rooms: as a client, as a worker, under type checkers."""

import asyncio
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from longhaul.agent.plain.errors import EXTRAS
from longhaul.starter.dev_server.dev_server import DevServer
from longhaul.starter.dev_server.processes import bound_to_parent
from tests.codebase.test_names import documented
from tests.e2e.wheel import ROOT, Installed, build
from tests.limits import SURE_SECONDS

QUEUE = "wheel"
SECONDS = 150
"""Of one process. A type checker that has no cache yet reads all that a client imports."""
MINE = {f"{name}.py": f"WHOSE = 'mine: {name}'\n" for name in ("agent", "starter", "stores", "worker", "activities")}
"""Modules of the user's with the names of our rooms; beside them lies a folder `workflows` without an __init__.py."""
SHOP_TOOLS = '''
from workflows.prices import price
import agent, worker
from longhaul import Effect, ToolError, progress, tool

assert (agent.WHOSE, worker.WHOSE) == ("mine: agent", "mine: worker")

@tool(effect="read")
def price_of(article: str) -> str:
    """Look up a price."""
    progress("looking")
    return price(article)

@tool
def sell(article: str) -> str:
    """Sell one."""
    raise ToolError("sold out")
'''
ASK = """
import asyncio
import os
import sys

from longhaul import (
    AgentSpec, ConfirmResult, Confirmation, Deadline, Effect, ExternalExecutionResultEvent, Knowledge, Longhaul, Msg,
    PermissionContext, PermissionRule, Secrets, Session, TextBlock, ToolCallBlock, ToolGroup, ToolResultBlock,
    ToolResultState, UserConfirmResultEvent, tool,
)


@tool(effect="idempotent")
def wrap(article: str) -> str:
    return article


@tool
async def unwrap(article: str) -> str:
    return article


def spec(script: str) -> AgentSpec:
    return AgentSpec(
        name="clerk",
        model=f"scripted:{script}",
        tools=["price_of", "sell"],
        tool_groups={"more": ToolGroup(tools=["Bash"], description="More.")},
        skills=[],
        secrets=Secrets(allow=["SHOP_KEY"], tools={"sell": ["TILL_KEY"]}) if script == "never" else None,
        permission=PermissionContext(
            mode="default",
            rules=[PermissionRule(tool_name="price_of", behavior="allow"), PermissionRule(tool_name="sell")],
            working_directories=[],
            confirm=Confirmation(policy="risky", threshold="medium"),
        ),
    )


def answers(call: ToolCallBlock) -> list[UserConfirmResultEvent | ExternalExecutionResultEvent]:
    deadline = Deadline(remind_after="30m", expire_after=3600)
    knowledge = Knowledge(name="k", triggers=["lamp"], text=str(deadline.remind_after))
    result = ToolResultBlock(id=call.id, name=knowledge.name, output=[TextBlock(text="5")], state="success")
    assert result.state is ToolResultState.SUCCESS and isinstance(result.output, tuple)
    assert wrap.effect is Effect.IDEMPOTENT and unwrap.name == "unwrap"
    return [
        UserConfirmResultEvent(reply_id="r", confirm_results=[ConfirmResult(confirmed=True, tool_call=call, rules=[])]),
        ExternalExecutionResultEvent(reply_id="r", execution_results=[result]),
    ]


async def ask(script: str) -> Msg:
    async with Longhaul.connect() as app:
        session: Session = app.session(os.environ["LONGHAUL_TASK_QUEUE"], user="ana", agent=spec(script))
        return await session.reply("How much is a lamp?")


if __name__ == "__main__":
    assert len(answers(ToolCallBlock(id="c", name="sell", input="{}"))) == 2
    reply = asyncio.run(ask(sys.argv[1]))
    print(reply.get_text_content() or reply)
"""
CLIENT = """
import json, sys, longhaul
from longhaul import AgentSpec, Longhaul, MissingExtra, Msg, PermissionContext, RedisStorage, open_store
missing = {}
for name in (one for one in dir(longhaul) if not one.startswith("_")):
    try:
        getattr(longhaul, name)
    except MissingExtra as error:
        missing[name] = str(error)
AgentSpec(name="thin", tools=["Bash"], permission=PermissionContext(mode="plan"))
star = {}
exec("from longhaul import *", star)
assert {*star} & {"Longhaul", "AgentSpec", *missing} == {"Longhaul", "AgentSpec"}
import agent, worker, workflows
print(json.dumps([missing, agent.WHOSE, worker.WHOSE, list(workflows.__path__)]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def client(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed.of(wheel, tmp_path_factory.mktemp("client"), set())


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed.of(wheel, tmp_path_factory.mktemp("full"), {"all"})


@pytest.fixture(scope="module")
def every(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """With the extras that `all` does not bring."""
    return Installed.of(
        wheel, tmp_path_factory.mktemp("every"), {"a2a", "all", "azure", "bedrock", "cohere", "vectors", "vertex"}
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, content in {**MINE, "shop_tools.py": SHOP_TOOLS, "ask.py": ASK, "thin.py": CLIENT}.items():
        (folder / name).write_text(content)
    (folder / "workflows").mkdir()
    (folder / "workflows" / "prices.py").write_text("def price(article: str) -> str:\n    return f'{article}: 5'\n")
    replies = [
        {"tool_calls": [{"name": "price_of", "input": {"article": "lamp"}}]},
        {"text": "Five.", "expect": {"last_contains": "lamp: 5"}},
    ]
    (folder / "script.jsonl").write_text("\n".join(map(json.dumps, replies)))
    return folder


def variables(project: Path, **more: str) -> dict[str, str]:
    """Nothing of this checkout, nor of whoever runs the tests."""
    left_out = ("LONGHAUL_", "TEMPORAL_", "OTEL_", "PYTHON", "VIRTUAL_ENV", "MYPY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "LONGHAUL_DATA_DIR": str(project / "data"), "HOME": str(project / "home"), **more}


def run(project: Path, *command: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    there = variables(project, **more)
    return subprocess.run(command, cwd=project, env=there, capture_output=True, text=True, check=False, timeout=SECONDS)


def test_the_wheel_holds_all_that_is_read_and_nothing_beside_its_one_name(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    data = ["__init__.pyi", "py.typed", "activities/shell/programs.toml", "starter/demo/project/README.md"]
    ours = {
        file.relative_to(ROOT).as_posix()
        for room in ("agent", "activities", "stores", "starter", "workflows")
        for file in (ROOT / room).rglob("*.py")
    }

    assert {name.split("/")[0].partition("-")[0] for name in names} == {"longhaul", "longhaul_agents"}
    assert [name for name in data if f"longhaul/{name}" not in names] == []
    assert sorted(ours - {name.removeprefix("longhaul/") for name in names}) == []


def test_a_thin_client_says_which_extra_has_what_it_lacks(client: Installed, project: Path) -> None:
    ran = run(project, client.python, "thin.py")
    assert ran.returncode == 0, ran.stderr
    missing, agent, worker, workflows = json.loads(ran.stdout)
    use, _ = documented()
    errors = {name for name in missing if name.endswith("Error") or name.startswith(("Bad", "Cant", "No"))}

    assert (agent, worker, workflows) == ("mine: agent", "mine: worker", [str(project / "workflows")])
    assert missing["SqlStore"] == (
        "'sqlalchemy' is not installed; it comes with an extra: pip install 'longhaul-agents[sql]'"
    )
    assert {*missing} & {*use} - errors == {"LonghaulPlugin", "SqlStore"}  # the plugin hosts a worker
    assert {*missing} & {"tool", "Middleware", "Effect", "Offloader"} == set()


@pytest.mark.parametrize(
    ("script", "extra"),
    [
        ("import sys; from longhaul.starter.cli.entry_point import main; main()", "cli"),
        ("from pathlib import Path as P; from longhaul import open_store as o; o('sqlite:////x', data_dir=P())", "sql"),
        ("import longhaul.starter.telemetry.switches as s; s.client_interceptors({'OTEL_TRACES_EXPORTER': 'otlp'})",
         "telemetry"),
        ("from longhaul.starter.worker_host.worker_extra import check_installed; check_installed()", "worker"),
        ("from longhaul.starter.client.structured_input import InputForm; InputForm({'type': 'object'})", "worker"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named_in_one_sentence(client: Installed, project: Path, script: str, extra: str) -> None:
    ran = run(project, client.python, "-c", script)

    assert ran.returncode != 0
    assert ran.stderr.splitlines()[-1].endswith(
        f"is not installed; it comes with an extra: pip install 'longhaul-agents[{extra}]'"
    )


def test_a_worker_without_its_extra_is_one_sentence(client: Installed, project: Path) -> None:
    ran = run(project, client.python, "-P", "-m", "longhaul.worker")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "longhaul worker: 'anthropic' is not installed; it comes with an extra: pip install 'longhaul-agents[worker]'\n"
    )


@pytest.mark.parametrize("extra", EXTRAS)
def test_each_extra_brings_the_modules_that_are_listed_for_it(extra: str, client: Installed, every: Installed) -> None:
    look = f"import importlib.util as u; print([bool(u.find_spec(name)) for name in {EXTRAS[extra]!r}])"
    have, lack = (run(env.folder, env.python, "-c", look).stdout.strip() for env in (every, client))

    assert (have, lack) == (str([True] * len(EXTRAS[extra])), str([False] * len(EXTRAS[extra])))


def test_a_worker_without_the_extra_of_other_vendors_names_it(full: Installed) -> None:
    ask = (
        "from longhaul.activities.models.providers import Providers; from longhaul import AgentSpec;"
        "Providers({}).check(AgentSpec(model='ai:google:gemini-3-pro'))"
    )
    ran = run(full.folder, full.python, "-c", ask)

    assert ran.returncode == 1
    assert "Models of ai:google need 'pydantic_ai', which is not installed on the worker" in ran.stderr
    assert "pip install 'longhaul-agents[ai]'" in ran.stderr


@pytest.fixture(params=["longhaul worker", "python -m longhaul.worker"])
async def polling(
    request: pytest.FixtureRequest, full: Installed, project: Path, temporal_server: DevServer
) -> AsyncIterator[Mapping[str, str]]:
    """A worker of the wheel in the project's folder, with the user's tools; the variables that lead to it."""
    program, *rest = request.param.split()
    way = [str(full.folder / "bin" / program), *rest]
    queue = f"{QUEUE}-{program}"
    there = {"TEMPORAL_ADDRESS": temporal_server.address, "LONGHAUL_TASK_QUEUE": queue}
    process = await asyncio.create_subprocess_exec(
        *bound_to_parent(way), cwd=project, env=variables(project, LONGHAUL_TOOLS="shop_tools", **there),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(SURE_SECONDS):
            first = await process.stdout.readline()
        assert first.startswith(b"longhaul worker: polling"), (await process.stderr.read()).decode()
        yield there
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.proves("X20")
@pytest.mark.server
async def test_a_worker_in_a_folder_of_clashing_names_runs_its_tools(
    polling: Mapping[str, str], client: Installed, project: Path
) -> None:
    ran = await asyncio.to_thread(run, project, client.python, "ask.py", "script.jsonl", **polling)

    assert (ran.stdout.strip(), ran.stderr) == ("Five.", "")


@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_are_content_with_a_users_script(client: Installed, project: Path, checker: str) -> None:
    (project / "wrong.py").write_text("from longhaul import AgentSpec\nAgentSpec(tools=[1], nope=3)\n")
    ways = {
        "mypy": ["mypy", "--strict", "--python-executable", str(client.python), f"--cache-dir={project / 'mypy'}"],
        "pyright": ["pyright", "--pythonpath", str(client.python)],
    }
    command = [sys.executable, "-m", *ways[checker]]

    found = run(project, *command, "ask.py", "wrong.py")

    assert (found.returncode, "nope" in found.stdout) == (1, True), found.stdout + found.stderr
    assert "ask.py" not in found.stdout, found.stdout
