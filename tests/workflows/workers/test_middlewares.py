"""Middlewares around live sessions: around every agent or one, in order, removable, and harmless when they fail."""

import json
from pathlib import Path

import pytest

from longhaul.agent.values.conversation.messages import FinishedReason, ToolResultState
from tests.workflows.conftest import TOOLS, Stage
from tests.workflows.operations import calls, results

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
        not_started = await session.reply("Third and a half")
        await session.configure(middlewares=[])
        again = await session.reply("Fourth")

    assert [message.get_text_content() for message in (one, two)] == ["One.", "Two."]
    assert failed.error is not None
    assert (failed.error.type, failed.error.message) == (
        "middleware",
        "The middleware 'broken' on the worker failed: RuntimeError.",
    )
    assert not_started.error is not None
    assert (not_started.error.type, not_started.error.message) == (
        "middleware",
        "The middleware 'broken_before' on the worker failed: RuntimeError.",
    )
    assert (again.error, again.get_text_content()) == (None, "Well again.")


@pytest.mark.proves("A6")
async def test_what_a_middleware_makes_of_a_call_is_judged_before_it_runs(unserved: Stage) -> None:
    unserved.settings.middlewares = f"{HERE}:Prefix"
    allowed = {"tool_name": "Bash", "rule_content": "echo:*", "behavior": "allow"}
    session = unserved.session(
        calls("Bash", command="echo wet"),
        {"text": "Done.", "expect": {"last_contains": "a middleware changed the arguments before this ran"}},
        calls("Bash", command="echo dry"),
        {"text": "Left."},
        tools=["Bash"],
        permission={"rules": [allowed]},
        sandbox="off",
    )
    async with unserved.another_worker():
        waits = await session.reply("Say it")
        (asked,) = await session.pending()
        await session.confirm(asked, allow=True)
        done = await session.wait(waits.id)
        waits = await session.reply("Again")
        (again,) = await session.pending()
    async with unserved.another_worker():
        await session.confirm(again, allow=False, reason="no traces")
        left = await session.wait(waits.id)

    assert json.loads(asked.input) == {"command": "touch seen && echo wet"}
    assert "a middleware has changed the arguments" in asked.reason
    assert (unserved.workspace / "seen").exists()
    assert "wet" in results(done)[0][1]
    assert done.get_text_content() == "Done."
    assert [state for state, _ in results(left)] == [ToolResultState.DENIED]


async def test_a_middleware_that_changes_a_call_each_time_otherwise_runs_nothing(unserved: Stage) -> None:
    unserved.settings.middlewares = f"{HERE}:Restless"
    session = unserved.session(
        calls("fetch", page=1),
        {"text": "Given up.", "expect": {"last_contains": "each time it was about to run, something had changed"}},
        tools=["fetch"],
    )
    async with unserved.another_worker():
        done = await session.reply("Fetch it")

    assert (done.error, done.get_text_content()) == (None, "Given up.")


async def test_what_a_middleware_changes_into_nonsense_is_told_and_does_not_run(unserved: Stage) -> None:
    unserved.settings.middlewares = f"{HERE}:Garbling"
    session = unserved.session(
        calls("fetch", page=1),
        {"text": "Given up.", "expect": {"last_contains": "the changed arguments do not fit: "}},
        tools=["fetch"],
    )
    async with unserved.another_worker():
        done = await session.reply("Fetch it")

    assert (done.error, done.get_text_content()) == (None, "Given up.")
    assert results(done)[0][1].endswith("The tool did not run.")
