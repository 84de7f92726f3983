"""A server and one worker of ours in processes of their own, for measurements without a contender."""

import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from temporalio.client import Client

from benchmarks.contenders import worker_process
from longhaul.starter.connection.connect import connect
from longhaul.starter.dev_server.dev_server import DevServer, DevServerSettings
from longhaul.starter.dev_server.temporal_cli import find_temporal
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import SEARCH_ATTRIBUTES


@dataclass(frozen=True, slots=True)
class Stage:
    client: Client
    settings: Settings
    folder: Path
    worker_pid: int
    server_pid: int


@asynccontextmanager
async def one_worker(
    tools: str = "benchmarks.fetch", model_keys: str = "", further: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[Stage]:
    """Everything lies in a folder that is gone afterwards. `model_keys` as in LONGHAUL_MODEL_KEYS, `further` are more
    variables of the worker's."""
    with tempfile.TemporaryDirectory(prefix="longhaul-bench-") as name:
        folder = Path(name)
        settings = Settings(task_queue="bench", data_dir=folder / "data", tools=tools)
        server_settings = DevServerSettings(
            temporal=find_temporal(_say), directory=folder / "temporal", search_attributes=SEARCH_ATTRIBUTES
        )
        async with DevServer(server_settings) as server:
            environment = {
                "TEMPORAL_ADDRESS": server.address,
                "LONGHAUL_TASK_QUEUE": settings.task_queue,
                "LONGHAUL_DATA_DIR": str(settings.data_dir),
                "LONGHAUL_TOOLS": tools,
                "LONGHAUL_MODEL_KEYS": model_keys,
                **further,
            }
            client = await connect(server.address, settings=settings)
            async with worker_process(
                [sys.executable, "-m", "longhaul.worker"], environment, folder / "worker.log"
            ) as pid:
                yield Stage(client, settings, folder, pid, server.pid or 0)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
