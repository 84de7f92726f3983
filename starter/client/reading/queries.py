"""Queries to one session, and what its silence means.

A session that is over and for which no worker answers is answered for by what it wrote down last.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from longhaul.agent.incarnation.continued_state import Carried
from longhaul.agent.journal import Journal
from longhaul.agent.operations.settings_operations import list_rules
from longhaul.agent.plain.errors import Damaged, LonghaulError, Unavailable
from longhaul.agent.views.events import EventReducer
from longhaul.agent.views.would_pass import would_pass
from longhaul.starter.connection.connect import no_namespace
from longhaul.starter.connection.pollers import backlog_of, workers
from longhaul.starter.connection.query_retries import IN_VAIN, UNREPLAYABLE, insist
from longhaul.stores.blobs.blobs import BlobsUnavailable
from longhaul.stores.keys.keyring import DELETED as KEY_DELETED
from longhaul.workflows import views
from longhaul.workflows.contract import BLOBS_UNREACHABLE, HISTORY_LOST, BlobGone, SnapshotPage


class PastSession:
    """Read only."""

    def __init__(self, carried: Carried, lacks: str) -> None:
        """`lacks`: what may be missing from it; told with its status."""
        self.lacks = lacks
        why = "it is over, and no worker answers for it"
        carried.session.incarnation.note = "; ".join(
            filter(None, (f"{why}: {lacks}" if lacks else why, carried.session.incarnation.note))
        )
        journal = self._journal = Journal.over(carried.session)
        reducer = EventReducer(carried.events)
        text = carried.model_dump_json()
        self._answers: dict[str, Callable[..., Any]] = {
            "status": lambda: views.status(journal),
            "pending": lambda: views.pending(journal),
            "pending_here": lambda: views.pending_here(journal),
            "state": lambda: journal.state.model_dump(mode="json", exclude={"context"}),
            "spec": lambda: views.spec_texts(journal),
            "would_pass": lambda call_id="": would_pass(journal, call_id),
            "rules": lambda: list_rules(journal),
            "transcript": lambda _epoch=0, start=0: views.context_page(journal, start),
            "messages": lambda start=0: views.message_page(journal, start),
            "events": lambda start=1: views.event_page(reducer, journal, start),
            "entries": lambda start=1: views.entries_page(journal, start),
            "result": lambda reply: views.result(journal, reply),
            "snapshot": lambda *_: SnapshotPage(seq=journal.seq, total=len(text), text=text),
            "stream": lambda: "",
        }

    def answers(self, name: str) -> bool:
        return name in self._answers

    def answer(self, name: str, *arguments: Any) -> Any:
        """As the query of that name."""
        return self._answers[name](*arguments)


log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
QUERY_TIMEOUT = timedelta(seconds=5)
LOOK_BACK_EVENTS = 20
_UNPOLLED = "no poller seen"
"""In the server's word for a query that nobody took for want of workers."""
BEHIND_SECONDS = 3.0
"""A task queue in which something waits for so long has workers that are behind."""
SAY_AGAIN_SECONDS = 60.0
SILENT_SECONDS = 8.0
"""A run that is over changes no more: whoever does not get it from a worker by then reads what was stored."""


class NoSession(LonghaulError):
    """The session has not received a message yet, or is closed."""


class NoReply(NoSession):
    """The session knows no reply with that id: it was never asked for, or more than a thousand replies have ended
    since."""


class Stuck(Unavailable):
    """The session can't continue until somebody fixes what the sentence names. Then it continues by itself."""


class Unexplained(Unavailable):
    """The session's workflow tasks fail, and the server does not say why. The cause may be any of the others."""


class BlobsUnreachable(Unavailable):
    """The session's workers can't reach the blob store that the sentence names. The session continues by itself when
    the store answers again."""


class NoWorker(Unavailable):
    """No worker polls the session's task queue. The session continues by itself when a worker does."""


SILENCES = (Stuck, Unexplained, BlobsUnreachable, NoWorker)
"""Of a session that does not answer; what was stored of one that is over answers for it."""


class HistoryLost(Stuck, Damaged):
    """The blob store lost a part of the session's history. The sentence says what is missing, and how the session
    continues from its last checkpoint if nobody can restore the part."""


class Asking:
    """One session's queries."""

    def __init__(self, client: Client, workflow_id: str, named: str) -> None:
        self.client = client
        self.workflow_id = workflow_id
        self._named = named
        """As in `session 'x' of agent 'y'`."""
        self.stream_address: str | None = None
        """Where its live stream was when it was asked last; None: it was not."""
        self.recall: Callable[[], Awaitable[PastSession | None]] | None = None
        """What is stored of it, for a run that is over and nobody answers for."""
        self._past: tuple[str, PastSession] | None = None
        """And of which run that was."""
        self._waits_since: float | None = None
        """When it was said last that it waits its turn."""

    @property
    def handle(self) -> WorkflowHandle[Any, Any]:
        return self.client.get_workflow_handle(self.workflow_id)

    async def query(self, name: str, answer: type[Answer], *arguments: Any) -> Answer:
        """Ask until an answer comes; of a session that is over and has no worker, what it wrote down last answers.
        Raises NoSession, and what time does not fix."""
        if self._past is not None and (past := await self._stored(name)):
            return cast(Answer, past.answer(name, *arguments))
        asked = asyncio.ensure_future(self._ask(name, answer, arguments))
        try:
            await asyncio.wait({asked}, timeout=SILENT_SECONDS)
            unanswered = not asked.done() or isinstance(asked.exception(), SILENCES)
            if unanswered and (past := await self._stored(name)):
                return cast(Answer, past.answer(name, *arguments))
            return await asked
        finally:
            asked.cancel()

    @property
    def lacks(self) -> str:
        """What may be missing from its answers, when what was stored gave them."""
        return self._past[1].lacks if self._past is not None else ""

    async def _stored(self, name: str) -> PastSession | None:
        """What answers for a run that is over; None for one that may answer itself, or of which nothing is stored."""
        run = await self.over_run()
        if not run or self.recall is None:
            self._past = None
            return None
        if self._past is None or self._past[0] != run:
            found = await self.recall()
            self._past = (run, found) if found is not None else None
        past = self._past[1] if self._past is not None else None
        return past if past is not None and past.answers(name) else None

    async def over_run(self) -> str:
        """The newest run, if the server knows it as one that runs no more; else nothing."""
        try:
            described = await self.handle.describe()
        except RPCError:
            return ""  # unknown, which whoever asks it hears too
        return "" if described.status is WorkflowExecutionStatus.RUNNING else str(described.run_id)

    async def end(self) -> str:
        """How its newest run has ended, in the server's word, as in `completed`; empty for one that runs, or of which
        nobody knows."""
        try:
            described = await self.handle.describe()
        except RPCError:
            return ""
        over = described.status not in (None, WorkflowExecutionStatus.RUNNING)
        return described.status.name.lower() if over and described.status else ""

    async def _ask(self, name: str, answer: type[Answer], arguments: tuple[Any, ...]) -> Answer:
        try:
            found: Answer = await insist(
                lambda: self.handle.query(name, args=list(arguments), result_type=answer, rpc_timeout=QUERY_TIMEOUT),
                self._is_hopeless,
                self.is_behind,
            )
        except RPCError as error:
            in_vain = error.status in IN_VAIN
            raise await (self._why_silent(error.message) if in_vain else self.explained(error)) from error
        except (WorkflowQueryFailedError, BlobGone) as error:
            meant = self._meant(str(error))
            if meant is None:
                raise
            raise meant from error
        return found

    async def _is_hopeless(self, error: RPCError) -> bool:
        """Whether nobody has polled for it lately, or its last task is known to have failed."""
        try:
            unserved = not await workers(self.client, (await self.handle.describe()).task_queue)
            refused = error.status is RPCStatusCode.FAILED_PRECONDITION
            return unserved or _UNPOLLED in error.message or (refused and await self._last_failure() is not None)
        except RPCError:
            return False  # unknown, and asked again

    async def is_behind(self) -> bool:
        """Whether it only waits its turn: workers poll for it, tasks wait there, and none of its own is known to have
        failed. That is logged, once a minute. A task that its worker did not end in time is no failure."""
        try:
            queue = (await self.handle.describe()).task_queue
            backlog = await backlog_of(self.client, queue)
            behind = (
                backlog.oldest.total_seconds() >= BEHIND_SECONDS
                and bool(await workers(self.client, queue))
                and await self._last_failure() is None
            )
        except RPCError:
            return False  # unknown
        now = asyncio.get_running_loop().time()
        if behind and (self._waits_since is None or now - self._waits_since >= SAY_AGAIN_SECONDS):
            self._waits_since = now
            log.warning(
                "the %s waits its turn: %d tasks wait in %r, the oldest for %.0f s",
                *(self._named, backlog.tasks, queue, backlog.oldest.total_seconds()),
            )
        return behind

    def _meant(self, why: str) -> Exception | None:
        """What a worker has said in place of an answer, as far as it is about what the session is made of."""
        if BLOBS_UNREACHABLE in why:
            return BlobsUnreachable(f"the {self._named} waits: {why}; it continues by itself when that can be reached")
        if KEY_DELETED in why:
            return NoSession(f"the {self._named} no longer exists: {why[max(why.find(KEY_DELETED), 0) :]}")
        if HISTORY_LOST in why:
            return self._stuck(why, HistoryLost)
        return self._stuck(f"workers cannot replay its history: {why}") if UNREPLAYABLE in why else None

    def _stuck(self, why: str, kind: type[Stuck] = Stuck) -> Stuck:
        return kind(f"the {self._named} cannot continue: {why}; `longhaul rescue` restores it from its last checkpoint")

    async def _why_silent(self, answered: str) -> Exception:
        """Its last task has failed, or nobody polls for it. Some questions more to the server: whoever hears of it has
        waited in vain already."""
        failure = await self._last_failure()
        queue = (await self.handle.describe()).task_queue
        # Pollers are listed for a minute after they are gone; of a query the server says it sooner.
        if _UNPOLLED in answered or not await workers(self.client, queue):
            before = f" (the last attempt failed: {failure.message})" if failure else ""
            return NoWorker(
                f"no worker polls the task queue {queue!r}, so nothing works for the {self._named}{before}; it "
                "continues by itself when one does: start one with `longhaul worker`"
            )
        if failure is None:
            # Of a task that was lost first, with its worker, later failures are not written down before more comes.
            return Unexplained(
                f"the {self._named} does not continue: workers poll {queue!r}, and its history does not say what "
                "fails, or whether they are too busy for it; look into their log, or send it a message: the next "
                "failure is recorded then"
            )
        if (
            failure.application_failure_info.type == BlobsUnavailable.__name__
            and BLOBS_UNREACHABLE not in failure.message
        ):
            return self._meant(f"{BLOBS_UNREACHABLE}: {failure.message}") or Stuck(failure.message)
        return self._meant(failure.message) or self._stuck(failure.message)

    async def _last_failure(self) -> Failure | None:
        """Of its last tasks."""
        newest = await self.client.workflow_service.get_workflow_execution_history_reverse(
            GetWorkflowExecutionHistoryReverseRequest(
                namespace=self.client.namespace,
                execution=WorkflowExecution(workflow_id=self.workflow_id),
                maximum_page_size=LOOK_BACK_EVENTS,
            )
        )
        failed = [
            event.workflow_task_failed_event_attributes.failure
            for event in newest.history.events
            if event.HasField("workflow_task_failed_event_attributes")
        ]
        return failed[0] if failed else None

    async def was_there(self) -> bool:
        """Whether the server knows of a session of this name, open or closed."""
        try:
            await self.handle.describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return True

    async def explained(self, error: RPCError) -> Exception:
        """What an answer of the server means for whoever asked this session: NoSession, one of SILENCES, or the error
        itself."""
        if error.status is RPCStatusCode.FAILED_PRECONDITION:
            return await self._why_silent(error.message)
        if error.status is RPCStatusCode.NOT_FOUND:
            return no_namespace(self.client, error) or NoSession(f"there is no open {self._named}")
        return error
