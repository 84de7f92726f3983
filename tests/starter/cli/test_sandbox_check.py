"""What `longhaul doctor` says of the sandbox."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from longhaul.activities.process.sandbox import bwrap_problem
from longhaul.starter.cli.doctor import local_checks
from longhaul.starter.settings import Settings

MISSING = "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
BROKEN = "bubblewrap does not work here: bwrap: No permissions to create new namespace"


@pytest.fixture
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """One on which bubblewrap works, is missing, or is there in vain."""
    if request.param == "":
        request.getfixturevalue("bubblewrap")
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    if request.param == BROKEN:
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
    bwrap_problem.cache_clear()
    yield request.param
    bwrap_problem.cache_clear()


NOT_CONFINED = "off: commands that run without approval have no sandbox"


@pytest.mark.parametrize(
    ("sandbox", "machine", "ok", "detail"),
    [
        (
            "off",
            "",
            True,
            f"{NOT_CONFINED} (bubblewrap would work here: LONGHAUL_SANDBOX=proven)",
        ),
        ("off", MISSING, True, f"{NOT_CONFINED} ({MISSING})"),
        (
            "proven",
            "",
            True,
            "proven: commands that run without approval run in bubblewrap; allowed commands run outside it",
        ),
        (
            "all",
            "",
            True,
            "all: commands that run without approval run in bubblewrap; so does everything else, no network",
        ),
        ("proven", MISSING, False, f"proven: even commands that only read ask, for {MISSING}"),
        ("proven", BROKEN, False, f"proven: even commands that only read ask, for {BROKEN}"),
        ("all", BROKEN, False, f"all: no Bash command runs, for {BROKEN}"),
    ],
    indirect=["machine"],
)
def test_it_says_what_holds_here(sandbox: str, machine: str, ok: bool, detail: str) -> None:
    check = local_checks.sandbox(Settings.model_validate({"sandbox": sandbox}))

    assert (check.ok, check.detail) == (ok, detail)
    assert bool(check.fix) is not ok
    assert not check.essential


def test_commands_that_run_unasked_are_held_unless_the_operator_says_otherwise() -> None:
    assert Settings.model_fields["sandbox"].default == "proven"
