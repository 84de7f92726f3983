"""Names as the server knows them: readable, or hashed with a key."""

import re

import pytest

from longhaul.agent.plain.ids import Names, names_in, workflow_id
from longhaul.starter.connection.connect import BadIdKey, Naming
from longhaul.starter.settings import Settings

KEY = "a key for the whole shore"


def opaque(key: str = KEY) -> Naming:
    return Naming(Settings.model_validate({"opaque_ids": True, "id_key": key}))


def test_names_are_readable_unless_somebody_wants_them_hashed() -> None:
    plain = Naming(Settings())

    assert plain.workflow_id("coder", "ana", "shore") == workflow_id("coder", "ana", "shore")
    assert (plain.indexed("ana"), plain.is_opaque) == ("ana", False)


def test_a_hashed_id_says_nothing_and_is_the_same_wherever_the_key_is() -> None:
    one = opaque().workflow_id("coder", "ana", "shore")

    assert re.fullmatch(r"longhaul/##[0-9a-f]{40}", one)
    assert one == opaque().workflow_id("coder", "ana", "shore")
    assert one != opaque(f"{KEY}!").workflow_id("coder", "ana", "shore")
    assert names_in(one) == Names("", None, one)


def test_no_two_triples_have_one_id() -> None:
    triples = [("a", "b", "c"), ("a", None, "c"), ("a", "", "c"), ("a", "~", "c"), ("a/b", "", "c"), ("a", "b/c", "")]

    assert len({opaque().workflow_id(*triple) for triple in triples}) == len(triples)
    assert len({opaque().indexed(name) for name in ("ana", "Ana", "", "ünï", "\ud800")}) == 5


@pytest.mark.parametrize("key", ["", "short"])
def test_without_a_key_that_keeps_something_to_itself_nothing_is_hashed(key: str) -> None:
    with pytest.raises(BadIdKey, match="LONGHAUL_ID_KEY: with LONGHAUL_OPAQUE_IDS a key of at least 16 characters"):
        opaque(key)
