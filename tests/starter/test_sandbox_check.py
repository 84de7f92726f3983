"""What `longhaul doctor` says of the sandbox."""

import pytest

from starter.cli import checks
from starter.settings import Settings

MISSING = "bubblewrap is not installed (Debian: apt-get install bubblewrap)"


@pytest.mark.parametrize(
    ("sandbox", "problem", "ok", "detail"),
    [
        (
            "off",
            "",
            True,
            "off, commands of Bash are not confined (bubblewrap would work here: LONGHAUL_SANDBOX=bwrap)",
        ),
        ("off", MISSING, True, f"off, commands of Bash are not confined ({MISSING})"),
        ("auto", "", True, "auto: commands of Bash run in bubblewrap, no network"),
        ("auto", MISSING, False, f"auto: commands of Bash run under limits alone, for {MISSING}"),
        ("bwrap", MISSING, False, f"bwrap: commands of Bash are refused, for {MISSING}"),
    ],
)
def test_it_says_what_holds_here(
    monkeypatch: pytest.MonkeyPatch, sandbox: str, problem: str, ok: bool, detail: str
) -> None:
    monkeypatch.setattr(checks, "bwrap_problem", lambda: problem)

    check = checks.sandbox(Settings.model_validate({"sandbox": sandbox}))

    assert (check.ok, check.detail) == (ok, detail)
    assert not check.essential
