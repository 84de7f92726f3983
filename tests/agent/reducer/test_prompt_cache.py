"""Why a provider's prompt cache serves less than it could, and how much that is."""

from typing import get_args

import pytest

from longhaul.agent.values.conversation.messages import Usage
from longhaul.agent.values.prompt_cache import REASONS, MissReason, PromptSent, change, missed_tokens

SENT = PromptSent("anthropic:claude-opus-5-5", "tools-1", "prompt-1", 3, "", "high None", 1_000, 50_000)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        ({"at": 301_000}, ""),
        ({"at": 301_001}, "idle"),
        ({"settings": "low None", "at": 900_000}, "settings"),
        ({"choice": "closing", "settings": "low None"}, "choice"),
        ({"messages": 4, "choice": "closing"}, "messages"),
        ({"tools": "tools-2", "messages": 4}, "tools"),
        ({"system": "prompt-2", "tools": "tools-2"}, "system"),
        ({"model": "openai:gpt-5.1", "system": "prompt-2"}, "model"),
    ],
)
def test_the_first_part_that_changed_is_the_reason(now: dict[str, object], why: MissReason) -> None:
    assert change(SENT, SENT._replace(**now)) == why  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "read", "cached", "missed"),
    [
        pytest.param(50_000, 52_000, 50_000, 0, id="all of it was served"),
        pytest.param(50_000, 52_000, 45_000, 0, id="all but a tenth, which is the end that no step of a cache holds"),
        pytest.param(50_000, 52_000, 44_999, 5_001, id="less"),
        pytest.param(50_000, 52_000, 0, 50_000, id="nothing"),
        pytest.param(2_000, 3_000, 976, 0, id="of a short one a thousand tokens are nothing"),
        pytest.param(2_000, 3_000, 975, 1_025, id="and one more is a miss"),
        pytest.param(50_000, 4_000, 0, 4_000, id="a context that was made shorter"),
    ],
)
def test_what_was_missed_is_what_the_call_before_had_sent(expected: int, read: int, cached: int, missed: int) -> None:
    assert missed_tokens(expected, Usage(input_tokens=read, cache_input_tokens=cached)) == missed


def test_each_reason_has_its_words() -> None:
    assert {*REASONS, ""} == set(get_args(MissReason))
