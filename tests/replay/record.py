"""Record histories: `python -m tests.replay.record [NAME …]`. Needs the `temporal` command.

A history stands for the live sessions of a release. Once that release is out it stays as it is, until no session of it
can be alive any more; a new behaviour gets a scenario of its own. CONTRIBUTING.md has the whole rule.
"""

import asyncio
import json
import lzma
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment

from longhaul.activities.models.providers import Providers
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.starter.client.client import Longhaul
from longhaul.starter.dev_server.dev_server import DYNAMIC_CONFIG
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.starter.settings import Settings
from longhaul.worker import build
from longhaul.workflows.contract import DATA_CONVERTER, SEARCH_ATTRIBUTES
from tests.replay.scenarios import FIRST_CALL, FOLDER, HOST, HUB, SCENARIOS, Scenario

HISTORIES = Path(__file__).with_name("histories")
ROOT = Path(__file__).parents[2]
IDENTITY = "recorder"
_WORKER = re.compile(rf"\d+@{re.escape(socket.gethostname())}(/[\w-]+)*")
"""As a worker calls itself, and the queue of what it has in memory."""


async def record(name: str, scenario: Scenario) -> None:
    """Play the scenario and write down each of its runs, the first one first."""
    with _folder():
        async with await server_suggesting(scenario.suggest_continue_as_new) as server:
            address = server.client.service_client.config.target_host
            client = await Client.connect(address, data_converter=DATA_CONVERTER, identity=IDENTITY)
            runs = await _play(client, name, scenario)
    for number, events in enumerate(runs, start=1):
        suffix = f"_{number}" if len(runs) > 1 else ""
        text = json.dumps({"workflow_id": _workflow_id(name, scenario), "events": _without_traces(events)}, indent=1)
        if any(mark in text for mark in (f"@{socket.gethostname()}", str(Path.home()), str(ROOT))):
            raise RuntimeError(f"{name}: the history names this machine")
        packed = lzma.compress(f"{text}\n".encode(), preset=9 | lzma.PRESET_EXTREME)
        (HISTORIES / f"{name}{suffix}.json.xz").write_bytes(packed)


@contextmanager
def _folder() -> Iterator[None]:
    FOLDER.mkdir()
    try:
        yield
    finally:
        shutil.rmtree(FOLDER)


async def server_suggesting(continue_as_new: int | None) -> WorkflowEnvironment:
    """A server that suggests to continue as new from so many events on; None = its own limit."""
    config = dict(DYNAMIC_CONFIG)
    if continue_as_new is not None:
        config["limit.historyCount.suggestContinueAsNew"] = continue_as_new
    flags = [word for key, value in config.items() for word in ("--dynamic-config-value", f"{key}={json.dumps(value)}")]
    makers: dict[str, Callable[[str], SearchAttributeKey[Any]]] = {
        "Keyword": SearchAttributeKey.for_keyword,
        "KeywordList": SearchAttributeKey.for_keyword_list,
        "Datetime": SearchAttributeKey.for_datetime,
        "Int": SearchAttributeKey.for_int,
        "Double": SearchAttributeKey.for_float,
    }
    return await WorkflowEnvironment.start_local(
        dev_server_existing_path=str(find_temporal(print)),
        dev_server_extra_args=flags,
        dev_server_log_level="error",
        search_attributes=[makers[kind](key) for key, kind in SEARCH_ATTRIBUTES.items()],
    )


async def _play(client: Client, name: str, scenario: Scenario) -> list[list[dict[str, Any]]]:
    workspace = FOLDER / "workspace"
    workspace.mkdir()
    script = FOLDER / "script.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in scenario.script))
    other = FOLDER / "fallback.jsonl"
    other.write_text("".join(json.dumps(line) + "\n" for line in scenario.fallback))
    settings = Settings(
        task_queue="longhaul",
        data_dir=FOLDER / "data",
        tools="tests.workflows.tools,tests.workflows.custom_agents.own_agents",
        middlewares=scenario.middlewares,
        mcp=scenario.mcp,
        host=HOST,
    )
    spec = AgentSpec.model_validate(
        {
            "name": "lamp",
            "model": f"scripted:{script}",
            "tools": ("fetch", "send", "courier", "Bash"),
            "workspace": Workspace(root=str(workspace)),
            **({"model_config": {"fallback_model": f"scripted:{other}"}} if scenario.fallback else {}),
            **scenario.spec,
        }
    )
    session = Longhaul(client, settings).session(name, user="ana", agent=spec)
    async with build(client, settings, Providers({})):
        await scenario.play(session)
        return await _runs(client.get_workflow_handle(_workflow_id(name, scenario)), client)


async def _runs(newest: WorkflowHandle[Any, Any], client: Client) -> list[list[dict[str, Any]]]:
    runs: list[list[dict[str, Any]]] = []
    handle = newest
    while True:
        events = json.loads((await handle.fetch_history()).to_json())["events"]
        runs.insert(0, events)
        before = events[0]["workflowExecutionStartedEventAttributes"].get("continuedExecutionRunId")
        if not before:
            return runs
        handle = client.get_workflow_handle(newest.id, run_id=before)


def _without_traces(value: Any) -> Any:
    """The same without stack traces, and with one name for all workers: those tell of this machine, and replay does
    not look at them."""
    match value:
        case dict():
            return {key: _without_traces(inner) for key, inner in value.items() if key != "stackTrace"}
        case list():
            return [_without_traces(inner) for inner in value]
        case str():
            return _WORKER.sub(IDENTITY, value)
        case _:
            return value


def _workflow_id(name: str, scenario: Scenario) -> str:
    if scenario.of_hub:
        return f"longhaul-hub/ana/{HUB}"
    return f"longhaul/scout/ana/{name}.{FIRST_CALL}" if scenario.of_sub_agent else f"longhaul/lamp/ana/{name}"


async def main(names: list[str]) -> None:
    HISTORIES.mkdir(exist_ok=True)
    for name in names or list(SCENARIOS):
        await record(name, SCENARIOS[name])
        print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
    # The SDK's runtime threads abort a normal interpreter exit now and then.
    os._exit(0)
