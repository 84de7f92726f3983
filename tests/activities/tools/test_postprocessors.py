"""Functions behind tools: what they may return, and what becomes of each way to go wrong."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from longhaul.activities.tool import ToolOutput, ToolSetupError
from longhaul.activities.tools.postprocessors import Postprocessor, Postprocessors, postprocessor
from longhaul.activities.tools.registry import load_modules, load_postprocessors
from longhaul.agent.values.conversation.messages import TextBlock

PAGE = ToolOutput("a long page", metadata={"from": "shelf 3"}, cwd=Path("/site"))


async def behind(function: Callable[..., Any], output: ToolOutput = PAGE) -> ToolOutput:
    return await Postprocessors({"it": Postprocessor(function)}).applied("it", "fetch", output)


async def later(tool: str, output: ToolOutput) -> str:
    await asyncio.sleep(0)
    return f"{tool}: {output.output}"


@pytest.mark.parametrize(
    ("function", "came"),
    [
        (lambda _, __: None, PAGE),
        (lambda _, __: "short", ToolOutput("short", metadata={"from": "shelf 3"}, cwd=Path("/site"))),
        (lambda tool, output: ToolOutput(f"{tool} {len(str(output.output))}"), ToolOutput("fetch 11")),
        (lambda _, __: ToolOutput("no", failed=True), ToolOutput("no", failed=True)),
        (later, ToolOutput("fetch: a long page", metadata={"from": "shelf 3"}, cwd=Path("/site"))),
    ],
)
async def test_it_may_return(function: Callable[..., Any], came: ToolOutput) -> None:
    assert await behind(function) == came


def leaves(_: str, __: ToolOutput) -> None:
    sys.exit("it leaves")


async def cancels(_: str, __: ToolOutput) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda _, __: 1 / 0, "ZeroDivisionError"),
        (lambda _, __: 7, "it returned a int; return a ToolOutput, a text or None"),
        (lambda _: "one argument", "TypeError"),
        (leaves, "SystemExit"),
        (cancels, "CancelledError"),
    ],
)
async def test_however_it_fails_the_tools_own_words_are_told(function: Callable[..., Any], why: str) -> None:
    made = await behind(function)

    assert str(made.output).startswith("a long page\n[The function ")
    assert why in str(made.output)
    assert made.metadata == {"from": "shelf 3"}


async def test_of_an_output_in_parts_the_note_is_the_last_one() -> None:
    made = await behind(leaves, ToolOutput((TextBlock(text="a picture of a page"),)))

    assert [getattr(block, "text", "")[:13] for block in made.output] == ["a picture of ", "[The function"]


async def test_one_that_takes_too_long_is_left() -> None:
    async def dawdles(_: str, __: ToolOutput) -> None:
        await asyncio.sleep(600)

    slow = Postprocessor(dawdles, timeout_seconds=0.05)

    assert "TimeoutError" in str((await Postprocessors({"it": slow}).applied("it", "fetch", PAGE)).output)


async def test_what_failed_is_not_shown_to_it() -> None:
    failed = ToolOutput("no such page", failed=True)

    assert await behind(leaves, failed) is failed


def test_one_that_is_not_here_is_another_workers() -> None:
    known = Postprocessors({"headings": Postprocessor(later)})

    known.check("")
    known.check("headings")
    with pytest.raises(ApplicationError, match=r"no postprocessor is named 'heading' .* did you mean 'headings'"):
        known.check("heading")


def test_modules_give_theirs_with_and_without_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = "from longhaul.activities.tools.postprocessors import postprocessor\n@postprocessor\n"
    (tmp_path / "shelf_behind.py").write_text(f"{first}def shorter(tool, output):\n    return None\n")
    (tmp_path / "other_behind.py").write_text(f"{first}def shorter(tool, output):\n    return None\n")
    odd = first.replace("@postprocessor", "@postprocessor(name='a b')")
    (tmp_path / "odd_behind.py").write_text(f"{odd}def shorter(tool, output):\n    return None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        assert load_modules("shelf_behind") == []
        assert load_postprocessors("shelf_behind").names == ("shorter",)
        assert load_postprocessors("").names == ()
        with pytest.raises(ToolSetupError, match="two postprocessors have the name 'shorter'"):
            load_postprocessors("shelf_behind, other_behind")
        with pytest.raises(ToolSetupError, match="'a b' can't be the name of a postprocessor"):
            load_postprocessors("odd_behind")
    finally:
        for name in ("shelf_behind", "other_behind", "odd_behind"):
            sys.modules.pop(name, None)


def test_it_may_have_a_name_of_its_own() -> None:
    assert postprocessor(name="brief")(later).name == "brief"
    assert postprocessor(later).name == "later"
