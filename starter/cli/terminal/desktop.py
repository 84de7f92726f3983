"""Desktop notifications by the terminal itself: whoever looks elsewhere is told that something waits for them."""

from collections.abc import Mapping
from typing import Literal

Notices = Literal["auto", "osc9", "osc777", "off"]
LONGEST = 120
_OSC9 = frozenset({"iterm.app", "wezterm", "ghostty", "warpterminal"})
"""Names that terminals give themselves in TERM_PROGRAM."""
_OSC777_TERMS = ("foot", "rxvt")
"""How TERM begins in others."""
_STEERS = str.maketrans({";": ",", "<": "(", ">": ")", "&": "+"})
"""`;` parts the fields of OSC 777, and some desktops read a notification as markup."""


def notification(text: str, notices: Notices, environment: Mapping[str, str]) -> str:
    """What makes this terminal tell the desktop; empty where it does not know how, and a terminal that knows neither
    might print it. `text`: on one line; of what could steer a terminal nothing is left in it."""
    said = "".join(char for char in text.translate(_STEERS) if char.isprintable())[:LONGEST]
    match _kind(environment) if notices == "auto" else notices:
        case "osc9":
            # Behind `9;` a number is another command of some terminals, so no name stands there.
            return f"\x1b]9;Longhaul: {said}\x07"
        case "osc777":
            return f"\x1b]777;notify;Longhaul;{said}\x07"
        case _:
            return ""


def _kind(environment: Mapping[str, str]) -> Notices:
    # tmux and screen keep the sequence to themselves, and the variables may be those of the terminal around them.
    if environment.get("TMUX") or environment.get("STY"):
        return "off"
    term = environment.get("TERM", "")
    if environment.get("TERM_PROGRAM", "").lower() in _OSC9 or term == "xterm-kitty":
        return "osc9"
    return "osc777" if term.startswith(_OSC777_TERMS) else "off"
