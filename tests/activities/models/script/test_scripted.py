"""The scripted model, field by field."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.models.failures.failure_classification import judge
from longhaul.activities.models.failures.status_table import ScriptError
from longhaul.activities.models.model import Delta, ModelRequest
from longhaul.activities.models.scripted_model import ScriptedModel, read_script
from longhaul.agent.values.conversation.messages import Msg, TextBlock, ThinkingBlock, ToolCallBlock, Usage, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig
from tests.activities.models.sample_requests import TIDES, WEATHER, returned


def script(folder: Path, *lines: dict[str, Any] | str) -> str:
    file = folder / "demo.jsonl"
    file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n")
    return str(file)


def asked(file: str, *messages: Msg, call: int = 0, attempt: int = 1, system: str = "") -> ModelRequest:
    told = messages or (UserMsg("user", "Hi"),)
    return ModelRequest(file, system, told, (WEATHER, TIDES), ModelConfig(), call_number=call, attempt=attempt)


def ignore(_: Delta) -> None:
    pass


@pytest.mark.parametrize("given", [{"event": "\ud83d"}, '{"event": "\ud83d'])
async def test_half_a_character_in_arguments_is_a_mark_that_can_be_recorded(tmp_path: Path, given: Any) -> None:
    file = script(tmp_path, {"tool_calls": [{"name": "tides", "input": given}]})

    (called,) = (await ScriptedModel().call(asked(file), ignore)).content

    assert isinstance(called, ToolCallBlock)
    assert '"event": "\ufffd' in called.input


@pytest.mark.proves("F6")
async def test_the_nth_call_gets_the_nth_line_and_then_the_script_has_ended(tmp_path: Path) -> None:
    file = script(tmp_path, {"text": "first"}, "", {"text": "for later", "for": "summary"}, {"text": "second"})

    replies = [await ScriptedModel().call(asked(file, call=call), ignore) for call in (1, 0, 1, 2, 40)]

    texts = [block.text for reply in replies for block in reply.content if isinstance(block, TextBlock)]
    assert texts == ["second", "first", "second", "(script ended)", "(script ended)"]
    assert [line.text for line in read_script(file).summaries] == ["for later"]


async def test_thinking_text_and_calls_come_in_this_order(tmp_path: Path) -> None:
    calls = [
        {"name": "Bash", "input": {"command": "ls ä"}},
        {"name": "Bash", "input": "{oops", "id": "mine"},
        {"name": "Todo"},
    ]
    file = script(tmp_path, {"text": "a"}, {"text": "b"}, {"text": "Look", "thinking": "Hm", "tool_calls": calls})

    reply = await ScriptedModel().call(asked(file, call=2), ignore)

    assert reply.content == (
        ThinkingBlock(thinking="Hm"),
        TextBlock(text="Look"),
        ToolCallBlock(id="call_2_0", name="Bash", input='{"command": "ls ä"}'),
        ToolCallBlock(id="mine", name="Bash", input="{oops"),
        ToolCallBlock(id="call_2_2", name="Todo", input="{}"),
    )
    assert (reply.stop_reason, reply.model) == ("tool_use", "scripted")


async def test_the_reply_streams_in_pieces_of_the_wanted_size_and_pace(tmp_path: Path) -> None:
    line = {"text": "abcdefg", "tool_calls": [{"name": "Bash", "input": "xyz"}], "chunk_chars": 3, "delay_ms": 20}
    deltas: list[Delta] = []
    began = time.monotonic()

    await ScriptedModel().call(asked(script(tmp_path, line)), deltas.append)

    assert time.monotonic() - began >= 0.08
    assert deltas == [
        Delta("text", 0, "abc"),
        Delta("text", 0, "def"),
        Delta("text", 0, "g"),
        Delta("tool_call", 1, "xyz", "call_0_0", "Bash"),
    ]


async def test_lone_surrogates_of_a_script_are_in_no_reply_and_in_no_piece(tmp_path: Path) -> None:
    call = {"id": "c\ud800", "name": "B\ud800", "input": {"k\ud800": ["\ud800"]}}
    line = {"text": "t\ud800", "thinking": "h\ud800", "tool_calls": [call], "stop_reason": "s\ud800"}
    deltas: list[Delta] = []

    reply = await ScriptedModel().call(asked(script(tmp_path, line)), deltas.append)

    told = repr([reply, deltas])
    assert (told.count("\\ud800"), told.count("\ufffd") > 9) == (0, True)


async def test_pieces_have_eight_characters_by_default(tmp_path: Path) -> None:
    deltas: list[Delta] = []

    await ScriptedModel().call(asked(script(tmp_path, {"text": "0123456789"})), deltas.append)

    assert [delta.text for delta in deltas] == ["01234567", "89"]


async def test_usage_is_as_given_or_estimated_from_the_lengths(tmp_path: Path) -> None:
    file = script(tmp_path, {"text": "abcdef", "usage": {"input_tokens": 77}}, {"text": "abcdefg"})
    request = ModelRequest(file, "123456", (UserMsg("user", "789"),), (), ModelConfig())

    given = await ScriptedModel().call(request, ignore)
    estimated = await ScriptedModel().call(
        ModelRequest(file, "123456", (UserMsg("user", "789"),), (), ModelConfig(), 1), ignore
    )

    assert given.usage == Usage(input_tokens=77, output_tokens=2)
    assert estimated.usage == Usage(input_tokens=3, output_tokens=3)


FAULTS = [
    ({"kind": "rate_limited", "retry_after": 2.5}, "retry_after", 2.5, "rate_limit"),
    ({"kind": "rate_limited"}, "retry", None, "rate_limit"),
    ({"kind": "overloaded"}, "retry", None, "upstream"),
    ({"kind": "server_error"}, "retry", None, "upstream"),
    ({"kind": "connection_reset"}, "retry", None, "connection"),
    ({"kind": "context_overflow"}, "compress", None, "context_overflow"),
    ({"kind": "auth"}, "fall_back", None, "authentication"),
    ({"kind": "invalid_request"}, "never", None, "invalid_request"),
]


@pytest.mark.parametrize(("fault", "kind", "delay", "error_type"), FAULTS)
async def test_each_fault_has_the_verdict_of_the_real_one(
    tmp_path: Path, fault: dict[str, Any], kind: str, delay: float | None, error_type: str
) -> None:
    file = script(tmp_path, {"text": "ok", "faults": [fault]})

    with pytest.raises(Exception, match=r"fault|resets") as caught:
        await ScriptedModel().call(asked(file), ignore)

    action = judge(caught.value)
    assert (action.kind, action.delay_seconds, action.error_type) == (kind, delay, error_type)


async def test_faults_happen_one_per_attempt_and_then_the_reply_comes(tmp_path: Path) -> None:
    file = script(tmp_path, {"text": "at last", "faults": [{"kind": "overloaded"}, {"kind": "server_error"}]})

    for attempt, seen in ((1, "overloaded"), (2, "server_error")):
        with pytest.raises(Exception, match=seen):
            await ScriptedModel().call(asked(file, attempt=attempt), ignore)

    reply = await ScriptedModel().call(asked(file, attempt=3), ignore)
    assert reply.content == (TextBlock(text="at last"),)


EXPECTATIONS = [
    ({"messages": 3}, "expected 3 messages and saw 2"),
    ({"last_contains": "sun"}, "expected 'sun' in the last message and saw 'rain'"),
    ({"system_contains": "rude"}, "expected 'rude' in the system prompt and saw 'Be polite.'"),
    ({"tools": ["tides", "Bash"]}, r"expected the tools \['Bash'\] and saw only \['weather', 'tides'\]"),
]


@pytest.mark.parametrize(("expect", "seen"), EXPECTATIONS)
async def test_an_expectation_that_does_not_hold_says_what_was_seen(
    tmp_path: Path, expect: dict[str, Any], seen: str
) -> None:
    file = script(tmp_path, {"text": "ok", "expect": expect})
    messages = (UserMsg("user", "Go"), returned("c1", "weather", "rain"))

    with pytest.raises(ScriptError, match=seen) as caught:
        await ScriptedModel().call(asked(file, *messages, system="Be polite."), ignore)

    assert judge(caught.value).kind == "never"
    assert "Call 1 of script" in judge(caught.value).sentence


async def test_expectations_that_hold_change_nothing(tmp_path: Path) -> None:
    expect = {"messages": 2, "last_contains": "ai", "system_contains": "polite", "tools": ["tides"]}
    file = script(tmp_path, {"text": "ok", "expect": expect})
    messages = (UserMsg("user", "Go"), returned("c1", "weather", "rain"))

    reply = await ScriptedModel().call(asked(file, *messages, system="Be polite."), ignore)

    assert reply.content == (TextBlock(text="ok"),)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{oops", "Line 2 of script '.*demo.jsonl' is not JSON"),
        ('{"txt": "x"}', "Line 2 of script .*: txt: Extra inputs are not permitted"),
        ('{"faults": [{"kind": "flood"}]}', "Line 2 of script .*: faults.0.kind: Input should be 'rate_limited'"),
        ('["a"]', "Line 2 of script .*: the line: "),
    ],
)
async def test_a_broken_line_is_named_and_never_retried(tmp_path: Path, line: str, complaint: str) -> None:
    file = script(tmp_path, {"text": "fine"}, line)

    with pytest.raises(ScriptError, match=complaint) as caught:
        await ScriptedModel().call(asked(file), ignore)

    assert (judge(caught.value).kind, judge(caught.value).error_type) == ("never", "invalid_request")


async def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"nowhere\.jsonl' can't be read: No such file or directory"):
        await ScriptedModel().call(asked(str(tmp_path / "nowhere.jsonl")), ignore)


def test_a_script_is_parsed_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file = script(tmp_path, {"text": "one"})
    first = read_script(file)

    assert read_script(file) is first

    Path(file).write_text('{"text": "two"}\n')
    os.utime(file, ns=(1, 1))
    assert read_script(file).replies[0].text == "two"
