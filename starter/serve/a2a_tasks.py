"""Tasks of the Agent2Agent protocol as what they are here: replies of sessions, read again for each request.

A context is a session, and a task is one of its replies. A task's id names both, so that each server finds it again and
no server keeps any. What waits for somebody says so in words and as data; an unknown outcome is never left out.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import TaskNotFoundError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from longhaul.agent.values.conversation.messages import (
    Base64Source,
    DataBlock,
    FinishedReason,
    Msg,
    ToolResultBlock,
    ToolResultState,
)
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import Following, Until
from longhaul.starter.client.reading.live_stream import RESTARTED, WITHDRAWN, ToldOnce
from longhaul.starter.client.session import Session
from longhaul.workflows.contract import PendingCall, ReplyResult

ENDS: Mapping[FinishedReason, TaskState] = {
    FinishedReason.COMPLETED: TaskState.TASK_STATE_COMPLETED,
    FinishedReason.INTERRUPTED: TaskState.TASK_STATE_CANCELED,
    FinishedReason.REFUSED: TaskState.TASK_STATE_REJECTED,
    FinishedReason.REJECTED: TaskState.TASK_STATE_REJECTED,
    FinishedReason.ERROR: TaskState.TASK_STATE_FAILED,
    FinishedReason.EXCEED_MAX_ITERS: TaskState.TASK_STATE_FAILED,
    FinishedReason.STUCK: TaskState.TASK_STATE_FAILED,
    FinishedReason.OUT_OF_BUDGET: TaskState.TASK_STATE_FAILED,
    FinishedReason.INCOMPLETE: TaskState.TASK_STATE_FAILED,
    FinishedReason.UNSTRUCTURED: TaskState.TASK_STATE_FAILED,
}
"""The state of a task by how its reply has ended."""
HAS_ENDED = frozenset(ENDS.values())
RESTS = HAS_ENDED | {TaskState.TASK_STATE_INPUT_REQUIRED}
"""Nothing moves until somebody sends something."""
ARTIFACT = "reply"
"""Id of each task's one artifact: what the agent said last."""
JSON = "application/json"
NEWEST_EVENTS = 50
"""Of a session's last events, the reply of the newest one is its newest."""
_REPLY_ID = re.compile(r"[0-9a-f]{32}")
_ANSWERS = {
    "person": 'waits for a person. Decide: {"decide": {"call_id": …, "decision": "allow" or "deny", "digest": …}}',
    "outside": 'waits for its result. Send it: {"externalResults": {"results": [{"id": …, "output": …}]}}',
    "resolution": 'has an unknown outcome: nobody knows whether it happened. Say it: {"resolve": {"call_id": …, '
    '"happened": true or false}}',
    "budget": "waits: the session needs more than it may spend. Its people can raise the budget",
}
"""What waits for somebody, and the data part that answers it."""


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """Where a task is."""

    session: Session
    reply_id: str

    @property
    def id(self) -> str:
        return f"{self.session.id}/{self.reply_id}"


def place_of(task_id: str, session: Callable[[str], Session]) -> TaskPlace:
    """Raises TaskNotFoundError for what is no id of a task."""
    name, _, reply_id = task_id.rpartition("/")
    if not name or not _REPLY_ID.fullmatch(reply_id):
        raise TaskNotFoundError(f"id: there is no task {task_id[:200]!r} here")
    return TaskPlace(session(name), reply_id)


async def task_of(place: TaskPlace) -> Task:
    """The task as it is now. Raises TaskNotFoundError and NoSession."""
    session, found = place.session, await place.session.result(place.reply_id)
    if found.status == "unknown":
        raise TaskNotFoundError(f"id: there is no task {place.id[:200]!r} here")
    if found.status == "finished" and found.message is not None:
        return await _ended(place, found.message)
    calls = await _asked(session, found)
    state = TaskState.TASK_STATE_SUBMITTED if found.status == "queued" else TaskState.TASK_STATE_WORKING
    if needs_answer(calls):
        state = TaskState.TASK_STATE_INPUT_REQUIRED
    parts = [_text("\n".join(map(_in_words, calls)))] if calls else []
    if state == TaskState.TASK_STATE_INPUT_REQUIRED:
        parts.append(_data({"waiting": [call.model_dump(mode="json") for call in calls]}))
    elif why := await _why_nothing_moves(session):
        parts.append(_text(why))
    at = max((call.asked_at for call in calls), default="")
    return _task(place, TaskStatus(state=state), parts, at, found.message)


def needs_answer(calls: Iterable[PendingCall]) -> bool:
    """Whether one of them does more than sleep."""
    return any(call.waits_for in _ANSWERS for call in calls)


async def _asked(session: Session, found: ReplyResult) -> Sequence[PendingCall]:
    """What the reply waits for: its own calls, or those of sub-agents that nothing moves without."""
    if found.status == "waiting":
        return await session.pending()
    return await session.tree.standing_still() if found.delegates else ()


async def _ended(place: TaskPlace, message: Msg) -> Task:
    reason = message.finished_reason or FinishedReason.ERROR
    said = [message.error.message if message.error is not None else f"the reply has ended: {reason.value}"]
    said = [] if reason is FinishedReason.COMPLETED else said
    lost = [one for one in message.get_tool_results() if one.state is ToolResultState.UNKNOWN]
    open_ones = await place.session.own_pending() if lost else []
    unknown = [call for call in open_ones if call.waits_for == "resolution" and call.reply_id == message.id]
    parts = [_text("\n".join((*said, *map(_in_words, unknown))))] if said or unknown else []
    if unknown:
        parts.append(_data({"waiting": [call.model_dump(mode="json") for call in unknown]}))
    return _task(place, TaskStatus(state=ENDS[reason]), parts, message.finished_at, message)


async def _why_nothing_moves(session: Session) -> str:
    """Of a task that is under way; empty where something does, as far as the session knows."""
    status = await session.status()
    if status.quarantine:
        return f"The session is quarantined until somebody resumes it: {status.quarantine}"
    if status.paused_since:
        return f"{status.paused_by or 'Somebody'} has paused the session. {status.paused_why}".rstrip()
    if status.host_unavailable:
        return f"The host {status.host_unavailable!r} of the session's workspace is unavailable."
    if status.outage is not None:
        return "The provider of the session's model is unavailable, and the session waits for it."
    return f"The session waits for a worker that can continue: {status.lacking}" if status.lacking else ""


def _in_words(call: PendingCall) -> str:
    what = f"{call.path or call.tool} ({call.call_id}), {call.input}"
    why = f" {call.reason}" if call.reason else ""
    if call.waits_for in _ANSWERS:
        return f"{what} {_ANSWERS[call.waits_for]}.{why}"
    return f"{what} sleeps until {call.wakes_at or 'somebody sends its event'}.{why}"


def _text(text: str) -> Part:
    return Part(text=text)


def _data(value: dict[str, Any]) -> Part:
    return Part(data=ParseDict(value, Value()), media_type=JSON)


def _task(place: TaskPlace, status: TaskStatus, parts: Sequence[Part], at: str, reply: Msg | None) -> Task:
    """`parts`: what the status says. `at`: ISO time of it; empty where nobody knows."""
    if parts:
        # Asked for twice it is the same message, so its id follows from what it says.
        named = f"{place.reply_id}-{TaskState.Name(status.state)}"
        message = Message(message_id=named, role=Role.ROLE_AGENT, parts=parts)
        message.task_id, message.context_id = place.id, place.session.id
        status.message.CopyFrom(message)
    if at:
        status.timestamp.FromDatetime(datetime.fromisoformat(at))
    content = _said(reply) if reply is not None else []
    artifacts = [Artifact(artifact_id=ARTIFACT, name="reply", parts=content)] if content else []
    return Task(id=place.id, context_id=place.session.id, status=status, artifacts=artifacts)


def _said(reply: Msg) -> list[Part]:
    """What the agent said last, with the pictures and other data behind its last tool result, and the answer in the
    form that was asked for."""
    parts = [_text(text)] if (text := reply.get_text_content()) else []
    last = max((at for at, block in enumerate(reply.content) if isinstance(block, ToolResultBlock)), default=-1)
    for block in reply.content[last + 1 :]:
        if isinstance(block, DataBlock):
            source, name = block.source, block.name or ""
            if isinstance(source, Base64Source):
                part = ParseDict({"raw": source.data, "mediaType": source.media_type, "filename": name}, Part())
            else:
                part = Part(url=source.url, media_type=source.media_type, filename=name)
            parts.append(part)
    return [*parts, *([_data(reply.structured_output)] if reply.structured_output is not None else [])]


Update = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
NextEvents = Callable[[Until | Following], Awaitable[list[AgentEvent] | None]]
"""The next events of a reader; None when the server is about to end."""


@dataclass(slots=True)
class _Streamed:
    """What was streamed of a task's artifact, so that its end tells only what was not."""

    place: TaskPlace
    text: str = ""
    _apart: bool = False
    _told: ToldOnce = field(default_factory=ToldOnce)

    def of(self, event: AgentEvent) -> list[TaskArtifactUpdateEvent]:
        if event.reply_id != self.place.reply_id:
            return []
        return [update for each in self._told.of(event) if (update := self._of(each)) is not None]

    def _of(self, event: AgentEvent) -> TaskArtifactUpdateEvent | None:
        match event.type:
            case "TEXT_BLOCK_START":
                self._apart = True
            case "TEXT_BLOCK_DELTA" if event.delta:
                # A recorded delta goes on where the live ones have ended, though its block begins once more.
                apart = "\n" if self._apart and self.text and event.whole is None else ""
                self._apart = False
                update = self._update([_text(apart + event.delta)], append=bool(self.text))
                self.text += apart + event.delta
                return update
            case "TOOL_RESULT_END":
                self.text = ""  # the artifact is what is said behind the last result
            case "CUSTOM" if event.name in (RESTARTED, WITHDRAWN):
                self.text = ""
            case _:
                pass
        return None

    def rest(self, task: Task) -> list[TaskArtifactUpdateEvent]:
        """The whole artifact where what was streamed is not it."""
        parts = task.artifacts[0].parts if task.artifacts else []
        if not parts or (len(parts) == 1 and parts[0].text == self.text):
            return []
        self.text = parts[0].text
        return [self._update(parts, append=False, last=True)]

    def _update(self, parts: Sequence[Part], *, append: bool, last: bool = False) -> TaskArtifactUpdateEvent:
        artifact = Artifact(artifact_id=ARTIFACT, name="reply", parts=parts)
        task, context = self.place.id, self.place.session.id
        return TaskArtifactUpdateEvent(
            task_id=task, context_id=context, artifact=artifact, append=append, last_chunk=last
        )


async def updates(place: TaskPlace, start: int, take: NextEvents, *, to_the_end: bool) -> AsyncGenerator[Update]:
    """The task as it is, and then what happens to it: until it has ended, or, unless `to_the_end`, waits for somebody.

    `start`: number of the session's first event that may not be in the task as it is. A task that sleeps is over too,
    unless `to_the_end`. Raises TaskNotFoundError and NoSession.
    """
    streamed, session = _Streamed(place), place.session
    task = await task_of(place)
    yield task
    while task.status.state not in (HAS_ENDED if to_the_end else RESTS):
        async with aclosing(session.until(place.reply_id, start)) as until:
            while not until.over:
                events = await take(until)
                if events is None:
                    return
                for event in events:
                    start = max(start, event.seq + 1)
                    for update in streamed.of(event):
                        yield update
        task = await task_of(place)
        for update in streamed.rest(task):
            yield update
        yield TaskStatusUpdateEvent(task_id=place.id, context_id=session.id, status=task.status)
        if not to_the_end:
            return
        if task.status.state not in HAS_ENDED and not await _something_came(place, start, take):
            return


async def _something_came(place: TaskPlace, start: int, take: NextEvents) -> bool:
    """Once the session records something more; False when the server is about to end."""
    async with aclosing(place.session.following(start, live=False, shown=False)) as following:
        events: list[AgentEvent] | None = []
        while events == []:
            events = await take(following)
    return events is not None


async def replies_of(session: Session, *, all_of_them: bool) -> list[str]:
    """Ids of its replies, the newest first: those that have started, or only the newest. Raises NoSession."""
    start = 1 if all_of_them else max(await session.last_event() - NEWEST_EVENTS, 1)
    found = dict[str, None]()
    while (page := await session.events(start)).events:
        for event in page.events:
            if event.reply_id:
                found.pop(event.reply_id, None)
                found[event.reply_id] = None
        start = page.events[-1].seq + 1
    newest = list(reversed(found))
    return newest if all_of_them else newest[:1]
