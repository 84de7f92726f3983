"""The scripted model's summaries: lines of their own, and something to say without any."""

import json
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.models.failures.status_table import ProviderError, ScriptError
from longhaul.activities.models.model import AnswerSchema, ModelReply, ModelRequest
from longhaul.activities.models.requests.answer_form import answer_of
from longhaul.activities.models.scripted_model import ScriptedModel
from longhaul.agent.values.conversation.messages import TextBlock, UserMsg
from longhaul.agent.values.spec.agent_spec import ModelConfig

FORM = AnswerSchema(
    "write_summary",
    "",
    {
        "properties": {
            "goal": {"type": "string"},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"text": {}}}},
            "mood": {"enum": ["calm", "wild"]},
            "count": {"type": ["integer", "null"], "minimum": 3},
            "done": {"type": "boolean"},
            "none": {"type": "null"},
        }
    },
)


async def summary(
    folder: Path, *lines: dict[str, Any], number: int = 0, attempt: int = 1, form: AnswerSchema | None = FORM
) -> ModelReply:
    file = folder / "story.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    request = ModelRequest(
        str(file),
        "",
        [UserMsg("user", "Sum up")],
        (),
        ModelConfig(),
        call_number=number,
        attempt=attempt,
        answer=form,
        purpose="summary",
    )
    return await ScriptedModel().call(request, lambda _: None)


async def test_the_nth_summary_gets_the_nth_line_for_summaries(tmp_path: Path) -> None:
    lines = [{"text": "reply one"}, {"for": "summary", "text": "sum one"}, {"for": "summary", "text": "sum two"}]

    assert (await summary(tmp_path, *lines, number=1)).content == (TextBlock(text="sum two"),)
    assert (await summary(tmp_path, *lines, number=0)).content == (TextBlock(text="sum one"),)


async def test_without_a_line_every_field_is_filled_in(tmp_path: Path) -> None:
    first = await summary(tmp_path, {"text": "reply one"}, number=1)

    assert answer_of(first) == {
        "goal": "goal of summary 2 of the script",
        "steps": [{"text": "steps of summary 2 of the script"}],
        "mood": "calm",
        "count": 3,
        "done": False,
        "none": None,
    }
    assert first.usage.output_tokens > 0


async def test_without_a_form_it_is_a_sentence(tmp_path: Path) -> None:
    assert (await summary(tmp_path, form=None)).content == (TextBlock(text="Summary 1 of the script."),)


async def test_faults_and_expectations_hold_for_summaries(tmp_path: Path) -> None:
    line = {"for": "summary", "text": "{}", "faults": [{"kind": "overloaded"}], "expect": {"last_contains": "moon"}}

    with pytest.raises(ProviderError, match="overloaded"):
        await summary(tmp_path, line)
    with pytest.raises(ScriptError, match=r"Summary 1 of script .* expected 'moon'"):
        await summary(tmp_path, line, attempt=2)
