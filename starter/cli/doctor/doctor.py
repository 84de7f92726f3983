"""`longhaul doctor`: each check on one line, with the line that mends it."""

import dataclasses

from rich.text import Text

from longhaul.starter.cli.doctor.folder import settings_here
from longhaul.starter.cli.doctor.local_checks import KEYS, Check, on_this_machine
from longhaul.starter.cli.doctor.mcp import on_the_mcp_servers
from longhaul.starter.cli.doctor.models import on_the_models
from longhaul.starter.cli.doctor.server import WORKERS_KEYS, on_the_server
from longhaul.starter.cli.doctor.stores import on_the_stores
from longhaul.starter.cli.doctor.wiring import on_the_wiring
from longhaul.starter.cli.exit_codes import Exit
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.visible import one_line


async def doctor(screen: Screen) -> int:
    """Exit code 0 when the essentials are there, of which a server and the stores are some; else 1."""
    settings, of_the_folder = settings_here()
    checks = [of_the_folder, *on_this_machine(settings)]
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
    return line if check.ok else line.append(f"\n          {one_line(check.mend)}", "dim")
