"""What tools of MCP servers from npm answer, whole in the reply, in the record and in the files of what is too long."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from longhaul.agent.entries import ToolReturned
from longhaul.agent.values.conversation.messages import Base64Source, DataBlock, TextBlock, ToolResultBlock
from tests.workflows.conftest import Stage
from tests.workflows.operations import calls, recorded
from tests.workflows.workers.test_mcp_faults import TRANSPORTS, UNASKED, with_servers
from tests.workflows.workers.test_mcp_packages import everything, files_of

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

ASKED: dict[str, dict[str, Any]] = {
    "get-tiny-image": {},
    "get-annotated-message": {"messageType": "success", "includeImage": True},
    "get-structured-content": {"location": "Chicago"},
    "get-resource-links": {"count": 2},
    "get-resource-reference": {"resourceType": "Text", "resourceId": 3},
}
BLOB = {"resourceType": "Blob", "resourceId": 4}
WEATHER = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}


def texts(result: ToolResultBlock) -> list[str]:
    if isinstance(result.output, str):
        return [result.output]
    return [part.text for part in result.output if isinstance(part, TextBlock)]


def data(result: ToolResultBlock) -> list[tuple[str, bytes, str | None]]:
    """Of each file its type, its bytes and its name."""
    parts = [] if isinstance(result.output, str) else [part for part in result.output if isinstance(part, DataBlock)]
    assert all(isinstance(part.source, Base64Source) for part in parts)
    return [
        (part.source.media_type, base64.b64decode(part.source.data), part.name)
        for part in parts
        if isinstance(part.source, Base64Source)
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_each_kind_of_result_of_the_reference_server_comes_whole(
    transport: str, mcp_packages: Path, unserved: Stage
) -> None:
    asked = [*ASKED.items(), ("get-resource-reference", BLOB)]
    line = {"tool_calls": [{"name": f"mcp__harbour__{name}", "input": given} for name, given in asked]}
    session = unserved.session(line, {"text": "All of it."}, **UNASKED)
    async with everything(mcp_packages, transport) as config:
        with_servers(unserved, {"harbour": {"mcp_config": config}})
        async with unserved.another_worker():
            done = await session.reply("Try all of it.")
            entries = await recorded(unserved, session)

    image, annotated, structured, links, text, blob = came = done.get_tool_results()
    kept = [entry.result for entry in entries if isinstance(entry, ToolReturned)]
    assert [(one.id, one.output, one.metadata) for one in kept] == [(one.id, one.output, one.metadata) for one in came]
    ((kind, picture, _),) = data(image)
    assert texts(image) == ["Here's the image you requested:", "The image above is the MCP logo."]
    assert (kind, picture[:4], picture[-8:-4]) == ("image/png", b"\x89PNG", b"IEND")
    assert (texts(annotated), data(annotated)) == (["Operation completed successfully"], data(image))
    assert (json.loads(structured.get_text()), structured.metadata["structured_content"]) == (WEATHER, WEATHER)
    assert [line for line in links.get_text().splitlines() if line.startswith("[resource ")] == [
        "[resource Blob Resource 1: demo://resource/dynamic/blob/1 (Resource 1: plaintext resource)]",
        "[resource Text Resource 2: demo://resource/dynamic/text/2 (Resource 2: plaintext resource)]",
    ]
    assert "[resource demo://resource/dynamic/text/3]\nResource 3: This is a plaintext resource" in text.get_text()
    ((_, content, name),) = data(blob)
    assert content.startswith(b"Resource 4: This is a base64 blob created at ")
    assert name == "demo://resource/dynamic/blob/4"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_file_of_1_mb_is_cut_for_the_model_and_whole_in_its_file(
    transport: str, mcp_packages: Path, unserved: Stage, tmp_path: Path
) -> None:
    area = tmp_path / "area"
    area.mkdir()
    tides = "".join(f"tide {number:06} ebbs över the quay\n" for number in range(35_000))
    (area / "tides.txt").write_text(tides)
    session = unserved.session(
        calls("mcp__harbour__read_text_file", path=str(area / "tides.txt")), {"text": "Read."}, **UNASKED
    )
    async with files_of(mcp_packages, transport, area) as config:
        with_servers(unserved, {"harbour": {"mcp_config": config}})
        async with unserved.another_worker():
            done = await session.reply("Read all of it.")
            history = await unserved.handle(session).fetch_history()

    (result,) = done.get_tool_results()
    (file,) = (unserved.settings.data_dir / "offload").resolve().rglob("tool_result-*.txt")
    assert len(tides.encode()) > 1_000_000
    assert (done.get_text_content(), str(file) in result.get_text()) == ("Read.", True)
    assert file.read_text("utf-8") == tides
    assert "structured_content" not in result.metadata
    assert len(result.get_text()) < 50_000
    assert sum(event.ByteSize() for event in history.events) < 1_000_000
