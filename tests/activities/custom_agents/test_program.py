"""The interpreter of programs: what a program may do, and that it does the same each time."""

import stat
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.custom_agents.custom_agent import CallResult, CustomAgentCall, CustomAgentSession
from longhaul.activities.custom_agents.next_step import (
    CustomAgentAnswer,
    CustomAgentFailed,
    Done,
    describe_step,
    digest,
    next_of,
)
from longhaul.activities.custom_agents.program import ProgramAgent
from longhaul.agent.values.conversation.messages import UserMsg


def step(program: str, *done: Done) -> Any:
    return next_of(ProgramAgent, UserMsg("lamp", program), CustomAgentSession(), "program", done)


def played(program: str, **results: CallResult) -> tuple[str, list[tuple[str, str]]]:
    """What it comes to, and its calls, each answered by the result of its tool."""
    done, calls = list[Done](), list[tuple[str, str]]()
    while not isinstance(asked := step(program, *done), CustomAgentAnswer):
        came = tuple(results.get(call.tool, CallResult(f"{call.tool} {call.arguments}")) for call in asked)
        calls += [(call.tool, call.arguments) for call in asked]
        done.append(Done(digest(asked), describe_step(asked), came))
    return str(asked.value), calls


def failure(program: str) -> str:
    with pytest.raises(CustomAgentFailed) as failed:
        step(program)
    return str(failed.value)


def test_it_prints_and_ends_with_its_last_value() -> None:
    assert played("print(1 + 1)\n{'a': [1]}") == ("2\n{'a': [1]}", [])
    assert played("'words'")[0] == "words"
    assert played("x = 1")[0] == "(the program printed nothing)"
    assert played("import json, re, math\njson.dumps({'a': math.floor(2.5)})")[0] == '{"a": 2}'


def test_tools_are_functions_and_a_failed_call_can_be_caught() -> None:
    program = """
try:
    Read(file_path="a")
except RuntimeError as error:
    print(error)
call("mcp__notion__API-get-user", id=7)
"""
    said, calls = played(program, Read=CallResult("no such file", "error"))

    assert said.splitlines()[0] == "Read: error: no such file"
    assert calls == [("Read", '{"file_path":"a"}'), ("mcp__notion__API-get-user", '{"id":7}')]


def test_calls_together_are_one_step() -> None:
    program = 'together([("fetch", {"page": n}) for n in range(3)])'

    asked = step(program)

    assert [call.tool for call in asked] == ["fetch"] * 3
    assert played(program)[0].count("fetch") == 3
    assert played("together([])")[0] == "[]"


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("Read('a')", "Read() takes arguments by name alone"),
        ("together(7)", "together takes one list of pairs"),
        ("together([('Read', 7)])", "together takes one list of pairs"),
        ("together([('Read', {})] * 300)", "at most 256 calls"),
        ("Read(file_path=b'x')", "can't be written as JSON"),
        ("await Read(file_path='a')", "can't be awaited"),
        ("open('/etc/passwd')", "PermissionError"),
        ("import os\nos.environ['HOME']", "not supported"),
        ("import socket", "ModuleNotFoundError"),
        ("import subprocess", "ModuleNotFoundError"),
        ("[0] * 10**10", "MemoryError"),
        ("def f(): f()\nf()", "RecursionError"),
        ("print(1)\n1 / 0", "ZeroDivisionError: division by zero\nIt had printed:\n1"),
        ("def", "SyntaxError"),
    ],
)
def test_what_it_may_not_do_fails_with_a_reason(program: str, why: str) -> None:
    with pytest.raises(CustomAgentFailed) as failed:
        played(program)

    assert why in str(failed.value)


def test_an_endless_program_is_ended() -> None:
    assert "time limit exceeded" in failure("while True: pass")


def test_no_process_of_the_same_user_can_read_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert played("1 + 1")[0] == "2"
    assert played("1 + 2")[0] == "3"

    (copy,) = (tmp_path / "longhaul").iterdir()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o100, "Linux hides what runs from a file that can't be read"
    (tmp_path / "full").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    assert "its interpreter can't be copied" in failure("1")


def test_clock_and_chance_are_the_same_each_time_and_sleep_takes_none() -> None:
    program = "import random, time, datetime\ntime.sleep(9)\n(random.random(), time.time(), datetime.datetime.now())"

    assert played(program) == played(program)
    assert "2026, 1, 1" in played(program)[0]


def test_what_is_printed_without_end_is_cut() -> None:
    said, _ = played("for n in range(9_000): print('fog', n)")

    assert len(said) < 31_000
    assert said.endswith("[cut after 30000 characters]")
    assert "MemoryError" in failure("while True: print('x' * 10_000)")


def test_of_calls_that_are_recorded_none_is_asked_again() -> None:
    program = "for n in range(9): fetch(page=n)"
    first = step(program)

    second = step(program, Done(digest(first), describe_step(first), (CallResult("fog"),)))

    assert first == (CustomAgentCall("fetch", '{"page":0}'),)
    assert second == (CustomAgentCall("fetch", '{"page":1}'),)
