"""What a call is about, on one line."""

import pytest

from longhaul.agent.plain.gist import gist as gist_of

SCOUT = "agent: scout, task: Count the boats., background: true"


@pytest.mark.parametrize(
    ("arguments", "gist"),
    [
        ('{"timeout": 3, "command": "ls"}', "ls"),
        ('{"article": "lamp"}', "lamp"),
        ('{"for": "3h"}', "3h"),
        ('{"agent": "scout", "task": "Count the boats.", "background": true}', SCOUT),
        ('{"event": "dusk", "timeout": 60}', "event: dusk, timeout: 60"),
        ('{"subtask_idx": [0, 2]}', "subtask_idx: [0, 2]"),
        ('{"page": 7}', "page: 7"),
        ("{}", ""),
        ("[1]", "[1]"),
        ("{broken", "{broken"),
    ],
)
def test_the_gist_of_a_call(arguments: str, gist: str) -> None:
    assert gist_of(arguments) == gist
