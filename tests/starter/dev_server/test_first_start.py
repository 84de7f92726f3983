"""The first start: what long work shows, and how a checkout's environment is made; the installers are stand-ins."""

import re
import sys
from pathlib import Path

import pytest

from longhaul.starter.dev_server import checkout
from longhaul.starter.dev_server.checkout import NotInstalled, Packages, make, pins, uv_settings
from longhaul.starter.dev_server.processes import run_watched, run_within
from longhaul.starter.dev_server.progress import LinesCounted, Progress

ROOT = Path(__file__).parents[3]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def lines_within(seconds: float) -> list[str]:
    """What a log shows of work that takes so long."""
    clock, said = Clock(), list[str]()
    progress = Progress(said.append, "building", painted=False, clock=clock)
    while clock.now < 100 + seconds:
        clock.now += 0.5
        progress.tick()
    progress.end()
    return said


def test_a_log_hears_of_long_work_every_ten_seconds_at_first_and_then_less_often() -> None:
    assert lines_within(9) == []
    assert lines_within(31) == ["building: 10 s", "building: 20 s", "building: 30 s"]
    assert lines_within(3600)[-1] == "building: 51 min"


def test_the_log_of_a_slow_first_start_has_at_most_forty_lines_before_the_story() -> None:
    stages = 7  # making, installing twice, installed, fetching, building, and a blank one

    assert len(lines_within(300)) + len(lines_within(20)) + len(lines_within(1200)) + stages <= 40


def test_a_terminal_shows_a_bar_that_is_cut_to_its_width_and_taken_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "48")
    clock, said = Clock(), list[str]()
    progress = Progress(said.append, "packages", total=90, painted=True, clock=clock)
    progress.done = 45
    progress.tick()
    assert capsys.readouterr().out == ""

    clock.now += 6
    progress.tick()
    progress.end()

    assert capsys.readouterr().out == "\r\x1b[Kpackages: [############------------] 45 of 90, \r\x1b[K"
    assert said == []


def test_the_packages_that_go_names_are_counted_and_never_more_than_all() -> None:
    clock, said = Clock(), list[str]()
    progress = LinesCounted(said.append, "packages compiled", total=2, painted=False, clock=clock)
    printed = "echo 'go: downloading x v1'; for name in internal/abi runtime net; do echo $name; done"
    status, heard = run_watched(30, ["sh", "-c", printed], {}, progress, whole=True)
    clock.now += 11
    progress.tick()

    assert (status, heard[1:]) == (0, ["internal/abi", "runtime", "net"])
    assert said == ["packages compiled: 2 of about 2, 11 s"]


def test_a_command_complains_with_its_last_line_while_it_is_watched() -> None:
    said = list[str]()

    complaint = run_within(
        30, ["sh", "-c", "echo one; echo two >&2; echo three >&2; exit 4"], {}, Progress(said.append, "")
    )

    assert complaint == "three"


def test_pips_own_lines_are_counted_and_those_for_other_systems_left_out(tmp_path: Path) -> None:
    lock = tmp_path / "some.lock"
    lock.write_text(
        "anyio==4.11.0 \\\n    --hash=sha256:00\ncolorama==0.4.6 ; sys_platform == 'win32' \\\nrich[x]==15.0\n"
    )
    site = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (site / "pip-26.dist-info").mkdir()
    packages = Packages(print, lock, tmp_path / "env")

    assert list(pins(lock)) == ["anyio==4.11.0", "colorama==0.4.6", "rich[x]==15.0"]
    for line in (
        "Ignoring colorama: markers 'sys_platform == \"win32\"' don't match your environment",
        "Requirement already satisfied: anyio==4.11.0 in ./x (from -r some.lock (line 1)) (4.11.0)",
        "Requirement already satisfied: idna in ./x (from anyio==4.11.0->-r some.lock (line 1)) (3.11)",
        "Collecting rich==15.0 (from -r some.lock (line 4))",
    ):
        packages.heard(line)
    assert (packages.work, packages.done, packages.total) == ("packages fetched", 1, 1)

    (site / "rich-15.dist-info").mkdir()
    packages.heard("Installing collected packages: rich")
    assert (packages.work, packages.done) == ("packages installed", 1)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose environment has a python that notes what it is asked, and is chatty."""
    (tmp_path / "some.lock").write_text("anyio==4.11.0 \\\n    --hash=sha256:00\n")
    stand_in(tmp_path / "env" / "bin" / "python", tmp_path / "asked", status=0)
    monkeypatch.setenv("PATH", f"{tmp_path}/tools:/usr/bin:/bin")
    return tmp_path


def stand_in(program: Path, notes: Path, status: int) -> None:
    program.parent.mkdir(parents=True)
    chat = "for line in $(seq 300); do echo chatter $line; done; echo 'no such wheel' >&2"
    program.write_text(f'#!/bin/sh\necho "{program.name} $*" >> {notes}\n{chat}\nexit {status}\n')
    program.chmod(0o755)


def made(desk: Path) -> list[str]:
    said = list[str]()
    make(desk / "env", desk / "some.lock", said.append)
    return [re.sub(r"\d+ s$", "N s", line) for line in said]


def test_without_uv_pip_installs_by_hash_and_says_two_lines(desk: Path) -> None:
    assert made(desk) == ["installing the 1 packages of some.lock with pip", "installed in N s"]

    first, second = (desk / "asked").read_text().splitlines()
    assert first.startswith("python -m pip install")
    assert first.endswith(f"--require-hashes -r {desk}/some.lock")
    assert second.endswith("--no-build-isolation --no-deps -e .")


def test_uv_is_taken_where_it_is_on_path(desk: Path) -> None:
    stand_in(desk / "tools" / "uv", desk / "asked", status=0)

    assert made(desk)[0] == "installing the 1 packages of some.lock with uv"
    assert [line.split()[0] for line in (desk / "asked").read_text().splitlines()] == ["uv", "uv"]
    assert "--require-hashes" in (desk / "asked").read_text()


def test_where_uv_fails_pip_is_tried(desk: Path) -> None:
    stand_in(desk / "tools" / "uv", desk / "asked", status=2)

    said = made(desk)

    assert said[1].startswith("uv could not: ")
    assert said[2:] == ["installing the 1 packages of some.lock with pip", "installed in N s"]


def test_what_the_last_installer_said_is_shown_only_when_it_failed(
    desk: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk / "env" / "bin" / "python").unlink()
    (desk / "env" / "bin").rmdir()
    stand_in(desk / "env" / "bin" / "python", desk / "asked", status=1)
    monkeypatch.setattr(sys, "argv", ["checkout", str(desk / "env"), str(desk / "some.lock")])

    assert checkout.main() == 1

    shown = capsys.readouterr()
    assert "chatter" not in shown.out
    assert "no such wheel" in shown.err
    assert len(shown.err.splitlines()) == checkout.SHOWN_LINES + 1
    with pytest.raises(NotInstalled, match="exit status 1"):
        made(desk)


def test_uv_gets_pips_settings_of_where_packages_lie(tmp_path: Path) -> None:
    of_pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": f"{tmp_path} /not/there", "PIP_INDEX_URL": "https://a.example/"}

    assert uv_settings(of_pip) == {
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(tmp_path),
        "UV_DEFAULT_INDEX": "https://a.example/",
    }
    assert uv_settings(of_pip | {"UV_DEFAULT_INDEX": "https://b.example/"}).get("UV_DEFAULT_INDEX") is None
    assert uv_settings({"PIP_FIND_LINKS": "/not/there"}) == {}


def test_the_demo_installs_less_than_half_of_what_contributors_need() -> None:
    runtime, whole = (set(pins(ROOT / name)) for name in ("requirements.lock", "requirements-dev.lock"))

    assert runtime < whole
    assert len(runtime) < len(whole) / 2
