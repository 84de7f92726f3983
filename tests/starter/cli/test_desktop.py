"""Whoever looks elsewhere is told by the terminal, where it is known how."""

import pytest

from longhaul.starter.cli.terminal.screen import LONGEST, Notifications, notification

IN_GHOSTTY = {"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (IN_GHOSTTY, "\x1b]9;Longhaul: night waits\x07"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "\x1b]9;Longhaul: night waits\x07"),
        ({"TERM": "xterm-kitty"}, "\x1b]9;Longhaul: night waits\x07"),
        ({"TERM": "foot-extra"}, "\x1b]777;notify;Longhaul;night waits\x07"),
        ({"TERM": "rxvt-unicode-256color"}, "\x1b]777;notify;Longhaul;night waits\x07"),
        ({"TERM": "xterm-256color"}, ""),
        ({"TERM": "linux"}, ""),
        (IN_GHOSTTY | {"TMUX": "/tmp/tmux-0/default,1,0"}, ""),
        ({"TERM": "foot", "STY": "1.pts"}, ""),
        ({}, ""),
    ],
)
def test_a_terminal_is_told_as_it_understands_it(environment: dict[str, str], told: str) -> None:
    assert notification("night waits", "auto", environment) == told


@pytest.mark.parametrize(
    ("notifications", "told"),
    [("off", ""), ("osc9", "\x1b]9;Longhaul: a\x07"), ("osc777", "\x1b]777;notify;Longhaul;a\x07")],
)
def test_what_is_set_goes_before_what_is_known(notifications: Notifications, told: str) -> None:
    assert notification("a", notifications, IN_GHOSTTY) == told


def test_no_name_steers_the_terminal_or_the_desktop() -> None:
    hostile = "a\x07\x1b]52;c;cm0=\x1b\\\x9c\u202e<b>&amp;\nz"

    assert notification(hostile, "osc777", {}) == "\x1b]777;notify;Longhaul;a]52,c,cm0=\\(b)+amp,z\x07"
    assert len(notification("x" * 9_000, "osc9", {})) == len("\x1b]9;Longhaul: \x07") + LONGEST
