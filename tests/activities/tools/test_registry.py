"""The toolbox, and plain functions as tools."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from longhaul.activities.tool import Place, ToolError, ToolOutput, ToolSetupError
from longhaul.activities.tools.arguments import ArgumentsError
from longhaul.activities.tools.function import FunctionTool, tool
from longhaul.activities.tools.registry import Toolbox, default_tools, load_modules
from longhaul.agent.values.conversation.tools import Effect
from tests.activities.tools.calls import use
from tests.endless_schemas import doubling
from tests.limits import usual


class Item(BaseModel):
    sku: str
    count: int


@tool(effect=Effect.IDEMPOTENT, timeout_seconds=12)
async def order(
    items: Annotated[list[Item], Field(description="What to order.")], schema: str = "plain"
) -> dict[str, object]:
    """Order things
    from the shop.

    Not for the model.
    """
    return {"total": sum(item.count for item in items), "schema": schema, "note": "grüße"}


@tool()
def fail(reason: str) -> str:
    raise LookupError(reason)


@tool(effect=Effect.READ, concurrency_safe=True)
def thread_name() -> str:
    return threading.current_thread().name


def sandbox(*tools: FunctionTool) -> Toolbox:
    return Toolbox(tools)


@pytest.mark.proves("A7")
def test_a_function_describes_itself() -> None:
    descriptor = sandbox(order).descriptor("order")

    assert descriptor is not None
    assert descriptor.description == "Order things\nfrom the shop."
    assert descriptor.input_schema["required"] == ["items"]
    assert descriptor.input_schema["properties"]["items"]["description"] == "What to order."
    assert (descriptor.effect, descriptor.timeout_seconds) == (Effect.IDEMPOTENT, 12)


def test_a_bare_decorator_promises_nothing() -> None:
    descriptor = sandbox(fail).descriptor("fail")

    assert descriptor is not None
    assert (descriptor.effect, descriptor.concurrency_safe, descriptor.read_only) == (Effect.ONCE, False, False)


@pytest.mark.proves("A7")
async def test_arguments_become_the_declared_types_and_results_json(place: Place) -> None:
    output = await use(order, place, items=[{"sku": "a", "count": 2}, {"sku": "b", "count": 5}])

    assert output == ToolOutput('{"total": 7, "schema": "plain", "note": "grüße"}')


async def test_a_sync_function_runs_beside_the_loop(place: Place) -> None:
    assert (await use(thread_name, place)).output != threading.current_thread().name


async def test_an_exception_becomes_words_for_the_model(place: Place) -> None:
    with pytest.raises(ToolError, match="LookupError: no such shelf"):
        await use(fail, place, reason="no such shelf")


def test_a_decorated_function_can_still_be_called() -> None:
    assert thread_name() == threading.current_thread().name


def test_parameters_that_cannot_be_named_are_refused() -> None:
    def greedy(*names: str) -> str:
        return "".join(names)

    with pytest.raises(TypeError, match=r"\*names"):
        tool()(greedy)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ('{"command": 1}', "'command' is 1, but has to be text"),
        ('{"command": "ls", "timeout": 700000}', "'timeout' is 700000: give 600000 or less"),
        ("{}", "'command' is missing: give text"),
        (
            '{"command": "ls", "cmd": 1}',
            "'cmd' is not known here: leave it out; known are command, description, timeout, run_in_background",
        ),
        ('{"command": "rm a", "command": "ls"}', 'the arguments name "command" twice; give each once'),
        ("[1, 2]", 'the arguments are an array; a JSON object like {"name": "value"} is needed'),
        ('{"command": NaN}', "the arguments contain NaN, which is not JSON; give a number or null"),
        ("[" * 100_000, "the arguments are nested too deeply; give a flatter JSON object"),
        ('{"timeout": ' + "9" * 5000 + "}", "the arguments hold a number with too many digits; give it as a string"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_a_sentence(raw: str, sentence: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        Toolbox(default_tools()).validate("Bash", raw)

    assert str(caught.value) == sentence


def test_arguments_that_break_off_are_told_apart_from_wrong_ones() -> None:
    toolbox = Toolbox(default_tools())

    with pytest.raises(ArgumentsError, match="break off after 17 characters"):
        toolbox.validate("Bash", '{"command": "ls -')
    with pytest.raises(ArgumentsError, match="at character 12, near"):
        toolbox.validate("Bash", '{"command": ls}')


def test_good_arguments_come_back_and_nothing_counts_as_an_empty_object() -> None:
    assert Toolbox(default_tools()).validate("Bash", '{"command": "ls"}') == {"command": "ls"}
    assert sandbox(thread_name).validate("thread_name", "{}") == {}
    with pytest.raises(ArgumentsError, match="has no arguments"):
        sandbox(thread_name).validate("thread_name", " ")


def test_a_schema_is_never_fetched_from_elsewhere() -> None:
    far = tool(name="far")(lambda: "")
    far.input_schema = {"type": "object", "properties": {"x": {"$ref": "http://127.0.0.1:9/schema.json"}}}

    with pytest.raises(ArgumentsError, match="can't be applied"):
        sandbox(far).validate("far", '{"x": 1}')


def test_the_digest_tells_tools_apart_and_not_their_order() -> None:
    other = tool(name="fail", description="other")(lambda reason: reason)

    assert sandbox(order, fail).digest == sandbox(fail, order).digest
    assert sandbox(order, fail).digest != sandbox(order, other).digest


def test_descriptors_come_in_the_order_asked_for_and_unknown_names_are_left_out() -> None:
    toolbox = Toolbox(default_tools())

    assert [one.name for one in toolbox.descriptors(("Read", "Nope", "Bash"))] == ["Read", "Bash"]
    assert toolbox.descriptor("Nope") is None
    assert toolbox.get("Nope") is None


@pytest.mark.parametrize("name", ["a.b", "", "9x", "x" * 65, "x\n", "naïve"])
def test_a_wrong_name_is_refused(name: str) -> None:
    bad = tool(name="fine")(lambda: "")
    bad.name = name

    with pytest.raises(ToolSetupError, match="can't be the name"):
        sandbox(bad)


def test_a_tool_needs_no_parentheses_and_its_effect_may_be_a_word() -> None:
    @tool
    def sell(sku: str) -> str:
        """Sell one."""
        return sku

    @tool(effect="read")
    def count(sku: str) -> int:
        """Count them."""
        return len(sku)

    toolbox = sandbox(sell, count)

    assert (sell.description, sell.effect, sell("kettle")) == ("Sell one.", Effect.ONCE, "kettle")
    assert [toolbox.validate("sell", '{"sku": "lamp"}'), count.effect] == [{"sku": "lamp"}, Effect.READ]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ToolSetupError, match="two tools have the name 'fail'"):
        sandbox(fail, tool(name="fail")(lambda: ""))


def test_modules_give_their_tools_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_tools.py").write_text(
        "from longhaul.activities.tools.function import tool\n@tool()\ndef sell(sku: str) -> str:\n    return sku\n"
    )
    (tmp_path / "mail_tools.py").write_text("from shop_tools import sell\n")
    (tmp_path / "empty_tools.py").write_text("")
    (tmp_path / "broken_tools.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    try:
        assert [one.name for one in load_modules("shop_tools, mail_tools")] == ["sell"]
        assert load_modules("") == []
        with pytest.raises(ToolSetupError, match="'broken_tools' can't be imported: ZeroDivisionError"):
            load_modules("broken_tools")
        with pytest.raises(ToolSetupError, match="'empty_tools' has no tools"):
            load_modules("empty_tools")
    finally:
        for name in ("shop_tools", "mail_tools", "empty_tools"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param(doubling("allOf"), "high", id="allOf"),
        pytest.param(doubling("anyOf"), "neap", id="anyOf"),
        pytest.param(
            {"properties": {"x": {"uniqueItems": True}}}, [*range(20_000), *map(str, range(9_000)), 0], id="a set"
        ),
    ],
)
def test_no_schema_of_a_tool_keeps_a_worker_busy(schema: dict[str, Any], value: object) -> None:
    """An MCP server's is a stranger's."""

    def price() -> str:
        return "dear"

    served = FunctionTool(price)
    served.input_schema = schema
    toolbox = sandbox(served)
    began = time.process_time()

    with pytest.raises(ArgumentsError):
        toolbox.validate(served.name, json.dumps({"x": value}))

    assert time.process_time() - began < usual(20)


def test_what_nobody_says_of_a_tool_is_refused_by_name() -> None:
    """A misspelt trait would leave a call that is made once to be made again."""

    def price() -> str:
        return "dear"

    with pytest.raises(TypeError, match="@tool has no parameter 'efect'; it takes concurrency_safe, "):
        tool(efect="once")(price)  # type: ignore[call-overload]
