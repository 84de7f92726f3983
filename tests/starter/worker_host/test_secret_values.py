"""Where a worker's secrets come from, and that no complaint about them holds a value."""

from pathlib import Path

import pytest

from longhaul.starter.cli.doctor.local_checks import secrets
from longhaul.starter.settings import Settings
from longhaul.starter.worker_host.secret_values import BadSecrets, read_secrets

TOKEN = "open-sesame-4711"


def file_of(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "secrets.toml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_secrets_come_from_variables_and_from_a_file(tmp_path: Path) -> None:
    settings = Settings(secrets="NPM_TOKEN, ", secrets_file=file_of(tmp_path, f'PEM = """a\n{TOKEN}"""\nA = "{TOKEN}"'))
    environment = {"LONGHAUL_SECRET_A": TOKEN, "LONGHAUL_SECRETS": "x", "NPM_TOKEN": "npm_4711", "HOME": "/"}

    assert read_secrets(settings, environment) == {"A": TOKEN, "NPM_TOKEN": "npm_4711", "PEM": f"a\n{TOKEN}"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o700, 0o644])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(BadSecrets, match="chmod 600"):
        read_secrets(Settings(secrets_file=file_of(tmp_path, f'A = "{TOKEN}"', mode)), {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"A = {TOKEN}", "is not TOML"),
        ("A = 471147114711", "A must be text in quotes"),
        (f'A = "{TOKEN}"\nB = ["{TOKEN}"]', "B must be text in quotes"),
        (f'A = "{TOKEN}x"', "set twice"),
    ],
)
def test_a_bad_file_is_named_without_its_values(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(BadSecrets, match=why) as refused:
        read_secrets(Settings(secrets_file=file_of(tmp_path, text)), {"LONGHAUL_SECRET_A": TOKEN})

    assert TOKEN not in str(refused.value)
    assert "4711" not in str(refused.value).replace(str(tmp_path), "")


def test_a_folder_a_missing_file_and_a_missing_variable_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSecrets, match="can't be read"):
        read_secrets(Settings(secrets_file=tmp_path), {})
    with pytest.raises(BadSecrets, match="can't be read: FileNotFoundError"):
        read_secrets(Settings(secrets_file=tmp_path / "none"), {})
    with pytest.raises(BadSecrets, match="NPM_TOKEN"):
        read_secrets(Settings(secrets="NPM_TOKEN"), {})


def test_doctor_lists_names_and_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGHAUL_SECRET_GATE_KEY", TOKEN)
    fine = secrets(Settings(secrets_file=file_of(tmp_path, f'A = "{TOKEN}"')))
    bad = secrets(Settings(secrets_file=file_of(tmp_path, "", 0o644)))

    assert (fine.ok, fine.detail) == (True, "A, GATE_KEY")
    assert (bad.ok, "chmod 600" in bad.fix) == (False, True)
    assert TOKEN not in f"{fine}{bad}"
