"""What the session believes of its context's size right after a result: what a worker counts, and nothing twice."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import RecordedPlace, RunTool
from longhaul.activities.tool import ToolOutput
from longhaul.agent import entries as e
from longhaul.agent.decision import BEHAVIOUR
from longhaul.agent.journal import Journal
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.context_state import tokens
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    Msg,
    TextBlock,
    ToolCallBlock,
    Usage,
    UserMsg,
    outside_tokens,
)
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.stores.offload.offloaders import Offloaders
from tests.activities.context.token_samples import SAMPLES

MODEL = "anthropic:claude-opus-4-8"
FIXED = 2_345
REQUEST = UserMsg("user", "Read what is written on the pier, all of it, and tell me in which languages it is written.")


class Delivered:
    """A session whose provider reports exactly what the worker counts."""

    def __init__(self, folder: Path) -> None:
        self.counter = TokenCounter()
        self.returning = Returning(Offloaders(folder), self.counter, WorkerSecrets())
        opened = e.SessionOpened(seq=1, session_id="kettle", spec=AgentSpec(name="lamp", model=MODEL))
        self.journal = Journal.of([opened])
        self.write(
            e.RequestAccepted(request_id="r", reply_id="reply", body_digest="", messages=(REQUEST,)),
            e.ReplyStarted(reply_id="reply"),
            e.Prepared(
                behaviour=BEHAVIOUR, spec_digest="s", tools=(), workspace_root="/w", workspace_nonce="n",
                fixed_tokens=FIXED, context_length=200_000,
            ),
        )  # fmt: skip

    def write(self, *entries: e.AnyEntry) -> None:
        for entry in entries:
            self.journal.write(entry, self.journal.latest_at + 1)

    def counted(self) -> int:
        """Of the whole context, by the worker's counter."""
        return FIXED + sum(self.counter.count_message(message, MODEL) for message in self.journal.state.context)

    def call(self, call_id: str, observed: Msg | None = None) -> None:
        """The model calls a tool; somebody may tell the session something while it thinks."""
        asked, seen = self.counted(), self.journal.context_length
        if observed is not None:
            self.write(e.Observed(messages=(observed,)))
        called = AssistantMsg("lamp", [ToolCallBlock(id=call_id, name="fetch", input='{"page": 7}')])
        said = called.model_copy(update={"usage": Usage(input_tokens=asked, output_tokens=20)})
        counted = self.counter.count_message(said, MODEL)
        self.write(e.ModelSaid(message=said, tokens=counted, input_estimate=asked, context_length=seen + 1))

    async def returns(self, call_id: str, text: str, *, counted: bool = True) -> None:
        ask = RunTool(
            call_id=call_id, arguments="{}", tool_digest="d", effect=Effect.READ, analysis=CallAnalysis(), agent="lamp",
            place=RecordedPlace(root="/w", nonce="n", agent="lamp", session_id="kettle"), model=MODEL,
        )  # fmt: skip
        env = ActivityEnvironment()
        result = await env.run(self.returning.result, "fetch", ask, ToolOutput(text))
        _, size = await env.run(self.returning.message, ask, result)
        self.write(e.ToolReturned(result=result, tokens=size if counted else 0))


def off_by(told: Delivered) -> float:
    return abs(tokens(told.journal) - told.counted()) / told.counted()


def texts() -> Iterator[str]:
    """Long ones of every kind, the longest of them cut."""
    return cycle([sample.text * 20 for sample in SAMPLES.values()])


@pytest.mark.parametrize("kind", SAMPLES)
async def test_the_size_of_a_context_is_known_right_after_a_result_of_any_kind(kind: str, tmp_path: Path) -> None:
    told = Delivered(tmp_path)
    told.call("c-1")

    await told.returns("c-1", SAMPLES[kind].text * 20)

    assert off_by(told) < 0.01


async def test_nothing_is_counted_twice_however_many_turns_there_are(tmp_path: Path) -> None:
    told, text = Delivered(tmp_path), texts()
    for number in range(30):
        told.call(f"c-{number}")
        await told.returns(f"c-{number}", next(text))
        assert off_by(told) < 0.01, number


async def test_what_was_observed_while_the_model_thought_is_counted_once(tmp_path: Path) -> None:
    told, aside = Delivered(tmp_path), UserMsg("bo", [TextBlock(text=SAMPLES["english"].text * 100)])
    told.call("c-1", observed=aside)

    await told.returns("c-1", "fine")

    report = REQUEST, AssistantMsg("lamp", [ToolCallBlock(id="c-1", name="fetch", input='{"page": 7}')])
    known = FIXED + sum(told.counter.count_message(message, MODEL) for message in report)
    assert tokens(told.journal) - known == pytest.approx(outside_tokens(aside), rel=0.01)
