"""Places in a state's JSON, as people write them."""

from typing import Any

import pytest

from longhaul.starter.client.states.state_json import BadPath, steps_of, with_value

STATE: dict[str, Any] = {
    "summary": "",
    "context": [{"name": "user", "content": [{"type": "text", "text": "How many bricks?"}]}],
    "tool_context": {"cwd": "/srv", "activated_groups": []},
}


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("summary", ["summary"]),
        ("context[3].content[0].text", ["context", 3, "content", 0, "text"]),
        ('context[0].metadata["odd.name [1]"]', ["context", 0, "metadata", "odd.name [1]"]),
        ('a["say \\"x\\""].b', ["a", 'say "x"', "b"]),
    ],
)
def test_a_path_is_names_and_indexes(path: str, steps: list[str | int]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    "path", ["", ".summary", "[0]", "context[", "context[-1]", "context[x]", "a..b", "a b", 'a["b]']
)
def test_what_is_no_path_is_said_to_be_none(path: str) -> None:
    with pytest.raises(BadPath, match="write it like"):
        steps_of(path)


def test_a_value_is_set_in_a_copy() -> None:
    changed = with_value(STATE, "context[0].content[0].text", "How many?")

    assert changed["context"][0]["content"] == [{"type": "text", "text": "How many?"}]
    assert STATE["context"][0]["content"][0]["text"] == "How many bricks?"


def test_an_index_just_past_the_end_adds() -> None:
    changed = with_value(STATE, "context[1]", {"name": "user"})

    assert [message["name"] for message in changed["context"]] == ["user", "user"]


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("contxt[0].name", "did you mean 'context'"),
        ("context[1].name", "a list of 1 items"),
        ("context[2]", "a list of 1 items"),
        ("context.name", "a list of 1 items"),
        ("summary.text", "a plain value"),
        ("summary[0]", "a plain value"),
        ("tool_context[0]", "no name of a field"),
        ("session_id", "belongs to the session"),
        ("reply_context.calls", "belongs to the session"),
        ("tool_context.cwd", "belongs to the session"),
        ('tool_context["cwd"]', "belongs to the session"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(path: str, sentence: str) -> None:
    with pytest.raises(BadPath, match=sentence):
        with_value(STATE, path, "x")
