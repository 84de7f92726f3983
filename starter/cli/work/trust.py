"""`longhaul trust`: what lies in a folder counts from now on, or no more."""

from pathlib import Path

from longhaul.starter import folder_trust
from longhaul.starter.cli.exit_codes import Exit, Misuse, say, show
from longhaul.starter.visible import one_line


async def decide(folder: Path, *, forget: bool) -> int:
    """Show what counts from now on, or let nothing of it count. Raises Misuse, BadSettingsFile and OSError."""
    folder = _existing(folder)
    if forget:
        folder_trust.forget(folder)
        say(f"longhaul: not trusted any more: {one_line(str(folder))}")
        return Exit.DONE
    found = folder_trust.look(folder)
    if not found.files:
        raise Misuse(f"{str(found.folder)!r} holds neither longhaul.toml nor agents/*.toml: there is nothing to trust")
    show(found)
    found.remember()
    say(f"longhaul: trusted until it changes: {one_line(str(found.folder))}")
    return Exit.DONE


def _existing(given: Path) -> Path:
    if not (folder := given.expanduser()).is_dir():
        raise Misuse(f"there is no folder {str(given)!r}")
    return folder.resolve()
