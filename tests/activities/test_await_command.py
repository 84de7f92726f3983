"""The end of a command that an earlier run has started, as the worker that holds it tells the next run."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import cast

from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.secrets import WorkerSecrets
from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.call_results import WITHHELD, Awaiting
from longhaul.activities.context.tokens import TokenCounter
from longhaul.activities.context.tool_results import Returning
from longhaul.activities.contract import AwaitCommand, RecordedPlace
from longhaul.activities.middlewares.middleware import Middleware, RuntimeContext, RunTool, ToolUse
from longhaul.activities.middlewares.middleware_chain import Middlewares
from longhaul.activities.middlewares.session_middlewares import Wrapping
from longhaul.activities.tool import ToolOutput
from longhaul.activities.tools.bash import Bash, Outputs
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import ToolReturned
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.values.conversation.tools import Effect
from longhaul.agent.values.spec.workspace import Workspace
from longhaul.stores.offload.offloaders import Offloaders
from tests.activities.tools.calls import called


class Redacting(Middleware):
    async def on_acting(self, use: ToolUse, context: RuntimeContext, call_next: RunTool) -> ToolOutput:
        return replace(await call_next(use), output="redacted")


class Greeting(Middleware):
    async def on_system_prompt(self, system_prompt: str, context: RuntimeContext) -> str:
        return f"Hello. {system_prompt}"


async def end_told(tmp_path: Path, wrapping: Wrapping | None = None) -> ToolReturned:
    """Of a command that has printed `done`."""
    workspaces, outputs = Workspaces(tmp_path / "data"), Outputs()
    (tmp_path / "workspace").mkdir()
    root, nonce = workspaces.bind(Workspace(root=str(tmp_path / "workspace")), "key")
    recorded = RecordedPlace(root=str(root), nonce=nonce)
    place, tool = await workspaces.find(recorded), Bash(outputs=outputs)
    given = {"command": "bash -c 'echo done'", "run_in_background": True}
    call = called(given, place, await tool.examine(given, place))
    await asyncio.gather(tool.run(replace(call, snapshot="c0ffee")))

    ask = AwaitCommand(
        call_id=call.id,
        arguments=None,
        tool_digest="",
        effect=Effect.READ,
        analysis=CallAnalysis(),
        place=recorded,
        agent="a",
    )
    returning = Returning(Offloaders(tmp_path / "kept"), TokenCounter(), WorkerSecrets())
    awaiting = Awaiting(WorkerParts(workspaces=workspaces, wrapping=wrapping or Wrapping()), returning, outputs)
    return cast(ToolReturned, await ActivityEnvironment().run(awaiting.await_command, ask))


async def test_it_comes_with_the_files_from_before_the_command(tmp_path: Path) -> None:
    told = await end_told(tmp_path)
    assert told.result.get_text() == "done"
    assert told.snapshot == "c0ffee"


async def test_what_a_middleware_around_tools_has_not_seen_is_withheld(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    seen = await end_told(tmp_path / "one", Wrapping(Middlewares({"greeting": Greeting()})))
    unseen = await end_told(tmp_path / "other", Wrapping(Middlewares({"redacting": Redacting()})))
    assert seen.result.get_text() == "done"
    assert unseen.result.get_text() == WITHHELD
    assert "done" not in unseen.model_dump_json()
