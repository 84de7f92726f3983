"""`longhaul keys`: a new master key, and all keys of sessions wrapped with it. No server is asked."""

import base64
import secrets

from rich.text import Text

from longhaul.starter.cli.exit_codes import Exit, Misuse
from longhaul.starter.cli.terminal.screen import Screen
from longhaul.starter.reach.connection import keyring_of
from longhaul.starter.settings import Settings
from longhaul.stores.keys.keyring import HOW, KEY_BYTES, Masters


async def new(name: str) -> int:
    """Raises BadKeysSetting for a name that can't be one."""
    spelt = f"{name}:{base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()}"
    Masters(spelt)
    print(spelt)
    return Exit.DONE


async def rewrap(screen: Screen) -> int:
    """Raises KeysUnavailable; what was wrapped anew by then stays so."""
    keys = keyring_of(Settings())
    if keys is None:
        raise Misuse(f"LONGHAUL_MASTER_KEY is not set, so nothing is encrypted here; {HOW}")
    try:
        changed, every = await keys.rewrap()
    finally:
        await keys.close()
    screen.show(Text(f"{changed} of {every} keys were wrapped anew, in {keys.place}"))
    screen.document({"rewrapped": changed, "keys": every})
    return Exit.DONE
