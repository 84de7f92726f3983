"""`longhaul doctor`: each check on one line, with the line that mends it."""

import dataclasses

from rich.text import Text

from starter.cli.checks import Check, on_this_machine
from starter.cli.leaving import Exit
from starter.cli.screen import Screen
from starter.cli.server_checks import on_the_server
from starter.cli.store_checks import on_the_stores
from starter.cli.wiring_checks import on_the_wiring
from starter.settings import Settings
from starter.visible import one_line


async def doctor(screen: Screen) -> int:
    """Exit code 0 when the essentials are there: what is marked so, and a server or the means to start one."""
    settings = Settings()
    checks = list(on_this_machine(settings))
    checks += [check async for check in on_the_stores(settings)]
    checks += [check async for check in on_the_wiring(settings)]
    checks += [check async for check in on_the_server(settings)]
    fit = is_fit(checks)
    screen.document({"ok": fit, "checks": [dataclasses.asdict(check) for check in checks]})
    for check in checks:
        screen.show(_line(check))
    screen.show(Text("the essentials are there" if fit else "something essential is missing", style="bold"))
    return Exit.DONE if fit else Exit.TROUBLE


def is_fit(checks: list[Check]) -> bool:
    ok = {check.name: check.ok for check in checks}
    return all(check.ok for check in checks if check.essential) and (ok["server"] or ok["temporal cli"])


def _line(check: Check) -> Text:
    state = ("ok      ", "green") if check.ok else ("missing ", "red" if check.essential else "yellow")
    line = Text.assemble(state, (check.name, "bold"), f": {one_line(check.detail)}")
    return line if check.ok else line.append(f"\n          {one_line(check.mend)}", "dim")
