"""`longhaul serve` tells how a reply ended whose model did not come to its end, or would not answer."""

from pathlib import Path

import pytest

from tests.e2e.serve.test_sessions import agent, desk, served
from tests.e2e.serving import Serving

pytestmark = pytest.mark.server

__all__ = ["desk", "served"]  # fixtures


@pytest.mark.parametrize(
    ("line", "reason", "kind"),
    [
        ({"text": "On and", "stop_reason": "max_tokens"}, "incomplete", "incomplete"),
        ({"text": "No.", "stop_reason": "refusal"}, "refused", "refused"),
        ({"stop_reason": "content_filter"}, "refused", "filtered"),
    ],
)
async def test_a_caller_reads_why_there_is_no_whole_answer(
    served: Serving, tmp_path: Path, line: dict[str, str], reason: str, kind: str
) -> None:
    session = agent(tmp_path, *([line] * 4))
    async with served.client() as client:
        answer = await client.post(f"{session}/messages?wait=20", json={"messages": "Tell me"})
        found = await client.get(f"{session}/result/{answer.json()['reply_id']}")

    for message in (answer.json()["message"], found.json()["message"]):
        assert (message["finished_reason"], message["error"]["type"]) == (reason, kind)
