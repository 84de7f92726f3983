"""Where modules come from that an operator's settings name: from what is installed, or else from the folder at hand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import SURE_SECONDS

LOAD = """
import pkgutil, sys
from pathlib import Path
from longhaul.agent.plain.errors import BadSetup
place, value = sys.argv[1:]
more = {"data_dir": Path(".")} if place.endswith("open_store") else {}
try:
    pkgutil.resolve_name(place)(value, **more)
except BadSetup as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
SHOP = """
import till
from longhaul import Middleware, StateStore, tool

@tool
def sell(sku: str) -> str:
    return till.ring(sku)

class Guard(Middleware): ...
class Shelf(StateStore):
    async def get_session(self, *given): ...
    async def upsert_session(self, *given): ...
    async def update_session_state(self, *given): ...
    async def list_sessions(self, *given): ...
    async def delete_session(self, *given): ...
    async def save_checkpoint(self, *given): ...
    async def close(self): ...
class Judge:
    async def analyze(self, case): ...
class Short:
    async def condense(self, view): ...
class Away:
    def __init__(self, owner): ...
    async def offload_context(self, session_id, msgs, **kwargs): ...
    async def offload_tool_result(self, session_id, tool_result, **kwargs): ...
def hook(system_prompt, context): ...
def hooks(registry): ...
"""
SETTINGS = {
    "LONGHAUL_TOOLS": ("shop_tools", "longhaul.activities.tools.registry:load_modules"),
    "LONGHAUL_ANALYZERS": ("shop_tools:Judge", "longhaul.activities.risk_analysis:load_analyzers"),
    "LONGHAUL_CLIENT_HOOKS": ("shop_tools:hooks", "longhaul.starter.client.hooks:hooks_for_all"),
    "LONGHAUL_CONDENSERS": ("shop_tools:Short", "longhaul.activities.compression.condensers:load_condensers"),
    "LONGHAUL_HOOKS": ("shop_tools:hook", "longhaul.activities.context.prompt_hooks:load_hooks"),
    "LONGHAUL_MIDDLEWARES": ("shop_tools:Guard", "longhaul.activities.middlewares.middleware_chain:load_middlewares"),
    "LONGHAUL_OFFLOADERS": ("shop_tools:Away", "longhaul.stores.offload.offloaders:load_offloaders"),
    "LONGHAUL_STORE": ("shop_tools:Shelf", "longhaul.stores.state.open_store:open_store"),
}
"""Each setting that names modules of the operator's, with a value, and what loads it."""


def loaded(folder: Path, setting: str, value: str = "", **environment: str) -> str:
    """What a process that loads this and stands in `folder`, with nothing of it on its path, says on stderr."""
    kept = {name: word for name, word in os.environ.items() if not name.startswith(("LONGHAUL_", "PYTHONPATH"))}
    ran = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, SETTINGS[setting][1], value or SETTINGS[setting][0]],
        cwd=folder, env=kept | environment, capture_output=True, text=True, check=False, timeout=SURE_SECONDS,
    )  # fmt: skip
    return ran.stderr.strip()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop_tools.py").write_text(SHOP)
    (folder / "till.py").write_text("def ring(sku):\n    return sku\n")
    return folder


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_module_of_the_current_folder_is_found_when_the_environment_names_it(shop: Path, setting: str) -> None:
    assert loaded(shop, setting, **{setting: f"?elsewhere:x, {SETTINGS[setting][0]}"}) == ""


@pytest.mark.parametrize("setting", SETTINGS)
def test_what_a_settings_file_names_is_looked_for_in_no_folder(shop: Path, setting: str) -> None:
    said = loaded(shop, setting)

    assert f"no module 'shop_tools' is installed, and the one in '{shop}' counts only when the environment" in said
    assert f"put its folder into PYTHONPATH, or start in that folder with {setting} set in the environment" in said
    assert loaded(shop, setting, PYTHONPATH=str(shop)) == ""


def test_a_folder_can_take_the_place_of_nothing_that_is_installed(tmp_path: Path) -> None:
    (tmp_path / "colorsys.py").write_text("raise SystemExit('taken over')")
    (tmp_path / "pydantic").mkdir()

    said = loaded(tmp_path, "LONGHAUL_TOOLS", "colorsys", LONGHAUL_TOOLS="colorsys")

    assert said == "ToolSetupError: the tool module 'colorsys' has no tools; put @tool above a function in it"


def test_a_module_that_is_nowhere_is_missed_with_what_to_do(tmp_path: Path) -> None:
    said = loaded(tmp_path, "LONGHAUL_TOOLS", LONGHAUL_TOOLS="shop_tools")

    assert said.startswith(
        "ToolSetupError: the tool module 'shop_tools' can't be imported: ModuleNotFoundError: no module"
    )
    assert f"is installed, and '{tmp_path}' has none; put its folder into PYTHONPATH" in said
