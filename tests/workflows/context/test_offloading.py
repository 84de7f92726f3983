"""Results that are too long for the context: the live session gets their beginning, and reads on in the file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import NOT_OURS, marker
from longhaul.agent.entries import ToolReturned
from longhaul.agent.values.conversation.messages import AssistantMsg, ToolResultState
from longhaul.agent.values.permission import PermissionContext, PermissionMode
from longhaul.stores.names import safe_name
from tests.workflows.conftest import Stage
from tests.workflows.offered import SHELF
from tests.workflows.operations import calls, recorded, results
from tests.workflows.tools import marker as marker_of
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server

CHARS = 40_000
OFFERED = "tests.workflows.offered"


def kept_at(stage: Stage, user: str, session_id: str, call_id: str) -> Path:
    folder = stage.settings.data_dir / "offload" / "lamp" / user / "sessions" / safe_name(session_id)
    return folder.resolve() / f"tool_result-{call_id}.txt"


def say_further(script: Path, lines: list[dict[str, Any]]) -> None:
    script.write_text(script.read_text() + "".join(json.dumps(line) + "\n" for line in lines))


async def test_a_long_result_is_cut_and_the_agent_reads_its_end_unasked_in_the_file(stage: Stage) -> None:
    session_id = f"a kettle {stage.name}"
    file = kept_at(stage, "ana", session_id, "call_0_0")
    session = stage.session(
        calls("fetch", page=7, chars=CHARS),
        calls("Read", file_path=str(file), column=CHARS - 99),
        {"text": "Read to the end."},
        id=session_id,
        user="ana",
        tools=["fetch", "Read"],
        permission=PermissionContext(mode=PermissionMode.EXPLORE),
    )

    done = await session.reply("Fetch page 7")

    (cut, read), whole = results(done), page_text(7, CHARS)
    assert cut[1].endswith(f"\n{marker(str(file))}")
    assert whole.startswith(cut[1].removesuffix(f"\n{marker(str(file))}"))
    assert read == (ToolResultState.SUCCESS, f"     1\t{whole[-100:]}")
    assert file.read_text() == whole
    assert done.get_text_content() == "Read to the end."


@pytest.mark.proves("B5")
@pytest.mark.parametrize(("offloader", "owner"), [("shelf", "lamp/ana"), ("crate", "")])
async def test_what_an_operators_own_workspace_keeps_is_read_unasked_by_its_session_alone(
    unserved: Stage, monkeypatch: pytest.MonkeyPatch, offloader: str, owner: str
) -> None:
    shelf = (unserved.folder / "shelf").resolve()
    monkeypatch.setenv(SHELF, str(shelf))
    stage = replace(unserved, settings=unserved.settings.model_copy(update={"offloaders": f"{OFFERED}:{offloader}"}))
    pan = f"pan-{stage.name}"
    file = shelf / owner / "sessions" / safe_name(pan) / "tool_result-call_0_0.txt"
    other = shelf / owner / "sessions" / "pot" / "secret.txt"
    given: dict[str, Any] = {"offloader": f"{OFFERED}:{offloader}", "tools": ["fetch", "Read", "Grep"], "user": "ana"}
    explore = PermissionContext(mode=PermissionMode.EXPLORE)
    reads = calls("Read", file_path=str(file), column=CHARS - 99), calls("Grep", pattern="7", path=str(file.parent))
    async with stage.another_worker():
        session = stage.session(
            calls("fetch", page=7, chars=CHARS), *reads, {"text": "Read."}, id=pan, permission=explore, **given
        )
        done = await session.reply("Fetch page 7")
        other.parent.mkdir()
        other.write_text("of another session")
        curious = stage.session(calls("Read", file_path=str(other)), {"text": "No."}, id=f"{pan}-2", **given)
        beside = await curious.reply("What is in the pot?")

    (_, read, found) = results(done)
    assert read == (ToolResultState.SUCCESS, f"     1\t{page_text(7, CHARS)[-100:]}")
    assert found == (ToolResultState.SUCCESS, str(file))
    assert beside.finished_reason is None, "it asks"


async def test_the_limit_and_the_offloader_are_the_agents(stage: Stage) -> None:
    session = stage.session(
        calls("fetch", page=7, chars=CHARS),
        {"text": "Enough."},
        tools=["fetch"],
        context_config={"tool_result_limit": 20},
        offloader="none",
    )

    done = await session.reply("Fetch page 7")

    ((_, text),) = results(done)
    (returned,) = [entry for entry in await recorded(stage, session) if isinstance(entry, ToolReturned)]
    message = AssistantMsg("lamp", [returned.result])
    assert text.endswith(f"\n{marker(None)}")
    assert len(text) < 400
    assert returned.tokens == TokenCounter().count_message(message, session.spec.model)
    assert not (stage.settings.data_dir / "offload").exists()


async def test_a_long_result_from_outside_is_cut_counted_and_kept_like_a_tools(stage: Stage) -> None:
    session_id, whole = f"a parcel {stage.name}", page_text(8, CHARS)
    file = kept_at(stage, "ana", session_id, "call_0_0")
    session = stage.session(calls("courier", parcel="book"), {"text": "It came."}, id=session_id, user="ana")
    waiting = await session.reply("Send for the book")

    await session.external_result("call_0_0", whole)
    done = await session.wait(waiting.id)

    ((_, text),) = results(done)
    (returned,) = [entry for entry in await recorded(stage, session) if isinstance(entry, ToolReturned)]
    assert whole.startswith(text.removesuffix(f"\n{marker(str(file))}"))
    assert text.endswith(f"\n{marker(str(file))}")
    assert file.read_text() == whole
    message = AssistantMsg("lamp", [returned.result])
    assert returned.tokens == TokenCounter().count_message(message, session.spec.model)


async def test_what_lies_among_a_sessions_blobs_is_recalled_whole_and_by_a_text(stage: Stage) -> None:
    model = stage.script(calls("fetch", page=7, chars=CHARS), {"text": "Cut."})
    session = stage.session(model=model, offloader="blobs", tools=["fetch", "recall"])
    ((_, cut),) = results(await session.reply("Fetch page 7"))
    digits = cut.partition("'recall output=")[2].partition("'")[0]
    end, nothing = page_text(7, CHARS)[-100:], "0" * 64
    asks = ({"offset": CHARS - 100}, {"text": marker_of(7)}, {"output": nothing})
    lines = [*(calls("recall", **{"output": digits, **asked}) for asked in asks), {"text": "Read to the end."}]
    say_further(Path(model.removeprefix("scripted:")), lines)

    read = results(await session.reply("What did it say at its end?"))

    assert cut.endswith(marker(f"recall output={digits}"))
    assert await session.stored.whole_output(cut) == page_text(7, CHARS)
    assert await session.stored.whole_output("all of it") is None
    assert await session.stored.whole_output(f"{cut}\n{NOT_OURS}") is None
    assert read[0] == (ToolResultState.SUCCESS, end)
    assert read[1][1].startswith(f"1: {page_text(7, CHARS)[:100]}")
    assert read[2] == (ToolResultState.ERROR, f"this session keeps no output {nothing!r}")
    assert not (stage.settings.data_dir / "offload").exists()
