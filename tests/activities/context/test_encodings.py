"""tiktoken's files: used where they are, never fetched, never waited for."""

import asyncio
import hashlib
import importlib
import inspect
import os
import re
import threading
from pathlib import Path

import pytest
import tiktoken

from longhaul.activities.context.tokens import FILES, Encodings, at_hand, cache_folder, encoding_name
from tests.limits import SURE_SECONDS

BYTEWISE = tiktoken.Encoding(
    name="o200k_base",
    pat_str=r"\s+(?!\S)|\s+|\S+",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)},
    special_tokens={},
)
"""A real one, in which each byte is a token."""


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-5.2-codex", "o200k_base"),
        ("openai-chat:openai/gpt-4o-mini", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("openai:ft:gpt-4o:harbour", "o200k_base"),
        ("openai-chat:gpt-oss-20b", "o200k_harmony"),
        ("anthropic:claude-opus-4-8", ""),
        ("qwen:qwen3-max", ""),
        ("openai:", ""),
        ("", ""),
    ],
)
def test_a_model_is_counted_by_its_own_encoding(model: str, name: str) -> None:
    assert encoding_name(model) == name


def test_the_files_are_the_ones_that_the_installed_tiktoken_asks_for() -> None:
    source = inspect.getsource(importlib.import_module("tiktoken_ext.openai_public"))
    asked = {
        (hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest(), digest)
        for address, digest in re.findall(r'"(https://\S+\.tiktoken)",\s+expected_hash="(\w+)"', source)
    }

    assert set(FILES.values()) <= asked


def test_files_are_looked_for_where_tiktoken_looks() -> None:
    both = {"TIKTOKEN_CACHE_DIR": "/pier/first", "DATA_GYM_CACHE_DIR": "/pier/second"}

    assert cache_folder(both) == Path("/pier/first")
    assert cache_folder({"DATA_GYM_CACHE_DIR": "/pier/second"}) == Path("/pier/second")
    assert cache_folder({"TIKTOKEN_CACHE_DIR": ""}) is None
    assert str(cache_folder({})).endswith("/data-gym-cache")


def test_a_whole_file_is_at_hand_and_a_spoilt_one_is_not_and_stays(tmp_path: Path) -> None:
    files = {"harbour_base": ("chart", hashlib.sha256(b"depths").hexdigest())}
    environ = {"TIKTOKEN_CACHE_DIR": str(tmp_path)}
    chart = tmp_path / "chart"

    assert not at_hand("harbour_base", environ, files)
    chart.write_bytes(b"depths")
    assert at_hand("harbour_base", environ, files)
    chart.write_bytes(b"dep")
    assert not at_hand("harbour_base", environ, files)
    assert chart.read_bytes() == b"dep"


def test_a_pipe_in_the_files_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "chart")

    assert not at_hand("harbour_base", {"TIKTOKEN_CACHE_DIR": str(tmp_path)}, {"harbour_base": ("chart", "")})


async def test_tiktoken_is_not_asked_for_a_file_that_is_not_there() -> None:
    asked: list[str] = []

    def load(name: str) -> tiktoken.Encoding:
        asked.append(name)
        return BYTEWISE

    encodings = Encodings(is_at_hand=lambda _: False, load=load)
    await encodings.wait("o200k_base", longest_seconds=SURE_SECONDS)

    assert encodings.get("o200k_base") is None
    assert asked == []


async def test_nobody_waits_for_a_loading_that_hangs_and_what_it_brings_is_used_later() -> None:
    go_on = threading.Event()

    def load(_: str) -> tiktoken.Encoding:
        go_on.wait(SURE_SECONDS * 2)
        return BYTEWISE

    encodings = Encodings(is_at_hand=lambda _: True, load=load)
    async with asyncio.timeout(SURE_SECONDS):
        await encodings.wait("o200k_base", longest_seconds=0.01)

    assert encodings.get("o200k_base") is None
    go_on.set()
    await encodings.wait("o200k_base", longest_seconds=SURE_SECONDS)
    assert encodings.get("o200k_base") is BYTEWISE


async def test_a_failed_loading_is_told_once_and_ends_in_no_encoding(caplog: pytest.LogCaptureFixture) -> None:
    def load(_: str) -> tiktoken.Encoding:
        raise ConnectionError("no route to the harbour")

    encodings = Encodings(is_at_hand=lambda _: True, load=load)
    for _ in range(3):
        await encodings.wait("cl100k_base", longest_seconds=SURE_SECONDS)

    assert encodings.get("cl100k_base") is None
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
        "tokens of cl100k_base are estimated: loading it failed: no route to the harbour"
    ]
