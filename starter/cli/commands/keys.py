"""`longhaul keys`: a new master key, and all keys of sessions wrapped with it. No server is asked."""

import base64
import secrets
from typing import Annotated

import typer
from rich.text import Text

from longhaul.starter.cli import options
from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.connection.connect import keyring_of
from longhaul.starter.settings import Settings
from longhaul.stores.keys.keyring import HOW, KEY_BYTES, Masters

group = options.SubjectCommands(no_args_is_help=True)


@group.command()
async def new(
    name: Annotated[str, typer.Argument(help="Name of the key; a new name for each key.")] = "1",
) -> int:
    """Print a new master key for LONGHAUL_MASTER_KEY. Longhaul does not store it: keep it where you keep passwords.

    Example: longhaul keys new 2026
    """
    spelt = f"{name}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"
    Masters(spelt)  # raises BadKeysSetting for a name that can't be one
    print(spelt)
    return Exit.DONE


@group.command()
async def rewrap(screen: Screen) -> int:
    """Wrap the keys of all sessions with the first key of LONGHAUL_MASTER_KEY; then the others may be left out."""
    keys = keyring_of(Settings())
    if keys is None:
        raise Misuse(f"LONGHAUL_MASTER_KEY is not set, so nothing is encrypted here; {HOW}")
    try:
        changed, every = await keys.rewrap()
    finally:
        await keys.close()
    screen.show(Text(f"{changed} of {every} keys were wrapped again, in {keys.place}"))
    screen.document({"rewrapped": changed, "keys": every})
    return Exit.DONE
