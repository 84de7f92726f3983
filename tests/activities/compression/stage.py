"""One attempt of the activity `compress`, with a scripted model, and everything that it touched."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from longhaul.activities.attempt.workspaces import Workspaces
from longhaul.activities.compress import Compressing, Dropped
from longhaul.activities.compression.condensers import BUILT_IN, Condenser, CountFor, by_bytes
from longhaul.activities.context.context_cache import Contexts, Specs
from longhaul.activities.contract import CompressInput, ContextAddress, Inline
from longhaul.activities.models.providers import Providers
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import ContextCompressed
from longhaul.agent.values.conversation.messages import (
    AssistantMsg,
    ErrorInfo,
    Msg,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
    UserMsg,
)
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.values.conversation.tools import ToolDescriptor
from longhaul.agent.values.spec.agent_spec import ContextConfig, ModelConfig

FIELDS = {
    "task_overview": "Repair the bridge at km 12.",
    "current_state": "Girder 4 is welded.",
    "important_discoveries": "The north bolt is loose.",
    "next_steps": "Paint it.",
    "context_to_preserve": "Ana wants green paint.",
}


def call(call_id: str, name: str = "Weld", arguments: str = "{}") -> Msg:
    return AssistantMsg("smith", [ToolCallBlock(id=call_id, name=name, input=arguments)])


def result(call_id: str, output: Any, name: str = "Weld") -> Msg:
    return AssistantMsg("smith", [ToolResultBlock(id=call_id, name=name, output=output)])


GOAL = UserMsg("ana", "Repair the bridge, girder by girder. " + "It is old. " * 60)
TALK = AssistantMsg("smith", "I look at the girders first. " + "Rust everywhere. " * 80)
CALL, RESULT = call("c-4", arguments='{"girder": 4}'), result("c-4", "sparks " * 400)
NEWEST = UserMsg("ana", "And hurry.")
ASKED = "Asked: ana: " + GOAL.get_text_content()[:187] + "…"
"""What the end of a summary says of the goal where it leaves the context."""
STORY = (GOAL, TALK, CALL, RESULT, NEWEST)


def script(folder: Path, *lines: Mapping[str, Any], name: str = "bridge.jsonl") -> str:
    """A scripted model whose lines are all for summaries."""
    file = folder / name
    file.write_text("\n".join(json.dumps({"for": "summary", **line}) for line in lines) + "\n")
    return f"scripted:{file}"


@dataclass
class Stage:
    model: str
    offload_answers: str | Exception = ""
    condensers: Mapping[str, Condenser] = field(default_factory=lambda: BUILT_IN)
    providers: Providers = field(default_factory=lambda: Providers({}))
    attempt: int = 1
    attempts: int = 0
    """That the server grants; 0 = any number."""
    count: CountFor = by_bytes
    contexts: Contexts = field(default_factory=Contexts)
    system: str = "You fix bridges."
    tools: tuple[ToolDescriptor, ...] = ()
    dropped: list[Dropped] = field(default_factory=list)

    environment: ActivityEnvironment = field(default_factory=ActivityEnvironment)
    heartbeat_seconds: float = 60
    """Long enough for the SDK's first import on a busy machine: late beats have tests of their own."""

    async def compress(self, messages: Sequence[Msg] = STORY, old_summary: str = "", **asked: Any) -> ContextCompressed:
        specs = Specs()
        layers = ([summary_message(old_summary)] if old_summary else []) + list(messages)
        ask = CompressInput(
            **{
                "context": ContextAddress(tail=tuple(Inline(message=message) for message in layers)),
                "has_summary": bool(old_summary),
                "keep_from": len(messages) - 1,
                "epoch": 7,
                "goal_tokens": 1_000,
                "spec_digest": specs.keep(self.system, self.tools),
                "model": self.model,
                "config": ModelConfig(),
                "context_config": ContextConfig(),
                "context_length": 30_000,
                "call_number": 0,
                "session_id": "bridge-1",
                "agent": "smith",
                **asked,
            }
        )
        parts = WorkerParts(workspaces=Workspaces(Path("/no/files")), contexts=self.contexts, specs=specs)
        activity = Compressing(parts, self.providers, self._offload, condensers=self.condensers, count=self.count)
        self.environment.info = replace(
            self.environment.info,
            attempt=self.attempt,
            retry_policy=RetryPolicy(maximum_attempts=self.attempts),
            heartbeat_timeout=timedelta(seconds=self.heartbeat_seconds),
        )
        return await self.environment.run(activity.compress, ask)

    async def _offload(self, dropped: Dropped) -> str:
        self.dropped.append(dropped)
        if isinstance(self.offload_answers, Exception):
            raise self.offload_answers
        return self.offload_answers

    def new_context(self) -> list[Msg]:
        return list(self.contexts.session(self.environment.info.workflow_id or "", 7).messages)


def info_of(error: ApplicationError) -> ErrorInfo:
    return ErrorInfo.model_validate(error.details[0])


def usage_of(error: ApplicationError) -> Usage:
    return Usage.model_validate(error.details[1])
