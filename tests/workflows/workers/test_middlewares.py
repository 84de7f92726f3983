"""Middlewares around live sessions: around every agent or one, in order, removable, and harmless when they fail."""

import json
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.letters import calls

pytestmark = pytest.mark.server

HERE = "tests.workflows.middlewares"
EXAMPLES = (
    "examples.cost_guard:CostGuard",
    "examples.redactor:Redactor",
    "examples.audit_log:AuditLog",
    "?examples.rag_hint:Notes",
)


async def test_the_examples_do_what_they_say(unserved: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mortar.md").write_text("Mortar: three parts of sand.")
    (tmp_path / "notes" / "roses.md").write_text("Roses want sun.")
    for name, value in {"NOTES": "notes", "AUDIT_LOG": "audit.jsonl"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("REPLY_TOKENS", "1000")
    unserved.settings.tools = f"{TOOLS},{HERE}"
    unserved.settings.middlewares = ", ".join(EXAMPLES)
    dear = {"usage": {"input_tokens": 900, "output_tokens": 200}}
    session = unserved.session(
        {**calls("whoami", about="ben@example.com"), "expect": {"last_contains": "three parts of sand"}},
        {"text": "Ask ana@example.com.", "expect": {"last_contains": "[address]: ana ticket 4711 with None"}},
        {**calls("whoami", about="x"), **dear},
        {"text": "never asked for"},
        tools=["whoami"],
        middlewares=["notes"],
        user="ana",
    )
    async with unserved.another_worker():
        done = await session.reply("Mix mortar", request_id="mix", context={"ticket": 4711})
        stopped = await session.reply("Go on")

    assert (done.error, done.get_text_content()) == (None, "Ask [address].")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    told = [(line["user"], line["request"], line["ticket"], line["tool"], line["failed"]) for line in lines]
    assert told[0] == ("ana", "mix", 4711, "whoami", False)
    assert (len(told), told[1][2]) == (2, None)
    assert stopped.finished_reason is FinishedReason.ERROR
    assert stopped.error is not None
    assert stopped.error.message == (
        "The middleware 'cost_guard' stopped this: the reply has used 1,100 tokens, and the most is 1,000."
    )


async def test_a_session_takes_and_leaves_what_its_workers_offer(unserved: Stage) -> None:
    unserved.settings.tools = f"{TOOLS},{HERE}"
    unserved.settings.middlewares = f"{HERE}:Marks, ?{HERE}:Basket, ?{HERE}:Broken, ?{HERE}:BrokenBefore"
    marked = {"system_contains": "Marked for lamp."}
    session = unserved.session(
        {**calls("whoami", about="first"), "expect": marked},
        {"text": "One.", "expect": {"last_contains": "with ['apple']", **marked}},
        calls("whoami", about="second"),
        {"text": "Two.", "expect": {"last_contains": "with None", **marked}},
        {"text": "Well again."},
        tools=["whoami"],
        middlewares=["basket"],
    )
    async with unserved.another_worker():
        one = await session.reply("First")
        await session.configure(middlewares=[])
        two = await session.reply("Second")
        await session.configure(middlewares=["broken"])
        failed = await session.reply("Third")
        await session.configure(middlewares=["broken_before"])
        not_begun = await session.reply("Third and a half")
        await session.configure(middlewares=[])
        again = await session.reply("Fourth")

    assert [message.get_text_content() for message in (one, two)] == ["One.", "Two."]
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == (
        "middleware",
        "The middleware 'broken' on the worker failed: RuntimeError.",
    )
    assert not_begun.error is not None
    assert (not_begun.error.type, not_begun.error.message) == (
        "middleware",
        "The middleware 'broken_before' on the worker failed: RuntimeError.",
    )
    assert (again.error, again.get_text_content()) == (None, "Well again.")
