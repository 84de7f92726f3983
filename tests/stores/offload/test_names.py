"""Names of files from names that anybody may have chosen."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from longhaul.stores.names import owner_name, safe_name

HOSTILE = [
    "", ".", "..", "../..", "/etc/passwd", "a/b", "a\0b", "-rf", ".ssh", "~", "=", "%2F", "a\nb", "\u202egpj", "café",
    "\ud800", "x" * 10_000, "x" * 9_999, "é" * 5_000, "con(1)", "a b", "*", "$(reboot)",
]  # fmt: skip


@pytest.mark.parametrize("name", ["kettle", "call_01AbC-9", "toolu_01.x", "7", "a" * 120])
def test_a_plain_name_stays_as_it_is(name: str) -> None:
    assert safe_name(name) == name


def test_a_hostile_name_becomes_one_short_and_harmless_name_of_its_own() -> None:
    names = [safe_name(raw) for raw in HOSTILE]

    assert len(set(names)) == len(HOSTILE)
    assert [name for name in names if "/" in name or not name.isascii() or not name.isprintable()] == []
    assert [name for name in names if name in ("", ".", "..") or name[0] in ".-" or len(name) > 190] == []


@given(some.text(max_size=200), some.text(max_size=200))
def test_two_names_never_become_one(one: str, other: str) -> None:
    assert (safe_name(one) == safe_name(other)) == (one == other)


def test_two_long_names_that_begin_alike_stay_apart() -> None:
    assert safe_name("é" * 300) != safe_name("é" * 301)
    assert safe_name("x" * 121).startswith("x" * 118)


def test_the_anonymous_user_is_no_user_of_any_name() -> None:
    users = [None, "anonymous", "", "~", "None", "="]

    assert len({owner_name("lamp", user) for user in users}) == len(users)
    assert owner_name("lamp", "ana") == "lamp/ana"
    assert owner_name("a/b", "c") != owner_name("a", "b/c")
