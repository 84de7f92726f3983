"""`longhaul trust`: what lies in a folder counts from now on, or no more."""

from pathlib import Path
from typing import Annotated

import typer

from longhaul.starter import folder_trust
from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse, say, show
from longhaul.starter.visible import one_line

commands = options.SubjectCommands()


@commands.command()
async def trust(
    folder: Annotated[Path, typer.Argument(help="Default: the current folder.")] = Path(),
    *,
    forget: Annotated[bool, typer.Option("--forget", help="Take it back.")] = False,
) -> int:
    """Example: longhaul trust ~/src/shop"""
    given, folder = folder, folder.expanduser()
    if not folder.is_dir():
        raise Misuse(f"there is no folder {str(given)!r}")
    folder = folder.resolve()
    if forget:
        folder_trust.forget(folder)
        say(f"longhaul: no longer trusted: {one_line(str(folder))}")
        return Exit.DONE
    found = folder_trust.look(folder)
    if not found.files:
        raise Misuse(
            f"{str(found.folder)!r} contains neither longhaul.toml nor agents/*.toml: there is nothing to trust"
        )
    show(found)
    found.remember()
    say(f"longhaul: trusted until it changes: {one_line(str(found.folder))}")
    return Exit.DONE
