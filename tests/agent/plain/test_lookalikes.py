"""What hides in a text, or poses as something else, is named to whoever decides on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhaul.agent.plain.text import told_apart


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("safe\u202egnp.exe", "safe⟨U+202E⟩gnp.exe"),
        ("ls\u200b -la", "ls⟨U+200B⟩ -la"),
        ("rm -rf /\rls", "rm -rf /⟨U+000D⟩ls"),
        ("\x1b[2Jgone", "⟨U+001B⟩[2Jgone"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("safe\u2800\U000e0100", "safe⟨U+2800⟩⟨U+E0100⟩"),
        ("世\U000e01ef界\ufe00\u180b", "世⟨U+E01EF⟩界⟨U+FE00⟩⟨U+180B⟩"),
        ("é\u034f\U0001d173\U0001bca0", "é⟨U+034F⟩⟨U+1D173⟩⟨U+1BCA0⟩"),
        ("x\ufe0f", "x⟨U+FE0F⟩"),
        ("a\u00a0b", "a⟨U+00A0⟩b"),
        ("\u3164x", "⟨U+3164⟩x"),
        ("p\u0430ypal.com", "p⟨U+0430⟩ypal.com"),
        ("\u0441\u043e\u0440", "⟨U+0441⟩⟨U+043E⟩⟨U+0440⟩"),
        ("\uff52\uff4d", "⟨U+FF52⟩⟨U+FF4D⟩"),
        ("rm \u2212rf", "rm ⟨U+2212⟩rf"),
        ("a\u2215b", "a⟨U+2215⟩b"),
        ("x\u037e y", "x⟨U+037E⟩ y"),
        ("cafe\u0301", "cafe⟨U+0301⟩"),
        ("\u2018quoted\u2019", "⟨U+2018⟩quoted⟨U+2019⟩"),
    ],
)
def test_what_deceives_is_named(hostile: str, shown: str) -> None:
    assert told_apart(hostile) == shown


def test_plain_text_of_every_script_stays_as_it_is() -> None:
    plain = "Grüße, 世界, שלום\n\tठीक है, Привет мир, Καλημέρα, 日本語ファイル, naïve café 👩 ⚠\ufe0f"

    assert told_apart(plain) == plain


def test_a_text_can_not_pose_as_a_mark_of_ours() -> None:
    assert told_apart("⟨U+202E⟩") == "⟨U+27E8⟩U+202E⟨U+27E9⟩"
    assert told_apart("⟨300 blanks⟩") != "⟨300 blanks⟩"


ODD = st.text(st.sampled_from("ab \n⟨⟩U+202E\u202e\u0430\u0441\u200b\u0301é"), max_size=12)


@given(ODD, ODD)
def test_texts_that_differ_look_different(one: str, other: str) -> None:
    assert (told_apart(one) == told_apart(other)) == (one == other)


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert all(char in "\t\n" or char.isprintable() for char in told_apart(text))
