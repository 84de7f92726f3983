"""Hostile text can't steer a terminal or hide in it."""

import pytest

from longhaul.starter.visible import harmless, one_line, visible


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("rm -rf /\rls", "rm -rf /\\rls"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x08b\x00\x7f", "a\\x08b\\x00\\x7f"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("left\u2066right", "left\\u2066right"),
        ("half \ud800", "half \\ud800"),
        ("two\u2028lines", "two\\u2028lines"),
    ],
)
def test_what_a_terminal_would_obey_is_an_escape_everywhere(hostile: str, shown: str) -> None:
    assert harmless(hostile) == shown
    assert visible(hostile) == shown


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("ad\u200bmin", "ad\\u200bmin"),
        ("git\u00adhub", "git\\xadhub"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\ufeffstart", "\\ufeffstart"),
    ],
)
def test_what_hides_is_shown_to_whoever_decides(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


def test_plain_text_of_every_script_stays_as_it_is() -> None:
    plain = "Grüße, 世界, שלום\n\tठीक है 👩\u200d🚀"

    assert harmless(plain) == plain


def test_one_line_is_one_line() -> None:
    assert one_line("first\n\n  second\tthird\r") == "first second third\\r"
