"""Tokens: exact where the encoding is there, near enough where it is not, and never in anybody's way."""

import threading
import time
from itertools import cycle, islice
from pathlib import Path

import pytest
import tiktoken

from longhaul.activities.context.tokens import (
    CALL_TOKENS,
    FILES,
    MESSAGE_TOKENS,
    TOOL_TOKENS,
    TOOLS_TOKENS,
    Encodings,
    TokenCounter,
    at_hand,
    estimate,
)
from longhaul.agent.plain.measures import corrected
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ContentBlock,
    DataBlock,
    HintBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    URLSource,
    UserMsg,
)
from longhaul.agent.values.conversation.tools import ToolDescriptor
from tests.activities.context.test_encodings import BYTEWISE
from tests.activities.context.token_samples import SAMPLES
from tests.limits import SURE_SECONDS
from tests.servers.vocabularies import tiktoken_file

GPT, CLAUDE = "openai:gpt-5.2", "anthropic:claude-opus-4-8"
ENCODINGS = ("o200k_base", "cl100k_base")


async def bytewise() -> TokenCounter:
    """Exact for GPT, with an encoding in which each byte is a token."""
    counter = TokenCounter(Encodings(is_at_hand=lambda _: True, load=lambda _: BYTEWISE))
    assert await counter.prepare(GPT)
    return counter


def estimating() -> TokenCounter:
    return TokenCounter(Encodings(is_at_hand=lambda _: False))


def off_by(estimated: int, true: int) -> float:
    return abs(estimated - true) / true


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", SAMPLES)
def test_a_short_text_of_any_kind_is_estimated_within_a_quarter(kind: str, encoding: str) -> None:
    sample = SAMPLES[kind]

    assert off_by(estimate(sample.text, encoding), getattr(sample, encoding)) < 0.25


@pytest.mark.proves("B6")
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", ["german", "chinese", "json"])
def test_some_texts_of_a_kind_are_estimated_within_a_tenth(kind: str, encoding: str) -> None:
    samples = [sample for name, sample in SAMPLES.items() if name.startswith(kind)]
    true = sum(getattr(sample, encoding) for sample in samples)

    assert off_by(sum(estimate(sample.text, encoding) for sample in samples), true) < 0.1


@pytest.mark.proves("B6")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_day_of_all_kinds_is_estimated_within_a_tenth(encoding: str) -> None:
    true = sum(getattr(sample, encoding) for sample in SAMPLES.values())

    assert off_by(sum(estimate(sample.text, encoding) for sample in SAMPLES.values()), true) < 0.1


@pytest.mark.aimock
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_samples_numbers_are_tiktokens(
    encoding: str, vocabularies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    (tmp_path / FILES[encoding][0]).write_text(tiktoken_file(vocabularies, encoding))
    assert at_hand(encoding), "the file is tiktoken's, by its digest"
    real = tiktoken.get_encoding(encoding)

    counted = {kind: len(real.encode_ordinary(sample.text)) for kind, sample in SAMPLES.items()}

    assert counted == {kind: getattr(sample, encoding) for kind, sample in SAMPLES.items()}


@pytest.mark.proves("B6")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_after_the_first_reply_a_growing_context_is_known_within_a_tenth(encoding: str) -> None:
    """Twenty turns, each of three texts; the provider reports the true numbers, and 700 tokens that nobody can see."""
    texts = cycle(SAMPLES.values())
    unseen, fixed = 700, [SAMPLES["english"], SAMPLES["json_log"], SAMPLES["python"]]
    true = unseen + sum(getattr(sample, encoding) for sample in fixed)
    estimated = sum(estimate(sample.text, encoding) for sample in fixed)
    worst = 0.0
    for _ in range(20):
        reported, cached_prefix = true, estimated
        said = list(islice(texts, 3))
        true += sum(getattr(sample, encoding) for sample in said)
        since = sum(estimate(sample.text, encoding) for sample in said)
        estimated += since
        worst = max(worst, off_by(reported + corrected(since, reported, cached_prefix), true))

    assert worst < 0.1


@pytest.mark.parametrize(
    "text", ["", "a", "\ud83d", "\0", "é" * 3, "0A" * 50, "<|endoftext|>", "👩‍👩‍👧" * 9, " " * 999]
)
async def test_no_text_is_free_and_none_costs_more_than_its_bytes(text: str) -> None:
    size_bytes = len(text.encode("utf-8", "surrogatepass"))
    for counter in (estimating(), await bytewise()):
        for model in (GPT, CLAUDE):
            assert (size_bytes > 0) <= counter.count_text(text, model) <= size_bytes


@pytest.mark.proves("B6")
async def test_a_text_is_counted_exactly_where_the_encoding_is_there() -> None:
    counter = await bytewise()

    assert counter.count_text("Ahoi, Kap Hörn! " * 5_000, GPT) == 17 * 5_000
    assert counter.count_text("Ahoi, Kap Hörn!", CLAUDE) == estimate("Ahoi, Kap Hörn!")


async def test_a_run_of_blanks_that_tiktoken_panics_at_is_counted() -> None:
    assert (await bytewise()).count_text(" " * 1_500_000, GPT) == pytest.approx(1_500_000, rel=0.001)


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (TextBlock(text="anchor"), 6),
        (ThinkingBlock(thinking="deep"), 4),
        (ThinkingBlock.model_validate({"thinking": "", "encrypted_content": "Z" * 160}), 30),
        (ThinkingBlock.model_validate({"thinking": "", "encrypted_content": ["odd"]}), 0),
        (HintBlock(hint="tide"), 4),
        (HintBlock(hint=(TextBlock(text="low"), TextBlock(text="tide"))), 7),
        (ToolCallBlock(id="c-1", name="Grep", input='{"a":1}'), CALL_TOKENS + 12),
        (ToolResultBlock(id="c-1", name="Grep", output="three"), CALL_TOKENS + 5),
        (ToolResultBlock(id="c-1", name="Grep", output="no", state=ToolResultState.ERROR), CALL_TOKENS + 2 + 2),
        (ToolResultBlock(id="c-1", name="Grep", output=(TextBlock(text="x"), TextBlock(text="yz"))), CALL_TOKENS + 3),
        (DataBlock(source=URLSource(url="https://pier.example/x.png", media_type="image/png")), 1_600),
        (DataBlock(source=URLSource(url="https://pier.example/x.wav", media_type="audio/wav")), 40),
    ],
)
async def test_everything_in_a_message_that_the_model_reads_counts(block: ContentBlock, tokens: int) -> None:
    counter = await bytewise()

    assert counter.count_message(AssistantMsg("mate", [block]), GPT) == MESSAGE_TOKENS + tokens


async def test_the_name_that_stands_before_somebodys_words_counts() -> None:
    counter = await bytewise()

    assert counter.count_message(UserMsg("ana", "Ahoy"), GPT) == MESSAGE_TOKENS + len("ana: Ahoy")
    assert counter.count_message(UserMsg("user", "Ahoy"), GPT) == MESSAGE_TOKENS + len("Ahoy")


async def test_the_system_prompt_and_the_tools_count_with_their_schemas() -> None:
    counter = await bytewise()
    tool = ToolDescriptor(name="Moor", description="Moors a ship.", input_schema={"type": "object"})
    texts = len("Be brief.") + len('Moor Moors a ship. {"type": "object"}')

    assert counter.count_fixed("Be brief.", [], GPT) == MESSAGE_TOKENS + 9
    assert counter.count_fixed("Be brief.", [tool], GPT) == MESSAGE_TOKENS + TOOL_TOKENS + texts
    assert counter.count_fixed("", [tool], CLAUDE) - counter.count_fixed("", [], CLAUDE) > TOOLS_TOKENS["anthropic"]


async def test_a_schema_that_is_no_json_costs_nothing_and_stops_nothing() -> None:
    endless: dict[str, object] = {}
    endless["again"] = endless

    odd = [ToolDescriptor.model_construct(name="Odd", description="", input_schema=endless)]

    assert (await bytewise()).count_fixed("", odd, GPT) == MESSAGE_TOKENS + TOOL_TOKENS + len("Odd  ")


async def test_what_was_estimated_before_the_encoding_came_is_counted_again() -> None:
    go_on = threading.Event()
    counter = TokenCounter(Encodings(is_at_hand=lambda _: go_on.wait(SURE_SECONDS), load=lambda _: BYTEWISE))

    before = counter.count_fixed("Moor every ship.", [], GPT)
    go_on.set()
    await counter.prepare(GPT, longest_seconds=SURE_SECONDS)

    assert before == MESSAGE_TOKENS + estimate("Moor every ship.", "o200k_base")
    assert counter.count_fixed("Moor every ship.", [], GPT) == MESSAGE_TOKENS + len("Moor every ship.")


@pytest.mark.alone
@pytest.mark.parametrize("model", [GPT, CLAUDE])
async def test_five_megabytes_are_counted_in_well_under_a_second(model: str) -> None:
    counter = await bytewise() if model == GPT else estimating()
    text = "".join(sample.text for sample in SAMPLES.values()) * 1_200

    started = time.thread_time()
    counted = counter.count_text(text, model)

    assert time.thread_time() - started < 1
    true = len(text.encode()) if model == GPT else 1_200 * sum(sample.cl100k_base for sample in SAMPLES.values())
    assert off_by(counted, true) < 0.1


async def test_only_a_large_message_is_counted_in_a_thread() -> None:
    threads: list[threading.Thread] = []

    class Watched(TokenCounter):
        def count_message(self, message: Msg, model: str) -> int:
            threads.append(threading.current_thread())
            return super().count_message(message, model)

    counter = Watched(Encodings(is_at_hand=lambda _: False))
    small, large = UserMsg("ana", "Ahoy"), UserMsg("ana", "Ahoy " * 100_000)

    assert await counter.count_aside(small, CLAUDE) == counter.count_message(small, CLAUDE)
    assert await counter.count_aside(large, CLAUDE) > 50_000
    assert [thread is threading.current_thread() for thread in threads] == [True, True, False]
