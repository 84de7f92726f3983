"""`longhaul doctor` on the current folder's own files, and the settings that hold in it."""

import shlex
from pathlib import Path

from longhaul.starter.cli.doctor.local_checks import Check
from longhaul.starter.settings import Settings, SettingsOfTheUser
from longhaul.starter.trust import BadSettingsFile, Untrusted, is_left_out, look

NAME = "folder"


def settings_here() -> tuple[Settings, Check]:
    """What is wrong with the folder's files ends no examination: it goes on with the user's own settings."""
    try:
        return Settings(), _agents_here()
    except Untrusted as error:
        return SettingsOfTheUser(), _untrusted(error.found.folder)
    except BadSettingsFile as error:
        # That of the user raises here again.
        return SettingsOfTheUser(), Check(NAME, ok=False, detail="its files can't be used", mend=str(error))


def _agents_here() -> Check:
    if is_left_out():
        return Check(NAME, ok=True, detail="left out (LONGHAUL_TRUST)")
    found = look(Path.cwd())
    if not found.files:
        return Check(NAME, ok=True, detail="sets nothing (neither longhaul.toml nor agents/*.toml)")
    return Check(NAME, ok=True, detail=f"{found.folder} is trusted") if found.is_trusted else _untrusted(found.folder)


def _untrusted(folder: Path) -> Check:
    mend = f"look into its longhaul.toml and agents/, then `longhaul trust {shlex.quote(str(folder))}`"
    return Check(NAME, ok=False, detail=f"{folder} is not trusted: commands that need its files are refused", mend=mend)
