"""Bash as the model meets it."""

from pathlib import Path

import pytest

from longhaul.activities.shell.environment_variables import scrubbed
from longhaul.activities.tool import NeedsDecision, Place, ToolError
from longhaul.activities.tools.bash import Bash
from longhaul.agent.permission.call_analysis import CallAnalysis
from tests.activities.tools.calls import called, text_of, use


async def test_output_of_both_streams_comes_in_the_order_written(place: Place) -> None:
    assert await text_of(Bash(), place, command="echo one; echo two >&2; echo three") == "one\ntwo\nthree"


async def test_it_is_bash_and_not_sh(place: Place) -> None:
    assert await text_of(Bash(), place, command="a=(7 8 9); echo ${a[1]} ${BASH_VERSION:0:1}") == "8 5"


async def test_a_command_without_output_says_so(place: Place) -> None:
    assert await text_of(Bash(), place, command="true") == "(no output)"


async def test_another_exit_code_than_zero_is_a_failure_that_names_it(place: Place) -> None:
    output = await use(Bash(), place, command="echo not found; exit 44")

    assert output.failed
    assert output.output == "not found\nexit code 44"


async def test_the_working_directory_persists(place: Place) -> None:
    (place.root / "deep").mkdir()

    moved = await use(Bash(), place, command="cd deep")
    assert moved.cwd is not None
    assert moved.cwd == place.root / "deep"

    next_place = Place(place.root, moved.cwd)
    assert await text_of(Bash(), next_place, command="pwd") == str(place.root / "deep")


async def test_the_working_directory_persists_also_when_the_command_fails_or_exits(place: Place) -> None:
    (place.root / "deep").mkdir()

    assert (await use(Bash(), place, command="cd deep && exit 5")).cwd == place.root / "deep"
    assert (await use(Bash(), place, command="set -e; cd deep; false; echo unreached")).cwd == place.root / "deep"


async def test_a_command_that_does_not_move_reports_no_directory(place: Place) -> None:
    assert (await use(Bash(), place, command="(cd / && ls >/dev/null)")).cwd is None


async def test_a_syntax_error_counts_its_lines_as_the_model_wrote_them(place: Place) -> None:
    output = await use(Bash(), place, command="echo fine\nif then")

    assert output.failed
    assert "line 2: syntax error" in str(output.output)


async def test_a_forged_note_that_is_no_directory_moves_nothing(place: Place) -> None:
    assert (await use(Bash(), place, command="echo /nowhere/at/all >&113")).cwd is None


async def test_a_working_directory_that_is_gone_is_replaced_by_the_root(place: Place) -> None:
    lost = Place(place.root, place.root / "removed")

    output = await use(Bash(), lost, command="pwd")

    assert output.output == str(place.root)
    assert output.cwd == place.root


async def test_keys_and_steering_variables_are_not_inherited(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "ANTHROPIC_API_KEY",
        "LONGHAUL_REDIS_URL",
        "TEMPORAL_API_KEY",
        "GIT_DIR",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
    ):
        monkeypatch.setenv(name, "/tmp/sesame-4711")
    monkeypatch.setenv("LC_TIME", "C.UTF-8")

    shown = await text_of(Bash(), place, command="env")

    assert "sesame-4711" not in shown
    assert "LC_TIME=C.UTF-8" in shown
    assert "TERM=dumb" in shown


def test_the_operator_may_grant_a_variable() -> None:
    bare = scrubbed({"HTTPS_PROXY": "http://proxy:3128", "PATH": "/bin"})
    granted = scrubbed({"HTTPS_PROXY": "http://proxy:3128", "PATH": "/bin"}, {"HTTPS_PROXY", "PATH"})

    assert bare == {"PATH": "/bin", "SHELL": "/bin/bash", "TERM": "dumb"}
    assert granted == {**bare, "HTTPS_PROXY": "http://proxy:3128"}


async def test_stdin_is_empty(place: Place) -> None:
    assert await text_of(Bash(), place, command="cat; echo over") == "over"


async def test_a_timeout_keeps_the_output_and_says_how_to_read_it(place: Place) -> None:
    output = await use(Bash(), place, command="echo begun; sleep 30", timeout=400)

    assert output.failed
    assert output.output == "begun\n[killed: not done after its timeout of 400 ms; the output so far is above]"


async def test_background_processes_that_were_killed_are_mentioned(place: Place) -> None:
    shown = await text_of(Bash(), place, command="sleep 30 & echo started")

    assert shown == "started\n[1 background process(es) killed at the end of the call]"


async def test_long_output_keeps_its_head_and_its_tail(place: Place) -> None:
    shown = await text_of(Bash(), place, command="echo FIRST; seq 1 100000; echo LAST")

    assert len(shown) <= 30_000
    assert shown.startswith("FIRST\n1\n2\n")
    assert shown.endswith("\n100000\nLAST")
    assert "588906 bytes in all" in shown


async def test_nul_and_broken_utf8_are_shown_as_replacement_characters(place: Place) -> None:
    assert await text_of(Bash(), place, command=r"printf 'a\0b\xffc'") == "a�b�c"


@pytest.mark.parametrize(
    ("command", "reason"),
    [("echo \0", "NUL"), ("echo \ud800", "not valid Unicode"), ("x" * 100_001, "100001 bytes")],
)
async def test_what_bash_cannot_take_is_refused_in_words(place: Place, command: str, reason: str) -> None:
    with pytest.raises(ToolError, match=reason):
        await Bash().run(called({"command": command}, place, CallAnalysis(cwd=str(place.cwd))))


async def test_a_command_decided_on_for_another_directory_is_not_run(place: Place) -> None:
    with pytest.raises(NeedsDecision) as caught:
        await Bash().run(called({"command": "touch x"}, place, CallAnalysis(cwd="/somewhere/else")))

    assert caught.value.analysis.cwd == str(place.root)
    assert not (place.root / "x").exists()


async def test_a_command_whose_path_leads_elsewhere_by_now_is_not_run(place: Place, tmp_path: Path) -> None:
    (place.root / "inner").mkdir()
    (place.root / "link").symlink_to(place.root / "inner")
    arguments = {"command": "touch link/file"}
    analysis = await Bash().examine(arguments, place)
    (place.root / "link").unlink()
    (place.root / "link").symlink_to(tmp_path)

    with pytest.raises(NeedsDecision):
        await Bash().run(called(arguments, place, analysis))

    assert not (tmp_path / "file").exists()
