"""Texts that models, tools and files bring cost no more time than they are long: the expressions that look through them
run where other sessions wait."""

import time
from collections.abc import Callable

import pytest

from longhaul.activities.compression import summary_footer, summary_texts
from longhaul.activities.models.model import ModelReply
from longhaul.activities.models.requests.answer_form import BadAnswer, answer_of
from longhaul.agent.values.conversation.messages import TextBlock, Usage
from longhaul.agent.values.spec.knowledge import Skill, skill_hint, told_memory
from longhaul.agent.values.spec.summary_template import without_our_tags
from tests.limits import usual

BLANKS = "<" + " \n" * 300_000
FENCE = "```" + "\n" * 300_000
MOST_SECONDS = 2.0
"""In the square of its length each would take an hour."""


def no_answer(text: str) -> None:
    with pytest.raises(BadAnswer):
        answer_of(ModelReply(content=(TextBlock(text=text),), usage=Usage(), model="m"))


READERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "a summary": (BLANKS, lambda text: summary_footer.join(text, summary_footer.Footer())),
    "a template of summaries": (BLANKS, without_our_tags),
    "what is compressed": (BLANKS, summary_texts.harmless),
    "a memory": (f"{BLANKS}.", lambda text: told_memory(text, "2026-11-27")),
    "a skill": (f"{BLANKS}.", lambda text: skill_hint(Skill("tides", "", "", body=text))),
    "an answer in a form": (f"{FENCE}.", no_answer),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_long_run_of_blanks_is_read_at_once(reader: str) -> None:
    text, read = READERS[reader]
    began = time.process_time()

    read(text)

    assert time.process_time() - began < usual(MOST_SECONDS)
