"""Operations that would take seconds to read: each is refused in a moment, and thousands at once are read in turns.

The SDK fails a workflow task that takes two seconds, and an operation stays in the history: one that takes longer would
end its session for ever.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError

from longhaul.agent.operations.all_operations import NAMES
from longhaul.agent.plain.json_schemas import MAX_STATE_VALUES, MAX_VALUES
from longhaul.starter.client.session import Session
from tests.e2e.processes import worker
from tests.limits import usual
from tests.workflows.conftest import Stage
from tests.workflows.operations import ASKS, approve_and_finish, json_text, until

pytestmark = pytest.mark.server

LISTS = {
    "submit": '{"messages": [%s]}',
    "observe": '{"messages": [%s]}',
    "ask": '{"request_id": "r", "workflow_id": "w", "messages": [%s]}',
    "notify": '{"payload": [%s]}',
    "interrupt": '{"message": [%s]}',
    "stop_background": '{"by": [%s]}',
    "confirm": '{"decisions": [%s]}',
    "external_result": '{"results": [%s]}',
    "configure": '{"rules": [%s]}',
    "rules": '{"add": [%s]}',
    "replace_state": '{"state": {"context": [%s]}}',
    "compact": '{"context_config": {"condensers": [%s]}}',
    "pause": '{"why": [%s]}',
    "resume": '{"by": [%s]}',
    "step": '{"by": [%s]}',
    "resolve": '{"output": [%s]}',
    "worker_left": '{"doing": [%s]}',
    "worker_lacks": '{"why": [%s]}',
    "budget": '{"more": [%s]}',
    "child_reported": '{"text": [%s]}',
    "report_again": '{"call_id": [%s]}',
    "hub_says": '{"hub": "h", "incarnation": "l", "name": "n", "member": "m", "joined": 1, "through": [%s]}',
}
"""By name: a body with a list in it, where there is one."""
ITEMS = {
    "submit": '{"name": "a", "role": "user", "content": "x"}',
    "observe": '{"name": "a", "role": "user", "content": "x"}',
    "ask": '{"name": "a", "role": "user", "content": "x"}',
    "interrupt": '{"name": "a", "role": "user", "content": "x"}',
    "confirm": '{"call_id": "call_0_0", "decision": "allow"}',
    "external_result": '{"id": "call_0_0", "output": "x"}',
    "configure": '{"tool_name": "Read"}',
    "rules": '{"tool_name": "Read"}',
    "replace_state": '{"name": "a", "role": "user", "content": "x"}',
}
MANY = 20_000
TASK_SECONDS = 10.0
PORTION = 6
"""Kinds for one worker: its start takes longer than most of them."""


def many(item: str, count: int) -> str:
    return ",".join([item] * count)


POISON: dict[str, Callable[[str], str]] = {
    "thousands of items": lambda name: LISTS[name] % many(ITEMS.get(name, '"x"'), MANY),
    "thousands of operations": lambda name: LISTS[name] % many('"x"', 3 * MANY),
    "thousands of blocks": lambda name: LISTS[name]
    % ('{{"name": "a", "role": "user", "content": [{}]}}'.format(many('{"type": "text", "text": "x"}', MANY))),
    "empty objects": lambda name: LISTS[name] % many("{}", 3 * MANY),
    "as many empty objects as may come": lambda name: LISTS[name] % many("{}", MAX_VALUES // 2 - 5),
    "as many numbers as may come": lambda name: LISTS[name] % many("1e300", MAX_VALUES - 5),
    "as many items as may come": lambda name: LISTS[name] % many(ITEMS.get(name, "7"), MAX_VALUES // 5),
    "as many fields as may come": lambda name: "{{{}}}".format(",".join(f'"k{n}": 1' for n in range(MAX_VALUES - 5))),
    "a wide object": lambda name: "{{{}}}".format(",".join(f'"k{n}": 1' for n in range(MANY))),
    "levels of lists": lambda name: LISTS[name] % ("[" * 5_000 + "]" * 5_000),
    "levels that never close": lambda name: LISTS[name] % ("[" * 50_000),
    "levels of objects": lambda name: LISTS[name] % ('{"a":' * 5_000 + "1" + "}" * 5_000),
    "a number of many digits": lambda name: LISTS[name] % ("9" * 300_000),
    "many numbers of many digits": lambda name: LISTS[name] % many("9" * 4_000, 50),
    "a fraction of many digits": lambda name: LISTS[name] % ("0." + "3" * 300_000),
    "a long id": lambda name: '{"reply_id": "%s", "request_id": "%s", "by": "%s"}' % (("x" * 100_000,) * 3),
    "a long key": lambda name: '{"%s": 1}' % ("k" * 300_000),
    "strings without marks": lambda name: '{"a": ' + '"x"' * 100_000 + "}",
    "escapes": lambda name: LISTS[name] % ('"' + "\\n\\\\\\\"" * 50_000 + '"'),
    "escapes of surrogates": lambda name: LISTS[name] % ('"' + "\\ud83d\\ude00" * 30_000 + '\\ud83d"'),
    "600 rules": lambda name: LISTS[name] % many('{"tool_name": "Bash", "rule_content": "git add a"}', 600),
    "600 different rules": lambda name: LISTS[name]
    % ",".join(f'{{"tool_name": "Bash", "rule_content": "git add {n}"}}' for n in range(600)),
}  # fmt: skip


def test_each_kind_of_operation_is_poisoned() -> None:
    assert set(LISTS) == set(NAMES)
    assert len(POISON) >= 20


def operations(kind: str) -> Iterator[tuple[str, str]]:
    for name in NAMES:
        yield name, POISON[kind](name)


@dataclass(kw_only=True)
class Served(Stage):
    pid: int

    def seconds(self) -> float:
        """Of the processor, that its worker has used: what else the machine does adds nothing to them."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
async def served(unserved: Stage) -> AsyncIterator[Served]:
    """A worker in a process of its own: this one has operations to make, and its seconds of the processor are
    counted."""
    async with worker(unserved.worker_settings) as process:
        yield Served(**vars(unserved), pid=process.pid)


@pytest.mark.proves("S9")
@pytest.mark.parametrize("first", range(0, len(POISON), PORTION))
async def test_a_session_answers_at_once_after_poison_of_every_kind(served: Served, first: int) -> None:
    for kind in list(POISON)[first : first + PORTION]:
        await poison(served, kind)


async def poison(served: Served, kind: str) -> None:
    """A session of its own with it, in operations of each name."""
    session = served.session(*ASKS, {"text": "On it goes."})
    waiting = await session.reply("Write to Ana")
    answered: dict[str, float] = {}

    # Both ways read an operation by the same lines: each kind and each operation goes both, no operation of a kind
    # twice.
    for at, (name, body) in enumerate(operations(kind), start=[*POISON].index(kind)):
        began = served.seconds()
        if at % 2:
            await served.handle(session).signal(name, json_text(body))
        else:
            with suppress(WorkflowUpdateFailedError):  # most are refused; a few are merely large
                await served.handle(session).execute_update(name, json_text(body))
        await answers(session)
        answered[f"{kind}: {name}, as {'a signal' if at % 2 else 'an update'}"] = served.seconds() - began

    most = usual(5 if kind.startswith("as many") else 1)  # those are taken, and read; the others are refused unread
    assert {operation: seconds for operation, seconds in answered.items() if seconds >= most} == {}
    if (await session.status()).pending:
        assert (await approve_and_finish(session, waiting.id)).startswith("Written.")


async def answers(session: Session) -> None:
    """Soon: the answer behind a task that failed or took its five seconds comes later."""
    async with asyncio.timeout(TASK_SECONDS):
        await session.status()


async def test_a_state_as_large_as_may_come_is_read_in_time(served: Served) -> None:
    session = served.session({"text": "Hello."}, {"text": "On it goes."})
    await session.reply("Hi")
    message = '{"name": "a", "role": "user", "content": "x"}'
    body = f'{{"state": {{"session_id": "s", "context": [{many(message, MAX_STATE_VALUES // 4 - 10)}]}}}}'

    began = served.seconds()
    answer = await served.handle(session).execute_update("replace_state", json_text(body))

    assert answer["messages"] == MAX_STATE_VALUES // 4 - 10
    assert served.seconds() - began < usual(2.0)


@pytest.mark.chaos
async def test_ten_thousand_operations_in_one_task_are_all_read(unserved: Stage) -> None:
    """No worker looks while they come, so that one task has them all."""
    session = unserved.session(*ASKS, {"text": "On it goes."})
    plain = await Client.connect(unserved.address)
    async with unserved.worker_process():
        waiting = await session.reply("Write to Ana")
    handle = plain.get_workflow_handle(session.workflow_id)
    for _ in range(99):
        await asyncio.gather(*(handle.signal("nonsense", "x") for _ in range(98)))
    await handle.signal("observe", {"messages": "The last of them."})

    async with unserved.worker_process():
        began = time.monotonic()

        async def read() -> bool:
            return (await session.status()).refused == 99 * 98

        await until(read)
        assert time.monotonic() - began < usual(60)
        assert await approve_and_finish(session, waiting.id) == "Written."
        said = [message.get_text_content() async for message in session.transcript()]
        assert "The last of them." in said
