"""Processes that write to a store when they are told to, through a pipe."""

import asyncio
import json
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from longhaul.agent.values.permission import Behavior, PermissionRule
from longhaul.starter.dev_server.processes import bound_to_parent
from longhaul.stores.state.open_store import open_store
from longhaul.stores.state.store import UserRules
from tests.stores.state.records import record

ROOT = Path(__file__).parents[3]


class Writers:
    """Use as a context manager; the processes end with it."""

    def __init__(self, number: int) -> None:
        command = bound_to_parent([sys.executable, "-m", "tests.stores.state.writers"])
        self.processes = [
            subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(number)
        ]

    def save(self, setting: str, shares: Sequence[Sequence[int]]) -> list[bool]:
        """Each process saves its share of seqs, all at once; the answers of `save_checkpoint` in the shares' order."""
        return [each for answers in self._told(setting, shares) for each in answers]

    def change_rules(self, setting: str, shares: Sequence[Sequence[str]]) -> None:
        """Each process adds its share of deny rules for Ana, one by one, all processes at once."""
        self._told(setting, shares)

    def _told(self, setting: str, shares: Sequence[Sequence[object]]) -> list[Any]:
        for process, share in zip(self.processes, shares, strict=True):
            cast(IO[str], process.stdin).write(json.dumps([setting, share]) + "\n")
            cast(IO[str], process.stdin).flush()
        answers = [json.loads(cast(IO[str], process.stdout).readline()) for process in self.processes]
        assert not (failed := [each for each in answers if isinstance(each, str)]), failed
        return answers

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.communicate()


async def add_all(setting: str, patterns: Sequence[str]) -> None:
    async with open_store(setting, data_dir=ROOT) as store:
        rules = UserRules(store)
        for pattern in patterns:
            rule = PermissionRule(tool_name="Bash", rule_content=pattern, behavior=Behavior.DENY)
            await rules.change("ana", (rule,), (), by=pattern, why="")


def told(setting: str, share: list[Any]) -> object:
    """What it came to; the words of an error, which must not end the process: the next test writes with it too."""
    try:
        return asyncio.run(add_all(setting, share) if isinstance(share[0], str) else save_all(setting, share))
    except Exception as error:  # noqa: BLE001  whatever it was, the test says it
        return "".join(traceback.format_exception(error))


async def save_all(setting: str, seqs: Sequence[int]) -> list[bool]:
    async with open_store(setting, data_dir=ROOT) as store:
        return await asyncio.gather(*(store.save_checkpoint(record(seq)) for seq in seqs))


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(told(*json.loads(line))), flush=True)
