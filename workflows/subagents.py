"""Starts sub-agents as sessions of their own, and carries what parent and child say to each other, by signals.

A sub-agent outlives the run that started it, which may continue as new. Its payloads are encrypted with the key
of the session that starts it, so whoever deletes that key deletes the whole tree. Whose child a workflow is must
be known before its first payload leaves the worker; so that is noted here, beside workflow code, which decides
nothing by it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import Priority, RawValue, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, FailureError, WorkflowAlreadyStartedError
from temporalio.worker import (
    Interceptor,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from longhaul.activities.contract import HEAR_CHILD, ChildHeard, HearChild
from longhaul.agent import entries as e
from longhaul.agent.decisions.subagent_start import at_work, beginning, lost, not_started, started
from longhaul.agent.entries import AskerTold, HubTold
from longhaul.agent.journal import Journal
from longhaul.agent.operations.bodies import ANSWERED, CHILD_REPORTED, REPORT_AGAIN, Unusable
from longhaul.agent.operations.peer_operations import take_report
from longhaul.agent.plain.ids import fairness_key, is_target_workflow, reply_id
from longhaul.agent.steps import Report, Tell
from longhaul.agent.values.conversation.messages import ToolCallState, UserMsg, title_of
from longhaul.agent.values.hubs import MEMBER_SAID
from longhaul.agent.values.subagents import Child
from longhaul.agent.views.session_views import answer, member_said, report
from longhaul.workflows import activity_options
from longhaul.workflows.contract import (
    AGENT,
    SESSION,
    STATUS,
    TASK_TIMEOUT,
    TITLE,
    USER,
    WORKFLOW,
    Closed,
    SessionStart,
)
from longhaul.workflows.payload_converter import FOR_USER, SessionKeys, owner_of, result_of
from longhaul.workflows.running_activities import undisturbed

_BELONGS = "longhaul_key_belongs"


class SharedKeys(Interceptor):
    def __init__(self, namespace: str, keys: SessionKeys) -> None:
        self._namespace, self._keys = namespace, keys

    def workflow_interceptor_class(
        self,
        input: WorkflowInterceptorClassInput,  # noqa: A002  the SDK's name
    ) -> type[WorkflowInboundInterceptor] | None:
        functions = cast(dict[str, Any], input.unsafe_extern_functions)
        functions[_BELONGS] = self._belongs
        return _Inbound

    def _belongs(self, child: str, parent: str) -> None:
        self._keys.belongs(owner_of(self._namespace, child), owner_of(self._namespace, parent))


class _Inbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Outbound(outbound))


class _Outbound(WorkflowOutboundInterceptor):
    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:  # noqa: A002  the SDK's name
        belongs = cast(Callable[[str, str], None], workflow.extern_functions()[_BELONGS])
        if not is_target_workflow(input.id):  # that is no session, and has keys of its user's own, if any
            belongs(input.id, workflow.info().workflow_id)
        return await super().start_child_workflow(input)


async def signal(workflow_id: str, operation: str, body: dict[str, Any] | RawValue) -> str:
    """Why it could not be sent; empty when it was."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(operation, body)
    except FailureError as error:
        return str(error) or type(error).__name__
    return ""


def for_user(value: object) -> RawValue:
    """What a workflow of the user's is to read, as the user's own codec leaves it."""
    payload = workflow.payload_converter().to_payload(value)
    payload.metadata[FOR_USER] = b""
    return RawValue(payload)


async def tell_asker(journal: Journal, request: str) -> AskerTold:
    """What is to be written down of it. A workflow that has ended is told nothing more."""
    asker = journal.askers[request]
    body = for_user(answer(journal, asker).model_dump(mode="json"))
    return AskerTold(request_id=request, error=await signal(asker.workflow_id, ANSWERED, body))


async def tell_hub(journal: Journal, hub: str, reply: str) -> HubTold:
    """What is to be written down of it. A hub that is gone is told nothing more."""
    said = member_said(journal, workflow.info().workflow_id, hub, reply)
    return HubTold(hub=hub, reply_id=reply, error=await signal(hub, MEMBER_SAID, said.model_dump(mode="json")))


LARGEST_START_BYTES = 200_000
"""Of all that a sub-agent begins with: an oversized command would end the session that gives it."""
STOPPING_SECONDS = 10
"""How long a reply that was interrupted waits for its sub-agents to say how far they came."""
LOOKS = (2, 10, 60, 600, 3_600)
"""Seconds between looks whether a sub-agent is still there, of a run that did not start it; the last one goes on."""


class Children:
    """The sub-agents of one session, and its own word to the session that started it."""

    def __init__(
        self,
        journal: Journal,
        write: Callable[[e.AnyEntry], None],
        beside: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._journal = journal
        self._write = write
        self._beside = beside

        self._watched = set[str]()
        """Call ids of those whose end the server tells this run."""

    def watch(self) -> None:
        """To be called at the begin of a run, and where an earlier incarnation was found: of what an earlier run has
        started the server tells this one nothing, and what an operation said meanwhile nobody heard."""
        for child in at_work(self._journal):
            self._beside(self._look_after(child))

    async def start(self, call_id: str) -> tuple[e.AnyEntry, ...]:
        """What is to be written down: that it has started, or why it can't."""
        call = self._journal.open_calls[call_id]
        new = beginning(self._journal, call, workflow.info().workflow_id)
        start = SessionStart(
            session_id=new.child.session_id,
            user_id=self._journal.state.user_id,
            spec=new.spec,
            search_attributes=self._journal.search_attributes,
            parent=new.parent,
            request=new.request,
        )
        size = len(start.model_dump_json(by_alias=True).encode())
        if size > LARGEST_START_BYTES:
            why = f"its settings and its task have {size // 1000} kB, and the most is {LARGEST_START_BYTES // 1000} kB"
            return (not_started(call, new.child, why),)
        try:
            child = new.child
            named = {"agent": child.agent, "user": self._journal.state.user_id, "session": child.session_id}
            handle = await workflow.start_child_workflow(
                WORKFLOW,
                start,
                id=child.workflow_id,
                # The call is started once, whatever becomes of this run: the server holds it to that.
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                task_timeout=TASK_TIMEOUT,
                memo={**named, TITLE: title_of(start.request.messages if start.request is not None else ())},
                search_attributes=self._attributes(child),
                # What is not said here the server takes from this session.
                priority=Priority(
                    priority_key=new.spec.priority, fairness_key=fairness_key(new.spec.fairness_key) or None
                ),
                static_summary=child.agent[:120],
                result_type=RawValue,
            )
        except WorkflowAlreadyStartedError:
            return (not_started(call, new.child, "there is a session of that name already, or there was one"),)
        except FailureError as error:
            return (not_started(call, new.child, str(error)),)
        self._watched.add(call_id)
        self._beside(self._watch(new.child, handle))
        return started(self._journal, new.child)

    def _attributes(self, child: Child) -> TypedSearchAttributes:
        if not self._journal.search_attributes:
            return TypedSearchAttributes.empty
        pairs = [SearchAttributePair(STATUS, "working"), SearchAttributePair(AGENT, child.agent)]
        known = workflow.info().typed_search_attributes
        if known.get(SESSION) == self._journal.state.session_id:  # else names are hidden from the index
            pairs.append(SearchAttributePair(SESSION, child.session_id))
        if (user := known.get(USER)) is not None:
            pairs.append(SearchAttributePair(USER, user))
        return TypedSearchAttributes(pairs)

    async def _watch(self, child: Child, handle: workflow.ChildWorkflowHandle[Any, Any]) -> None:
        """Hear the end of its session: with what it returns, if it has not reported before; or that it was ended from
        outside."""
        why = "it closed"
        try:
            self._hear(result_of(await handle, dict[str, Any]))
        except FailureError as error:
            why = str(error.cause or error)
        self._lose(child, why)

    def _hear(self, returned: object) -> None:
        """What is no report of a sub-agent of this session changes nothing."""
        own = workflow.info().workflow_id
        with suppress(ValidationError, Unusable):
            if told := Closed.model_validate(returned).report:
                for entry in take_report(self._journal, told, lambda request: reply_id(own, request)).entries:
                    self._write(entry)

    async def _gone(self, child: Child, why: str) -> None:
        """Of one that takes no operations any more: what its session has returned may be its report."""
        if child.call_id in self._watched:
            return
        if self._is_at_work(child):
            ask = HearChild(workflow_id=child.workflow_id)
            try:
                told = await undisturbed(HEAR_CHILD, ask, ChildHeard, activity_options.hear_child())
            except ActivityError as error:
                told = ChildHeard(why=str(error.cause or error))
            self._hear(told.closed)
            why = told.why or why
        self._lose(child, why)

    async def _look_after(self, child: Child) -> None:
        """The same, by asking: whoever is there reports once more when its task has ended."""
        looks = iter(LOOKS)
        while self._is_at_work(child):
            seconds = next(looks, LOOKS[-1])
            why = await signal(child.workflow_id, REPORT_AGAIN, {"call_id": child.call_id})
            if why:
                await self._gone(child, why)
                return
            await workflow.sleep(seconds, summary=f"look after the sub-agent {child.agent}"[:100])

    def _is_at_work(self, child: Child) -> bool:
        return not self._journal.children.get(child.call_id, child).outcome

    def _lose(self, child: Child, why: str) -> None:
        for entry in lost(self._journal, child, why, workflow.info().workflow_id):
            self._write(entry)

    async def say(self, word: Tell | Report) -> None:
        await (self._tell(word) if isinstance(word, Tell) else self._report())

    async def _tell(self, word: Tell) -> None:
        children = [self._journal.children[call_id] for call_id in word.call_ids]
        through = self._journal.seq if word.operation in ("budget", "observe") else 0
        told = await asyncio.gather(*(self._pass_on(word, child) for child in children))
        self._write(e.ChildrenTold(operation=word.operation, call_ids=word.call_ids, through=through))
        for child, why in zip(children, told, strict=True):
            if why:
                await self._gone(child, why)
        if word.operation == "interrupt":
            await self._until_answered(word.call_ids)

    async def _pass_on(self, word: Tell, child: Child) -> str:
        """As `signal`; of its budget each change by itself."""
        if word.operation == "observe":
            by = self._journal.spec.name
            said = [UserMsg(by, text).model_dump(mode="json") for text in child.words.values()]
            return await signal(child.workflow_id, word.operation, {"messages": said})
        if word.operation != "budget":
            return await signal(child.workflow_id, word.operation, self._body(word, child))
        for number, more in child.raises.items():
            body = {
                "more": more.model_dump(mode="json"),
                "allotted": True,
                "by": f"session {self._journal.state.session_id}"[:1_000],
                "request_id": f"{child.call_id}-{number}",
            }
            if why := await signal(child.workflow_id, word.operation, body):
                return why
        return ""

    def _body(self, word: Tell, child: Child) -> dict[str, Any]:
        if word.operation == "interrupt":
            return {"request_id": child.call_id}
        by = f"session {self._journal.state.session_id}"[:1_000]
        return {"by": by, "why": "the session that started it is paused"} if word.operation == "pause" else {"by": by}

    async def _until_answered(self, call_ids: tuple[str, ...]) -> None:
        def answered() -> bool:
            calls = (self._journal.open_calls.get(call_id) for call_id in call_ids)
            return all(call is None or call.state is ToolCallState.FINISHED for call in calls)

        try:
            await workflow.wait_condition(answered, timeout=timedelta(seconds=STOPPING_SECONDS))
        except TimeoutError:
            return  # the result says that it has not answered yet

    async def _report(self) -> None:
        told, parent = report(self._journal), self._journal.parent
        if told is None or parent is None:
            return
        why = await signal(parent.workflow_id, CHILD_REPORTED, told.model_dump(mode="json"))
        self._write(e.ParentTold(error=why))

    async def cancel(self) -> None:
        """Pass a cancellation of the whole session on; whoever is gone already needs none."""
        if handles := [workflow.get_external_workflow_handle(each.workflow_id) for each in at_work(self._journal)]:
            await asyncio.gather(*(handle.cancel() for handle in handles), return_exceptions=True)
