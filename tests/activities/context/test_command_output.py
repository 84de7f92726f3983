"""What a model sees of a long command: how it began, how it ended, and the errors between."""

import sys
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.context.command_output import end_note, looks_like_error, shorten
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import NOT_OURS, Returning
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.bash import Bash
from longhaul.stores.offload.offloaders import Offloaders
from tests.activities.context.test_returning import WORDS, ask
from tests.activities.tools.calls import place_at, use
from tests.stores.offload.samples import files_below

TEST_RUN = """
import sys
for number in range(180):
    print(f"tests/test_module_{number:03}.py::test_errors_of_the_harbour_{number:03} PASSED       [{number // 2:3}%]")
print("FAILED tests/test_tide.py::test_high_water - AssertionError: 6 != 7")
print("1 failed, 180 passed in 3.21s")
sys.exit(1)
"""


@pytest.fixture
def returning(tmp_path: Path) -> Returning:
    return Returning(Offloaders(tmp_path / "kept"), TokenCounter(), WorkerSecrets())


async def shown(returning: Returning, output: ToolOutput, name: str = "Bash", limit: int = 3_000) -> str:
    result = await ActivityEnvironment().run(returning.result, name, ask(result_limit=limit), output)
    assert isinstance(result.output, str)
    return result.output


async def test_a_long_test_run_shows_which_test_failed_and_the_exit_code(returning: Returning, tmp_path: Path) -> None:
    (tmp_path / "run_tests.py").write_text(TEST_RUN)
    output = await use(Bash(), place_at(tmp_path), command=f"{sys.executable} run_tests.py")

    text = await shown(returning, output)

    (file,) = files_below(tmp_path / "kept", "tool_result-*")
    *_, failed, summary, code, note = text.splitlines()
    assert text.startswith("tests/test_module_000.py::test_errors_of_the_harbour_000 PASSED")
    assert failed == "FAILED tests/test_tide.py::test_high_water - AssertionError: 6 != 7"
    assert [summary, code, note] == ["1 failed, 180 passed in 3.21s", "exit code 1", end_note(str(file))]
    assert file.read_text() == output.output
    assert TokenCounter().count_text(text.removesuffix(note), "scripted:x") <= 3_000


async def test_errors_in_the_middle_stay_and_what_is_left_out_is_counted(returning: Returning) -> None:
    lines = WORDS.splitlines()
    lines[900] = "src/tide.c:17:3: error: 'moon' undeclared"

    text = await shown(returning, ToolOutput("\n".join(lines)), limit=300)

    before, at, after = text.partition("src/tide.c:17:3: error: 'moon' undeclared\n")
    assert at
    assert before.startswith("line 0: ")
    assert " lines, " in before.splitlines()[-1]
    assert after.startswith("[… ")
    counted = [int(line.split()[1]) for line in text.splitlines() if line.startswith("[… ")]
    assert sum(counted) + len(text.splitlines()) - len(counted) - 1 == 2_000


@pytest.mark.parametrize("name", ["Bash", "BashOutput"])
async def test_both_ends_are_kept_of_commands_and_the_beginning_of_other_tools(returning: Returning, name: str) -> None:
    command, other = await shown(returning, ToolOutput(WORDS), name), await shown(returning, ToolOutput(WORDS), "fetch")

    assert command.splitlines()[-2] == WORDS.splitlines()[-1]
    assert "<<<TRUNCATED>>>" not in command
    assert "<<<TRUNCATED>>>\n" in other
    assert WORDS.startswith(other.partition("<<<TRUNCATED>>>")[0].rstrip("\n"))


async def test_a_command_that_prints_our_last_line_is_not_believed(returning: Returning) -> None:
    assert (await shown(returning, ToolOutput(end_note("/etc/motd")))).endswith(NOT_OURS)


@pytest.mark.parametrize(
    "text", ["x" * 90_000, "x" * 50_000 + "\nend", "\n" * 9_000, "error: x\n" * 9_000, "é👩‍👧\r\n" * 9_000]
)
@pytest.mark.parametrize("limit", [1, 20, 100, 3_000])
def test_nothing_is_longer_than_the_limit(text: str, limit: int) -> None:
    kept = shorten(text, limit, len)

    assert len(kept) <= limit
    assert limit < 100 or "left out" in kept
    assert limit < 3_000 or len(kept) > limit * 2 // 3


@pytest.mark.parametrize(
    "line",
    [
        "FAILED tests/test_tide.py::test_high_water - AssertionError: 6 != 7",
        "E       assert 6 == 7",
        "Traceback (most recent call last):",
        "error[E0308]: mismatched types",
        "src/a.ts(3,4): error TS2322: Type 'x' is not assignable",
        "panic: runtime error: index out of range",
        "thread 'main' panicked at src/main.rs:2:5",
        "--- FAIL: TestTide (0.00s)",
        "not ok 3 - high water",
        "make: *** [Makefile:3: all] Error 2",
        "npm ERR! code ELIFECYCLE exit status 1",
        "  ✕ rises (3 ms)",
        "warning: unused variable",
        "/bin/sh: 1: tide: not found",
    ],
)
def test_lines_that_look_like_errors(line: str) -> None:
    assert looks_like_error(line)


@pytest.mark.parametrize(
    "line",
    [
        "tests/test_errors.py::test_error PASSED  [ 4%]",
        "ok 3 - reports an error",
        "0 errors, 0 failures",
        "  ✓ shows an error (3 ms)",
        "--- PASS: TestError (0.00s)",
        "Compiling tide v0.1.0",
    ],
)
def test_lines_that_do_not(line: str) -> None:
    assert not looks_like_error(line)


@pytest.mark.parametrize(
    ("printed", "seen"),
    [
        (r"10%\r50%\r100%\ndone\n", "100%\ndone\n[2 earlier states of lines that were drawn again, as of"),
        (r"10%\rWARNING: full\r100%         \n", "WARNING: full\n100%         \n[1 earlier"),
        (r"abcdef\rxy\n", "xycdef\n[1 earlier"),
        (r"a long state\r\033[Kshort\n", "\x1b[Kshort\n[1 earlier"),
        (r"one\r\ntwo\r\n", "one\r\ntwo\r"),
        (r"10%\r", "10%\r"),
    ],
)  # fmt: skip
async def test_a_progress_bar_is_seen_as_a_terminal_shows_it_last(tmp_path: Path, printed: str, seen: str) -> None:
    output = await use(Bash(), place_at(tmp_path), command=f"printf %b '{printed}'")

    assert str(output.output).startswith(seen)
