"""What a custom agent may not do is found before a worker takes it, and named with module and line."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul.activities.custom_agents.custom_agent_registry import (
    CustomAgentSetupError,
    check_module,
    load_custom_agents,
)

CUSTOM = """
@custom_agent("{name}")
class Own(CustomAgent):
    async def reply(self, msg, session):
        return "done"
"""
HEAD = "from longhaul import CustomAgent, custom_agent\n"
OURS = ("sequential", "round_robin", "fanout", "program")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules, of which nothing stays imported."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.proves("C13")
@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import time", "imports 'time'"),
        ("import os.path", "imports 'os.path'"),
        ("import random as chance", "imports 'random'"),
        ("from datetime import datetime", "imports 'datetime.datetime'"),
        ("from asyncio import gather", "imports 'asyncio.gather'"),
        ("from longhaul.activities.process import sandbox", "imports 'longhaul.activities.process.sandbox'"),
        ("import threading", "imports 'threading'"),
        ("def later():\n    from uuid import uuid4", "imports 'uuid.uuid4'"),
        ("text = open", "uses 'open'"),
        ("seed = hash('a')", "uses 'hash'"),
        ("made = __import__('time')", "uses '__import__'"),
        ("seen = 0\ndef count():\n    global seen", "changes 'seen' for all sessions"),
    ],
)
def test_what_a_custom_agent_may_not_do_is_named_with_module_and_line(folder: Path, line: str, named: str) -> None:
    (folder / "harbour.py").write_text(f"{HEAD}\n{line}\n")
    at = 2 + len(line.splitlines())

    with pytest.raises(CustomAgentSetupError) as refused:
        check_module("harbour")

    assert str(refused.value).startswith(f"the module 'harbour', line {at}, {named}")


def test_what_computes_is_allowed(folder: Path) -> None:
    (folder / "harbour.py").write_text(f"{HEAD}import re\nimport collections.abc\nfrom math import sqrt\n")

    check_module("harbour")


def test_modules_of_the_same_package_are_looked_at_too(folder: Path) -> None:
    (folder / "quay").mkdir()
    (folder / "quay" / "__init__.py").write_text("")
    (folder / "quay" / "custom_agents.py").write_text(f"{HEAD}from quay.words import said\nfrom . import tides\n")
    (folder / "quay" / "words.py").write_text("said = 'ahoy'\n")
    (folder / "quay" / "tides.py").write_text("import socket\n")

    with pytest.raises(CustomAgentSetupError, match=r"the module 'quay.tides', line 1, imports 'socket'"):
        check_module("quay.custom_agents")


def test_a_worker_takes_the_custom_agents_of_its_modules_by_name(folder: Path) -> None:
    (folder / "pier.py").write_text(HEAD + CUSTOM.format(name="own"))

    assert load_custom_agents("pier").names == (*OURS, "own")


def test_a_custom_agent_of_the_operators_own_stands_in_the_place_of_ours(folder: Path) -> None:
    (folder / "jetty.py").write_text(HEAD + CUSTOM.format(name="fanout"))

    custom_agents = load_custom_agents("jetty")

    assert custom_agents.names == OURS
    assert custom_agents.get("fanout").__module__ == "jetty"


def test_the_custom_agent_of_the_page_is_taken(folder: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "agents" / "custom-agents.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (folder / "desk_agents.py").write_text(code)

    assert load_custom_agents("desk_agents").names == (*OURS, "router")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (CUSTOM.format(name="two words"), "can't be the name of a custom agent"),
        (CUSTOM.format(name="own") + CUSTOM.format(name="own"), "two custom agents have the name 'own'"),
        ('@custom_agent("own")\nclass Own(CustomAgent):\n    pass\n', "'own' defines no reply"),
        (CUSTOM.format(name="own").replace("async def", "def"), "reply has to be an async function"),
        ("import socket\n" + CUSTOM.format(name="own"), "line 2, imports 'socket'"),
    ],
)
def test_a_custom_agent_that_can_not_be_taken_is_refused_in_a_sentence(folder: Path, body: str, why: str) -> None:
    (folder / "pier.py").write_text(HEAD + body)

    if "two custom agents" in why:
        (folder / "pier.py").write_text(HEAD + body.replace("class Own", "class Other", 1))
    with pytest.raises(CustomAgentSetupError, match=why):
        load_custom_agents("pier")
