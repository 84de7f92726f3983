"""Activities of a few lines: `greet_host` says that a host is back, `hear_child` what the closed session of a
sub-agent has returned, `handle_interrupt` what a custom agent or middlewares say to an interrupt; `record_memory`
writes a reply into long-term memory, `verify_decisions` checks signatures, and `tell_environment` tells `longhaul
doctor` what a worker has.
"""

import asyncio
import os
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from temporalio import activity
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.secrets import SecretsSetupError, WorkerSecrets
from longhaul.activities.attempt.workspaces import not_here
from longhaul.activities.contract import (
    GREET_HOST,
    HANDLE_INTERRUPT,
    HEAR_CHILD,
    RECORD_MEMORY,
    TELL_ENVIRONMENT,
    VERIFY_DECISIONS,
    ChildHeard,
    GreetHost,
    HearChild,
    InterruptInput,
    MemoryInput,
    WorkerEnvironment,
)
from longhaul.activities.custom_agents.custom_agent_turns import CustomAgentTurns
from longhaul.activities.middlewares.middleware import Interruption
from longhaul.activities.middlewares.middleware_chain import MiddlewareFailed
from longhaul.activities.middlewares.session_middlewares import Wrapping
from longhaul.activities.process.container import image_problem
from longhaul.activities.process.program_output import words_of
from longhaul.activities.process.program_run import find_ripgrep
from longhaul.activities.process.sandbox import SandboxPolicy, bwrap_problem
from longhaul.activities.process.threads import is_cancelled_here
from longhaul.agent.decisions.model_turn import LONGEST_WORDS
from longhaul.agent.entries import HostBack, InterruptHandled, MemoryRecorded, Verified, VerifyDecisions
from longhaul.agent.operations.approval_operations import BadKey, keys_of, why_not
from longhaul.agent.operations.bodies import Confirm
from longhaul.agent.values.spec.knowledge import dialogue
from longhaul.stores.memories.memories import MOST_CHARS, Memories, MemoryOwner, NewMemory


@activity.defn(name=GREET_HOST)
async def greet_host(ask: GreetHost) -> HostBack:
    return HostBack(host=ask.host)


SECONDS = 10.0


@activity.defn(name=HEAR_CHILD)
async def hear_child(ask: HearChild) -> ChildHeard:
    """Raises what may pass; a session that somebody has opened again speaks for itself meanwhile."""
    session = activity.client().get_workflow_handle(ask.workflow_id, result_type=dict[str, Any])
    try:
        async with asyncio.timeout(SECONDS):
            return ChildHeard(closed=await session.result())
    except WorkflowFailureError as error:
        return ChildHeard(why=str(error.cause))
    except TimeoutError:
        raise ApplicationError("it has been opened again, and has not closed", type="Open") from None
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return ChildHeard(why="its history has been deleted")


class Interrupting:
    def __init__(self, wrapping: Wrapping, secrets: WorkerSecrets, turns: CustomAgentTurns | None = None) -> None:
        self._wrapping = wrapping
        self._turns = turns or CustomAgentTurns()
        self._masker = secrets.masker

    @activity.defn(name=HANDLE_INTERRUPT)
    async def handle_interrupt(self, ask: InterruptInput) -> InterruptHandled:
        """A hook that fails is told of, and ends the reply no less. Raises NotHere for one that this worker lacks,
        and ModelFailed for a custom agent whose code fails."""
        async with beating():
            wrapped = self._wrapping.of_interrupt(ask)
            try:
                said = await self._turns.parting(ask.custom_agent, ask.message, ask.tools) if ask.custom_agent else ""
                said = said or await wrapped.parting(Interruption(ask.message, ask.tools))
            except MiddlewareFailed as error:
                return InterruptHandled(reply_id=ask.reply_id, error=str(error))
        # Lone surrogates can't be recorded.
        words = said[:LONGEST_WORDS].encode("utf-8", "replace").decode()
        return InterruptHandled(reply_id=ask.reply_id, said=self._masker.masked(words))


TRIES = 3
ANSWER_SECONDS = 20.0


class Memorising:
    def __init__(self, memories: Memories, secrets: WorkerSecrets) -> None:
        self._memories, self._masker = memories, secrets.masker

    @activity.defn(name=RECORD_MEMORY)
    async def record_memory(self, ask: MemoryInput) -> MemoryRecorded:
        """A store that fails is asked again, and then the reply ends without: somebody waits for it."""
        text = self._masker.masked(dialogue(ask.asked, ask.agent, ask.answered))[:MOST_CHARS]
        if not text:
            return MemoryRecorded(reply_id=ask.reply_id)
        new = NewMemory(f"{ask.session_id}/{ask.reply_id}", text, ask.session_id)
        try:
            async with beating(), asyncio.timeout(ANSWER_SECONDS):
                await self._memories.record(MemoryOwner(ask.user_id, ask.agent), [new])
        except BaseException as error:  # A store may be the operator's own and raise anything: the reply has been made.
            if activity.info().attempt < TRIES or is_cancelled_here(error):
                raise
            return MemoryRecorded(reply_id=ask.reply_id, error=self._masker.masked(words_of(error)))
        return MemoryRecorded(reply_id=ask.reply_id, memories=1)


class Verifying:
    """Knows the keys of `LONGHAUL_APPROVAL_KEY`. Raises SecretsSetupError for a setting that can't be used."""

    def __init__(self, keys: str) -> None:
        try:
            self._keys = keys_of(keys)
        except BadKey as bad:
            raise SecretsSetupError(f"LONGHAUL_APPROVAL_KEY: {bad}") from bad

    @activity.defn(name=VERIFY_DECISIONS)
    async def verify_decisions(self, ask: VerifyDecisions) -> Verified:
        """Raises NotHere where there are no keys: another worker may have them."""
        if not self._keys:
            raise not_here("this worker has no LONGHAUL_APPROVAL_KEY to check a signed decision with")
        # The server says which session this is: a body can't.
        session = activity.info().workflow_id or ""
        why, key = why_not(Confirm.model_validate(ask.body), self._keys, session)
        return Verified(why=why, key=key)


PROVIDER_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")


class Surroundings:
    """`keys`: variables beside those of the providers that we know, as the operator has named them."""

    def __init__(self, keys: Iterable[str], sandbox: SandboxPolicy) -> None:
        self._sandbox = sandbox
        self._keys = sorted({*PROVIDER_KEYS, *keys})

    @activity.defn(name=TELL_ENVIRONMENT)
    async def tell_environment(self) -> WorkerEnvironment:
        """Names of keys alone: a value would stand in the history."""
        try:
            release = version("longhaul-agents")
        except PackageNotFoundError:
            release = ""
        return WorkerEnvironment(
            release=release,
            keys=tuple(name for name in self._keys if os.environ.get(name, "").strip()),
            ripgrep=str(await asyncio.to_thread(find_ripgrep) or ""),
            sandbox=await asyncio.to_thread(bwrap_problem) or "",
            images={image.name: await image_problem(image, self._sandbox.limits) for image in self._sandbox.images},
        )
