"""Results that are too long for the context: the live session gets their beginning, and reads on in the file."""

from pathlib import Path

import pytest

from activities.offload.names import safe_name
from activities.tokens import TokenCounter
from activities.truncation import marker
from agent.entries import ToolReturned
from agent.messages import AssistantMsg, ToolResultState
from agent.permission.rules import PermissionContext, PermissionMode
from tests.workflows.conftest import Stage
from tests.workflows.letters import calls, recorded, results
from tests.workflows.tools import page_text

pytestmark = pytest.mark.server

CHARS = 40_000


def kept_at(stage: Stage, user: str, session_id: str, call_id: str) -> Path:
    folder = stage.settings.data_dir / "offload" / "lamp" / user / "sessions" / safe_name(session_id)
    return folder.resolve() / f"tool_result-{call_id}.txt"


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
