"""What the extra for other vendors costs a worker that calls none of them: nothing.

Also the module of the tool that tells what its worker has loaded."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from longhaul.activities.models.apis.vendors import VENDORS
from longhaul.activities.tools.function import tool
from longhaul.agent.values.conversation.tools import Effect
from tests.activities.models.wire import Answer, chat_calls, chat_says, on_a_port
from tests.e2e.processes import ROOT, WorkerSettings, worker
from tests.workflows.conftest import Stage

OF_THE_EXTRAS = (
    "pydantic_ai",
    "pydantic_graph",
    "groq",
    "mistralai",
    "google.genai",
    "genai_prices",
    "cohere",
    "boto3",
    "botocore",
)
NOT_INSTALLED = f"""
import sys

class Absent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if any(name == one or name.startswith(one + ".") for one in {OF_THE_EXTRAS!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
"""


@tool(effect=Effect.READ, read_only=True)
def loaded() -> str:
    """Write down what this process has loaded, how large it is, and what it has taken so far."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    resident = int(status.partition("VmRSS:")[2].split()[0]) // 1024
    told = json.dumps({"modules": sorted(sys.modules), "MiB": resident, "seconds": time.process_time()})
    Path(os.environ["LONGHAUL_DATA_DIR"], "loaded.json").write_text(told, encoding="utf-8")
    return "written"


async def told_by_worker(stage: Stage, folder: Path, python_path: str) -> tuple[set[str], str]:
    """The modules of a worker that has the vendors' keys, warms its clients and serves a session of another model."""
    async with on_a_port() as wire:
        wire.answers = [Answer(chat_calls("c1", "loaded", {})), Answer(chat_says("Fair wind."))]
        keys = {vendor.key_env: "sk-of-nobody-at-all" for vendor in VENDORS.values()}
        listed = {"LONGHAUL_MODEL_KEYS": f"none={wire.url}/v1"}
        settings = WorkerSettings(
            address=stage.address,
            task_queue=stage.name,
            directory=folder,
            tools=__name__,
            further={**keys, **listed, "PYTHONPATH": python_path},
        )
        config = {"base_url": f"{wire.url}/v1", "api_key_env": "none", "context_length": 100_000}
        session = stage.session(model="openai-chat:llama", tools=("loaded",), model_config=config)
        async with worker(settings):
            reply = await session.reply("How is the wind?")
    assert reply.get_text_content() == "Fair wind."
    told = json.loads((folder / "loaded.json").read_text(encoding="utf-8"))
    return set(
        told["modules"]
    ), f"{len(told['modules'])} modules, {told['MiB']} MiB, {told['seconds']:.2f} s of processor"


@pytest.mark.proves("F6")
@pytest.mark.server
async def test_a_worker_that_calls_none_of_them_loads_what_one_without_the_extra_does(
    unserved: Stage, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOT_INSTALLED, encoding="utf-8")

    having, one = await told_by_worker(unserved, tmp_path / "having", str(ROOT))
    lacking, other = await told_by_worker(unserved, tmp_path / "lacking", f"{tmp_path}{os.pathsep}{ROOT}")

    print(f"with the extra: {one}; without: {other}")
    assert "openai" in having
    assert having - lacking == set()
