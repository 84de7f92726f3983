"""Code of the program that is run is refused where an agent names it, for no worker could find it there."""

import subprocess
import sys
from pathlib import Path

import pytest

PARTS = {
    "a function": "@tool\ndef lamp(colour: str) -> str:\n    return colour\n\nagent = {made}(name='a', tools=[lamp])\n",
    "a function with settings": "@tool(effect='read', name='lamp')\ndef other() -> str:\n    return ''\n\n"
    "agent = {made}(name='a', tools=[other])\n",
    "a function in a group": "@tool\ndef lamp() -> str:\n    return ''\n\n"
    "agent = {made}(name='a', tool_groups={{'g': {{'tools': [lamp]}}}})\n",
    "a middleware": "class lamp(Middleware):\n    name = ''\n\nagent = {made}(name='a', middlewares=[lamp()])\n",
}


@pytest.mark.parametrize("made", ["Agent", "AgentSpec"])
@pytest.mark.parametrize("part", PARTS)
def test_what_the_program_itself_defines_is_refused_at_once(tmp_path: Path, part: str, made: str) -> None:
    program = tmp_path / "program.py"
    imports = "from longhaul import Agent, AgentSpec, Middleware, tool\n\n"
    program.write_text(imports + PARTS[part].format(made=made))

    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert run.returncode == 1
    assert "'lamp' is defined in the program that is run, where no worker finds it" in run.stderr
    assert "LONGHAUL_TOOLS" in run.stderr


def test_the_same_code_of_a_module_is_taken(tmp_path: Path) -> None:
    (tmp_path / "lamps.py").write_text(
        PARTS["a function"].format(made="dict").replace("@tool", "from longhaul import tool\n\n\n@tool")
    )
    program = tmp_path / "program.py"
    program.write_text(
        "from lamps import lamp\nfrom longhaul import Agent\n\nAgent(name='a', tools=[lamp])\nprint(lamp.name)\n"
    )

    run = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert "lamp" in run.stdout, run.stderr
