"""What a kill -9 leaves behind, wherever it strikes: every message once, and no torn line."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.offload.killed import BATCH, PADDING, append
from tests.stores.offload.samples import names_in, said, texts_in

KILLS = 50


@pytest.mark.parametrize("how", ["anywhere", "writing"])
async def test_fifty_kills_leave_each_message_once_and_no_reader_sees_half_a_line(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-m", "tests.stores.offload.killed", how, str(tmp_path), str(KILLS)]

    run = await asyncio.to_thread(
        subprocess.run, command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True
    )
    seen = json.loads(run.stdout)
    await append(tmp_path, [seen["confirmed"]])

    assert (seen["killed"], seen["torn"]) == (KILLS, 0)
    assert seen["confirmed"] >= KILLS
    path = tmp_path / "sessions" / "kettle" / "context.jsonl"
    messages = (seen["confirmed"] + 1) * BATCH
    assert texts_in(path) == [said(number, PADDING).get_text_content() for number in range(messages)]
    assert names_in(path.parent) == [".lock", "context.jsonl"]
