"""Ids: two machines find the same one, and no two things ever share one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longhaul.agent.plain.ids import fairness_key, names_in, reply_id, workflow_id

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    ["", "~", "=", "/", "#", "%", "%7E", "None", "a/b", "\ud800", "\udfff", "x" * 200, "ü" * 150, "longhaul"]
)
TRIPLES = st.tuples(ANY_TEXT, st.none() | ANY_TEXT, ANY_TEXT)


@given(TRIPLES, TRIPLES)
@example(("a", None, "s"), ("a", "", "s"))
@example(("a", None, "s"), ("a", "~", "s"))
@example(("a", "", "s"), ("a", "=", "s"))
@example(("a/b", "c", "d"), ("a", "b/c", "d"))
@example(("a", "b", "c%2Fd"), ("a", "b", "c/d"))
@example(("a", "b", "x" * 300), ("a", "b", "x" * 301))
@example(("a", "u" * 150, "s" * 150), ("a", "u" * 151, "s" * 150))
@example(("a", "b", "\ud800"), ("a", "b", "\ud801"))
def test_two_sessions_never_share_a_workflow(
    one: tuple[str, str | None, str], other: tuple[str, str | None, str]
) -> None:
    assert (workflow_id(*one) == workflow_id(*other)) == (one == other)


@given(TRIPLES)
def test_a_workflow_id_is_plain_ascii_and_short_enough_for_the_server(triple: tuple[str, str | None, str]) -> None:
    made = workflow_id(*triple)

    assert made.isascii()
    assert made.isprintable()
    assert len(made.encode("ascii")) <= 255


def test_plain_names_stay_readable() -> None:
    assert workflow_id("coder", "ana@example.org", "fix-7") == "longhaul/coder/ana@example.org/fix-7"
    assert workflow_id("coder", None, "fix-7") == "longhaul/coder/~/fix-7"
    assert workflow_id("", "", "") == "longhaul/=/=/="
    assert workflow_id("co/der", "~", "ü") == "longhaul/co%2Fder/%7E/%C3%BC"


def test_a_long_id_keeps_the_start_of_the_sessions_name() -> None:
    made = workflow_id("coder", "ana", "nightly-build-" + "7" * 300)

    assert made.startswith("longhaul/#nightly-build-777")
    assert len(made) == len("longhaul/#") + 120 + 1 + 64


def test_a_long_id_never_ends_its_name_in_half_an_escape() -> None:
    for lead in range(6):
        name = workflow_id("coder", "ana", "a" * lead + "ü" * 200).split("#")[1]
        assert len(name) % 3 == lead % 3
        assert name.count("%") * 3 + lead == len(name)


def test_an_id_of_exactly_the_limit_stays_readable() -> None:
    fixed = len("longhaul/a/b/")

    assert workflow_id("a", "b", "s" * (255 - fixed)).startswith("longhaul/a/b/sss")
    assert workflow_id("a", "b", "s" * (255 - fixed + 1)).startswith("longhaul/#sss")


def test_a_reply_id_depends_on_session_and_request_alone() -> None:
    assert reply_id("longhaul/a/~/s", "r1") == "5962384c8ac741a4bde5c06c41ac9a21"
    assert reply_id("longhaul/a/~/s", "r1") != reply_id("longhaul/a/~/s", "r2")
    assert reply_id("longhaul/a/~/s", "r1") != reply_id("longhaul/a/~/t", "r1")
    assert len(reply_id("w", "\ud800")) == 32


@pytest.mark.parametrize("names", [("lamp", "ana", "sky"), ("lamp", None, "a/b ~=é"), ("", "", "")])
def test_names_are_found_again_in_a_workflow_id(names: tuple[str, str | None, str]) -> None:
    assert names_in(workflow_id(*names)) == names


def test_a_hashed_id_is_all_that_is_known_of_its_session() -> None:
    hashed = workflow_id("lamp", "ana", "s" * 400)

    assert names_in(hashed) == ("", None, hashed)


def test_a_name_that_is_too_long_for_a_fairness_key_is_hashed() -> None:
    fits, long, longer = "ä" * 32, "ä" * 33, "ä" * 34

    keys = [fairness_key(name) for name in (fits, long, longer)]

    assert keys[0] == fits
    assert [len(key.encode()) for key in keys] == [64, 64, 64]
    assert len({*keys}) == 3
