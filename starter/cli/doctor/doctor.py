"""`longhaul doctor`: each check on one line, with the line that fixes it; first the current folder's own files, and
the settings that hold in it.
"""

import dataclasses
import shlex
from pathlib import Path

from rich.text import Text

from longhaul.starter.cli import options
from longhaul.starter.cli.doctor.local_checks import KEYS, Check, agents_instructions, on_this_machine
from longhaul.starter.cli.doctor.server_checks import WORKERS_KEYS, on_the_server, on_the_stores
from longhaul.starter.cli.doctor.worker_checks import on_the_mcp_servers, on_the_models, on_the_wiring
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.folder_trust import BadSettingsFile, Untrusted, is_left_out, look
from longhaul.starter.settings import Settings, SettingsOfTheUser
from longhaul.starter.visible import one_line

NAME = "folder"


def settings_here() -> tuple[Settings, Check]:
    """What is wrong with the folder's files ends no examination: it goes on with the user's own settings."""
    try:
        return Settings(), _agents_here()
    except Untrusted as error:
        return SettingsOfTheUser(), _untrusted(error.found.folder)
    except BadSettingsFile as error:
        # That of the user raises here again.
        return SettingsOfTheUser(), Check(NAME, ok=False, detail="its files cannot be used", fix=str(error))


def _agents_here() -> Check:
    if is_left_out():
        return Check(NAME, ok=True, detail="left out (LONGHAUL_TRUST)")
    found = look(Path.cwd())
    if not found.files:
        return Check(NAME, ok=True, detail="sets nothing (neither longhaul.toml nor agents/*.toml)")
    return Check(NAME, ok=True, detail=f"{found.folder} is trusted") if found.is_trusted else _untrusted(found.folder)


def _untrusted(folder: Path) -> Check:
    fix = f"read its longhaul.toml and agents/, then `longhaul trust {shlex.quote(str(folder))}`"
    return Check(NAME, ok=False, detail=f"{folder} is not trusted: commands that need its files are refused", fix=fix)


commands = options.SubjectCommands()


@commands.command()
async def doctor(screen: Screen) -> int:
    """Exit 0 when the essentials are there, of which a server and the stores are some; else 1."""
    settings, of_the_folder = settings_here()
    checks = [of_the_folder, *on_this_machine(settings)]
    checks += agents_instructions()
    checks += [check async for check in on_the_stores(settings)]
    checks += [check async for check in on_the_wiring(settings)]
    checks += [check async for check in on_the_models(settings)]
    checks += [check async for check in on_the_mcp_servers(settings)]
    checks += [check async for check in on_the_server(settings)]
    if any(check.name == WORKERS_KEYS for check in checks):
        # Those of this machine count where a worker starts, and one has started: what it lacks it says itself.
        checks = [check for check in checks if check.ok or check.name not in KEYS]
    fit = all(check.ok for check in checks if check.essential)
    screen.document({"ok": fit, "checks": [dataclasses.asdict(check) for check in checks]})
    for check in checks:
        screen.show_folded(_line(check))
    screen.show(Text("the essentials are there" if fit else "something essential is missing", style="bold"))
    return Exit.DONE if fit else Exit.TROUBLE


def _line(check: Check) -> Text:
    state = ("ok      ", "green") if check.ok else ("missing ", "red" if check.essential else "yellow")
    line = Text.assemble(state, (check.name, "bold"), f": {one_line(check.detail)}")
    return line if check.ok else line.append(f"\n          {one_line(check.fix)}", "dim")
