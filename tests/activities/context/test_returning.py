"""What the session records of a tool's output: short enough, with the place of the whole, and never an error."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import Returning, marker
from longhaul.activities.contract import RecordedPlace, RunTool
from longhaul.activities.tool import ToolOutput
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.messages import DataBlock, TextBlock, ToolResultBlock, ToolResultState
from longhaul.agent.values.conversation.tools import Effect
from longhaul.stores.offload.offloaders import Offloaders
from tests.stores.offload.own_offloaders import Shelf
from tests.stores.offload.samples import files_below, picture, resolved

WORDS = "".join(f"line {number}: the quick brown fox jumps over the lazy dog\n" for number in range(2_000))


def ask(**changes: Any) -> RunTool:
    place = RecordedPlace(root="/w", nonce="n", agent="lamp", user_id="ana", session_id="kettle")
    plain = RunTool(
        call_id="call_7", arguments="{}", tool_digest="d", effect=Effect.ONCE, analysis=CallAnalysis(), place=place,
        agent="lamp", model="scripted:x",
    )  # fmt: skip
    return plain.model_copy(update=changes)


async def returned(returning: Returning, output: Any, wanted: RunTool | None = None, **more: Any) -> ToolResultBlock:
    tool_output = ToolOutput(output, **more)
    result: ToolResultBlock = await ActivityEnvironment().run(returning.result, "fetch", wanted or ask(), tool_output)
    return result


@pytest.fixture
def returning(tmp_path: Path) -> Returning:
    return Returning(Offloaders(tmp_path), TokenCounter(), WorkerSecrets())


def text_of(result: ToolResultBlock) -> str:
    assert isinstance(result.output, str)
    return result.output


async def test_a_short_output_comes_back_as_it_is_and_nothing_is_written(returning: Returning, tmp_path: Path) -> None:
    result = await returned(returning, "fine", metadata={"pages": 3})

    assert (result.output, result.metadata, result.state) == ("fine", {"pages": 3}, ToolResultState.SUCCESS)
    assert files_below(tmp_path) == []


@pytest.mark.proves("B4")
async def test_a_long_output_is_cut_to_the_limit_and_kept_whole_in_a_file(returning: Returning, tmp_path: Path) -> None:
    result = await returned(returning, WORDS, metadata={"pages": 3})

    file = resolved(tmp_path) / "offload/lamp/ana/sessions/kettle/tool_result-call_7.txt"
    kept, told = text_of(result).removesuffix(marker(str(file))), text_of(result).endswith(marker(str(file)))
    assert told
    assert WORDS.startswith(kept.rstrip("\n"))
    assert 2_800 < TokenCounter().count_text(kept, "scripted:x") <= 3_001
    assert file.read_text() == WORDS
    assert result.metadata == {"pages": 3}


@pytest.mark.proves("B2")
async def test_the_limit_is_the_agents(returning: Returning) -> None:
    short = text_of(await returned(returning, WORDS, ask(result_limit=50)))
    whole = await returned(returning, WORDS, ask(result_limit=1_000_000))

    assert len(short) < 700
    assert whole.output == WORDS


async def test_five_megabytes_are_kept_whole_and_the_session_gets_little(returning: Returning, tmp_path: Path) -> None:
    output = "".join(f"{number:09}\n" for number in range(500_000))

    result = await returned(returning, output, ask(result_limit=10_000_000))

    (file,) = files_below(tmp_path, "tool_result-*")
    assert file.read_text() == output
    assert text_of(result) == f"{output[:300_000]}{marker(str(file))}"


async def test_a_repeated_attempt_names_the_same_file(returning: Returning) -> None:
    assert await returned(returning, WORDS) == await returned(returning, WORDS)


async def test_what_the_approver_changed_is_told_before_the_cut(returning: Returning) -> None:
    result = await returned(returning, WORDS, ask(edited_by="bo"))

    assert text_of(result).startswith("[bo changed the arguments before this ran: {}]\nline 0:")


async def test_attachments_that_do_not_fit_are_kept_with_the_text(returning: Returning, tmp_path: Path) -> None:
    output = (TextBlock(text="see"), picture(), TextBlock(text=WORDS))

    result = await returned(returning, output, ask(result_limit=20))

    assert result.output[0] == TextBlock(text="see")
    assert not any(isinstance(part, DataBlock) for part in result.output)
    (file,) = files_below(tmp_path, "tool_result-*")
    assert file.read_text().startswith("see\n[image/png 'pixel.png': ")
    assert file.read_text().endswith(WORDS)


async def test_data_that_no_answer_can_carry_is_left_out_and_kept(returning: Returning, tmp_path: Path) -> None:
    large = picture().model_copy(update={"source": picture().source.model_copy(update={"data": "QUJD" * 400_000})})

    result = await returned(returning, (TextBlock(text="see"), large))

    (file,) = files_below(tmp_path, "data/*.png")
    assert file.read_bytes() == b"ABC" * 400_000
    assert [part.text for part in result.output if isinstance(part, TextBlock)][:2] == [
        "see", "[image/png of 1200 kB left out]",
    ]  # fmt: skip
    assert len(result.model_dump_json()) < 2_000


async def test_text_that_is_heavy_as_json_is_never_too_heavy_for_the_answer(
    returning: Returning, tmp_path: Path
) -> None:
    output = (TextBlock(text="\x01" * 299_000), picture().model_copy(
        update={"source": picture().source.model_copy(update={"data": "QUJD" * 100_000})}))  # fmt: skip

    result = await returned(returning, output, ask(result_limit=10_000_000))

    (file,) = files_below(tmp_path, "tool_result-*")
    assert "its result is too large" in text_of(result)
    assert str(file) in text_of(result)
    assert file.read_text().startswith("\x01" * 299_000)


@pytest.mark.parametrize(
    ("offloader", "reason"),
    [("redis", "LONGHAUL_REDIS_URL"), ("nobody:here", "has no"), ("own:failing", "disk is full"), ("own:odd", "no ref"),
     ("own:cancelled", "CancelledError"), ("own:exit", "SystemExit")],
)  # fmt: skip
async def test_an_offloader_that_fails_costs_the_rest_and_not_the_call(
    tmp_path: Path, offloader: str, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    outcomes: dict[str, Any] = {
        "own:failing": OSError("disk is full"), "own:odd": 7, "own:cancelled": asyncio.CancelledError(),
        "own:exit": SystemExit(3),
    }  # fmt: skip

    class Failing(Shelf):
        async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
            if isinstance(outcome := outcomes[offloader], BaseException):
                raise outcome
            return outcome  # type: ignore[no-any-return]

    returning = Returning(Offloaders(tmp_path, own=dict.fromkeys(outcomes, Failing)), TokenCounter(), WorkerSecrets())
    with caplog.at_level(logging.WARNING):
        result = await returned(returning, WORDS, ask(offloader=offloader))

    assert result.state is ToolResultState.SUCCESS
    assert text_of(result).endswith(marker(None))
    assert text_of(result).startswith("line 0:")
    assert reason in caplog.text


async def test_without_an_offloader_the_rest_is_dropped(returning: Returning, tmp_path: Path) -> None:
    result = await returned(returning, WORDS, ask(offloader="none"))

    assert text_of(result).endswith(marker(None))
    assert files_below(tmp_path) == []


async def test_a_cancellation_does_not_unmake_a_call_that_has_run(tmp_path: Path) -> None:
    started, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Shelf):
        async def offload_tool_result(self, session_id: str, tool_result: ToolResultBlock, **kwargs: Any) -> str:
            started.set()
            await go_on.wait()
            return await super().offload_tool_result(session_id, tool_result, **kwargs)

    returning = Returning(Offloaders(tmp_path, own={"own:slow": Slow}), TokenCounter(), WorkerSecrets())
    call = asyncio.ensure_future(returned(returning, WORDS, ask(offloader="own:slow")))
    await started.wait()
    call.cancel()
    await asyncio.sleep(0)
    go_on.set()

    assert text_of(await call).endswith(marker("shelf:lamp/ana/kettle/call_7"))


@pytest.mark.parametrize("output", [7, None, ("text",), object()])
async def test_an_answer_that_is_no_output_is_an_error_that_the_model_reads(returning: Returning, output: Any) -> None:
    result = await returned(returning, output)

    assert result.state is ToolResultState.ERROR
    assert "What it did stays done" in text_of(result)
