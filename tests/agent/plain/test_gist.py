"""What a call is about, on one line."""

import pytest

from longhaul.agent.plain.gist import gist as gist_of


@pytest.mark.parametrize(
    ("arguments", "gist"),
    [
        ('{"timeout": 3, "command": "ls"}', "ls"),
        ('{"article": "lamp"}', '{"article": "lamp"}'),
        ("{}", ""),
        ("[1]", "[1]"),
        ("{broken", "{broken"),
    ],
)
def test_the_gist_of_a_call(arguments: str, gist: str) -> None:
    assert gist_of(arguments) == gist
