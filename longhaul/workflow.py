"""Asks agents from the workflow code of an application: `ask`, `start` and `session`.

An ask is a session of its own, which goes on whatever becomes of the workflow. It is known by a key: the id of the
workflow and the name of the ask, or the run of the workflow and the ask's number. Whoever asks again under the same key
finds the ask that is there: so a workflow that was reset asks once, and one that has continued as new goes on waiting.

Everything here is deterministic and safe in the SDK's sandbox. It loads values and rules, and no library of a network.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Literal, NoReturn, TypedDict, TypeVar, Unpack, cast, get_args, overload

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue, SearchAttributePair, TypedSearchAttributes, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError

with workflow.unsafe.imports_passed_through():
    from pydantic import BaseModel, TypeAdapter, ValidationError

    from longhaul.agent.entries import RequestAccepted, When
    from longhaul.agent.operations.bodies import ANSWERED, ASK, AskAnswer, AskFromWorkflow
    from longhaul.agent.operations.request_operations import digest_of_request
    from longhaul.agent.permission.rulebook import BadRule, check_book
    from longhaul.agent.plain import ids
    from longhaul.agent.plain.errors import shortened, what_is_wrong
    from longhaul.agent.values.budget import Budget
    from longhaul.agent.values.conversation.messages import Msg, UserMsg, title_of
    from longhaul.agent.values.spec.agent_spec import AgentSpec
    from longhaul.agent.values.subagents import Asker
    from longhaul.workflows.contract import (
        AGENT,
        SESSION,
        STATUS,
        TASK_QUEUE,
        TASK_TIMEOUT,
        TITLE,
        USER,
        WORKFLOW,
        Closed,
        SessionStart,
        priority_of,
    )

BAD_ASK = "BadAsk"
"""Type of the ApplicationError for an invalid ask: a field has a wrong value, or the key belongs to another
question."""
LARGEST_START_BYTES = 1_500_000
"""Of an agent and a question together: the server takes no payload above 2 MiB."""
LOOKS = (2, 10, 60, 600, 3_600)
"""Seconds until a session that this run has not started is asked again whether it is there; the last one goes on."""
ENDING_SECONDS = 30
"""So long a session whose time is over may take to say how far it came."""
PLACE = "longhaul_place"
"""Name of the function by which the plugin says where agents are."""

T = TypeVar("T")
AskState = Literal["success", "error", "interrupted", "timeout", "lost", "busy"]


@dataclass(frozen=True)
class AgentsPlace:
    """Where agents of this application work, and how their sessions are named; the plugin knows it by its settings."""

    task_queue: str = TASK_QUEUE
    search_attributes: bool = True
    is_opaque: bool = False
    workflow_id: Callable[[str, str | None, str], str] = ids.workflow_id
    indexed: Callable[[str], str] = str
    """A user or a session, as a search attribute has it."""


@dataclass(frozen=True)
class UnknownCall:
    """A tool call of unknown outcome."""

    call_id: str
    tool: str
    why: str


@dataclass(frozen=True)
class AskResult(Generic[T]):
    """How an ask ended. What happened to the agent's work is a value, never an exception."""

    state: AskState
    """`success`; `error`: the agent did not complete; `interrupted`: somebody interrupted it; `timeout`: the ask's time
    was over; `lost`: somebody ended the session; `busy`: the session was busy and the ask did not want to wait."""
    words: str
    """The agent's last words; after a failure, the reason first."""
    value: T | None
    """The value that `structured` asked for. None unless the state is `success`."""
    session: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """Cost in US dollars. None: the agents' workers know no price."""
    unknown: tuple[UnknownCall, ...] = ()
    """Calls of unknown outcome. The session stays open until a person resolves them."""


class AskOptions(TypedDict, total=False):
    session: str
    """Name of the session. By default the ask has its own session."""
    user: str | None
    budget: Budget | None
    """Budget instead of the agent's. A session that exists keeps its budget."""
    priority: int
    """Priority of a new session: 1 first, 5 last. By default the agent's, or this workflow's."""
    timeout: timedelta | None
    """Time after which Longhaul interrupts the agent, and the state is `timeout`."""
    name: str
    """Name of the ask. In every run of this workflow id, the same name finds the same ask."""
    when_busy: Literal["queue", "refuse"]
    """What to do if the session works on a reply for somebody else: wait, or end as `busy`."""
    task_queue: str
    """Task queue of the agents' worker. By default the plugin's, or `longhaul`."""


Question = str | Msg | Sequence[Msg]


@overload
async def ask(
    agent: AgentSpec, text: Question, *, structured: type[T], **options: Unpack[AskOptions]
) -> AskResult[T]: ...
@overload
async def ask(
    agent: AgentSpec, text: Question, *, structured: Mapping[str, Any] | None = None, **options: Unpack[AskOptions]
) -> AskResult[Any]: ...
async def ask(agent: AgentSpec, text: Question, *, structured: Any = None, **options: Unpack[AskOptions]) -> Any:
    """Ask an agent, and wait until its reply has ended: for seconds, or for the weeks that people take to approve.

    `structured`: a pydantic model, a dataclass, or a JSON schema of an object that the answer has to fit. If the ask is
    cancelled, Longhaul interrupts the agent and gives it 30 seconds to end. Raises a non-retryable ApplicationError of
    type `BadAsk` if the ask is invalid.
    """
    return await (await start(agent, text, structured=structured, **options)).result()


@overload
async def start(
    agent: AgentSpec, text: Question, *, structured: type[T], **options: Unpack[AskOptions]
) -> "RunningAsk[T]": ...
@overload
async def start(
    agent: AgentSpec, text: Question, *, structured: Mapping[str, Any] | None = None, **options: Unpack[AskOptions]
) -> "RunningAsk[Any]": ...
async def start(agent: AgentSpec, text: Question, *, structured: Any = None, **options: Unpack[AskOptions]) -> Any:
    """Ask as `ask` does, but return as soon as the session has the question. An ask with the same name is found
    again."""
    asks = _asks()
    order = _read(asks, agent, text, structured, cast(dict[str, Any], options))
    running = asks.running.get(order.body.request_id)
    if running is None:
        running = asks.running[order.body.request_id] = RunningAsk(asks, order)
    elif running.order.digest != order.digest or running.session.workflow_id != order.workflow_id:
        _refuse("name", order.name, "stands for another question in this workflow; give each ask a name of its own")
    await running.begin()
    return running


def session(agent: AgentSpec | str, session: str, *, user: str | None = None) -> "RunningSession":
    """A session by its names, to send messages to while it works. `agent` may be the agent's name."""
    name = agent if isinstance(agent, str) else getattr(agent, "name", None)
    if not isinstance(name, str) or not name:
        _refuse("agent", agent, "is no agent; give an AgentSpec or the name of an agent")
    for what, value in (("session", session), ("user", user or "")):
        _check_name(what, value)
    return RunningSession(_place().workflow_id(name, user, session), session)


@dataclass(frozen=True)
class RunningSession:
    """An open session. Methods send a signal, and return whether the session is there to read it."""

    workflow_id: str
    session_id: str

    async def say(self, text: Question, *, when: When = "queue") -> bool:
        """Send a message to the agent. If a reply is under way, the message is the next request (`queue`), joins that
        reply at its next step (`now`), or replaces it (`interrupt`)."""
        if when not in get_args(When):
            _refuse("when", when, f"is no time; it is one of {', '.join(get_args(When))}")
        request = str(workflow.uuid4())
        return await self._signal("submit", {"messages": _messages(text), "when": when, "request_id": request})

    async def interrupt(self, text: Question | None = None, *, request_id: str | None = None) -> bool:
        """End the reply that is under way, or the reply to the request with this id. `text` becomes the next
        request."""
        body: dict[str, Any] = {} if text is None else {"message": _messages(text)}
        return await self._signal("interrupt", body if request_id is None else {**body, "request_id": request_id})

    async def decide(self, call_id: str, *, allow: bool, reason: str = "", approver: str = "") -> bool:
        """Allow or deny a call that waits for a person.

        `approver`: who decided; by default this workflow. If the decision must be signed, the session refuses it: sign
        outside of workflow code.
        """
        decision = {"call_id": call_id, "decision": "allow" if allow else "deny", "reason": reason}
        by = approver or f"workflow {workflow.info().workflow_id}"[: ids.MAX_ID_CHARS]
        return await self._signal("confirm", {"decisions": [decision], "approver": by})

    async def _signal(self, name: str, body: dict[str, Any]) -> bool:
        return not await _signal(self.workflow_id, name, body)


class RunningAsk(Generic[T]):
    """An ask that continues while the workflow does other things."""

    def __init__(self, asks: "_Asks", order: "_Order") -> None:
        self.session = RunningSession(order.workflow_id, order.start.session_id)
        self.order = order
        self._asks = asks
        self._until = None if order.timeout is None else workflow.time() + order.timeout.total_seconds()
        self._sent = False
        self._task = asyncio.create_task(self._through())

    async def begin(self) -> None:
        await self._or_end(workflow.wait_condition(lambda: self._sent or self._task.done()))
        if self._task.done():
            self._task.result()  # what kept it from beginning

    async def result(self) -> AskResult[T]:
        """Wait for the end of the ask, and return how it ended. A second call returns the same. Raises as `ask`
        does."""
        return cast(AskResult[T], await self._or_end(self._result()))

    async def _result(self) -> AskResult[Any]:
        left = None if self._until is None else timedelta(seconds=max(self._until - workflow.time(), 0))
        late = False
        try:
            await workflow.wait_condition(self._task.done, timeout=left, timeout_summary="timeout of the ask")
        except TimeoutError:
            late = True
            await self._end()
        if not self._task.done():
            return AskResult("timeout", "", None, self.session.session_id)
        answer = self._task.result()
        if answer is None:
            return AskResult("lost", "its session was ended from outside", None, self.session.session_id)
        return self.order.result_of(answer, late=late)

    async def _end(self) -> None:
        """Interrupt the agent, and give it the time to say how far it came. There may be no worker to do so."""
        await self.session.interrupt(request_id=self.order.body.request_id)
        with suppress(TimeoutError):
            await workflow.wait_condition(self._task.done, timeout=timedelta(seconds=ENDING_SECONDS))

    async def _or_end(self, waiting: Coroutine[Any, Any, Any]) -> Any:
        """What it comes to. Cancelled, it has the agent end in order first: its session keeps what it did."""
        try:
            return await waiting
        except asyncio.CancelledError:
            await workflow.wait_condition(lambda: self._sent or self._task.done())
            if not self._task.done():
                await self._end()
            raise

    async def _through(self) -> AskAnswer | None:
        """The answer; None of a session that was ended from outside. A session is started, or one that is open is
        asked; one that this run has not started is asked again now and then, for its end is told to nobody here."""
        order, told = self.order, self._asks.answers
        pauses = iter(LOOKS)
        while True:
            child = await order.start_child()
            if child is not None:
                self._sent = True
                answer = await self._of_closed(child)
                if answer is not None or not self._sent:
                    return answer
            else:
                self._sent = not await _signal(order.workflow_id, ASK, order.body.model_dump(mode="json")) or self._sent
            with suppress(TimeoutError):
                pause = timedelta(seconds=next(pauses, LOOKS[-1]))
                await workflow.wait_condition(lambda: order.body.request_id in told, timeout=pause)
            if answer := told.get(order.body.request_id):
                return answer

    async def _of_closed(self, child: workflow.ChildWorkflowHandle[Any, RawValue]) -> AskAnswer | None:
        """What a session has told or returned. None and `_sent`: another run of it is there, and has the question."""
        request_id = self.order.body.request_id
        await workflow.wait_condition(lambda: request_id in self._asks.answers or child.done())
        if answer := self._asks.answers.get(request_id):
            return answer
        try:
            closed = Closed.model_validate_json((await child).payload.data)
        except FailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.non_retryable:
                raise ApplicationError(str(cause.message), type=BAD_ASK, non_retryable=True) from None
            body = self.order.body.model_dump(mode="json")
            self._sent = not await _signal(self.order.workflow_id, ASK, body)  # a session that was reset goes on
            return None
        except ValidationError:
            closed = Closed(seq=0, incarnation=0)
        return closed.answer if closed.answer is not None and closed.answer.request_id == request_id else None


@dataclass(frozen=True)
class _Order:
    """What is asked, of whom."""

    name: str
    start: SessionStart
    body: AskFromWorkflow
    digest: str
    workflow_id: str
    place: AgentsPlace
    timeout: timedelta | None
    adapter: TypeAdapter[Any] | None

    async def start_child(self) -> workflow.ChildWorkflowHandle[Any, RawValue] | None:
        """None: the session is open."""
        start, place, user = self.start, self.place, self.start.user_id
        agent = start.spec.name if start.spec is not None else ""
        pairs: list[SearchAttributePair[Any]] = [
            SearchAttributePair(STATUS, "working"),
            SearchAttributePair(AGENT, agent),
            SearchAttributePair(SESSION, place.indexed(start.session_id)),
            *([] if user is None else [SearchAttributePair(USER, place.indexed(user))]),
        ]
        named = {"agent": agent, "user": user, "session": start.session_id}
        try:
            handle: workflow.ChildWorkflowHandle[Any, RawValue] = await workflow.start_child_workflow(
                WORKFLOW,
                _raw(start),
                id=self.workflow_id,
                task_queue=place.task_queue,
                result_type=RawValue,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                cancellation_type=workflow.ChildWorkflowCancellationType.ABANDON,
                task_timeout=TASK_TIMEOUT,
                memo={**named, TITLE: title_of(self.body.messages)},
                search_attributes=TypedSearchAttributes(pairs if place.search_attributes else []),
                priority=priority_of(start.spec or AgentSpec(), user, place.indexed),
                static_summary=agent[:120] if place.is_opaque else f"{agent}: {start.session_id}"[:120],
            )
        except WorkflowAlreadyStartedError:
            return None
        return handle

    def result_of(self, answer: AskAnswer, *, late: bool) -> AskResult[Any]:
        if answer.state == "refused":
            raise ApplicationError(f"session {answer.session_id!r}: {answer.words}", type=BAD_ASK, non_retryable=True)
        state: AskState = "timeout" if late and answer.state != "success" else answer.state
        value: Any = answer.value
        words = answer.words
        if value is not None and self.adapter is not None:
            try:
                value = self.adapter.validate_python(value)
            except ValidationError as error:
                state, value, words = "error", None, f"the value can't be used: {what_is_wrong(error)}\n{words}"
        return AskResult(
            state=state,
            words=words,
            value=value if state == "success" else None,
            session=answer.session_id,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            cost=answer.cost,
            unknown=tuple(UnknownCall(call.call_id, call.tool, call.why) for call in answer.unknown),
        )


class _Asks:
    """The asks of one run of a workflow, and what it was told of them; the handler of their signal holds it."""

    def __init__(self) -> None:
        self.running = dict[str, RunningAsk[Any]]()
        """By request id."""
        self.answers = dict[str, AskAnswer]()
        self.count = 0

    def hear(self, told: RawValue) -> None:
        """What is no answer changes nothing: anybody may send a signal."""
        try:
            answer = AskAnswer.model_validate_json(told.payload.data)
        except ValidationError:
            encoding = told.payload.metadata.get("encoding", b"").decode("ascii", "replace")[:40]
            workflow.logger.warning("what an agent has answered can't be read here (encoding %r)", encoding)
        else:
            self.answers[answer.request_id] = answer


def _asks() -> _Asks:
    handler: object = workflow.get_signal_handler(ANSWERED)
    asks = getattr(handler, "__self__", None)
    if isinstance(asks, _Asks):
        return asks
    if handler is not None:
        _refuse(
            "signal", ANSWERED, "has a handler of this workflow; agents answer by this signal, so name yours otherwise"
        )
    asks = _Asks()
    workflow.set_signal_handler(ANSWERED, asks.hear)
    return asks


def _read(asks: _Asks, agent: object, text: object, structured: object, options: dict[str, Any]) -> _Order:
    _check_options(options)
    info, user = workflow.info(), options.get("user")
    given: str | None = options.get("name")
    if given is None:
        # In place of a name: the run, whose id a reset keeps, and a number.
        asks.count += 1
        name = f"{asks.count}.{info.original_execution_run_id[:8]}"
        key = f"{info.workflow_id}/{info.original_execution_run_id}/{asks.count}"
    else:
        name, key = given, f"{info.workflow_id}//{given}"
    named = options.get("session") or ids.child_session(info.workflow_id, name)
    spec = _spec(agent, options)
    adapter, schema = _form(structured)
    place = _place()
    place = (
        place if "task_queue" not in options else AgentsPlace(**{**vars(place), "task_queue": options["task_queue"]})
    )
    request_id = key if len(key) <= ids.MAX_ID_CHARS else ids.reply_id("asks", key)
    workflow_id = place.workflow_id(spec.name, user, named)
    try:
        body = AskFromWorkflow.model_validate(
            {
                "request_id": request_id,
                "workflow_id": info.workflow_id,
                "messages": _messages(text),
                "structured_schema": schema,
                "unless_busy": options.get("when_busy") == "refuse",
            }
        )
    except ValidationError as error:
        raise ApplicationError(f"ask: {what_is_wrong(error)}", type=BAD_ASK, non_retryable=True) from None
    digest = digest_of_request(body)
    request = RequestAccepted(
        request_id=request_id,
        reply_id=ids.reply_id(workflow_id, request_id),
        body_digest=digest,
        messages=body.messages,
        structured_schema=schema,
    )
    start = SessionStart(
        session_id=named,
        user_id=user,
        spec=spec,
        search_attributes=place.search_attributes,
        request=request,
        asker=Asker(workflow_id=info.workflow_id, request_id=request_id, by_result=True),
    )
    if (size := len(_raw(start).payload.data)) > LARGEST_START_BYTES:
        _refuse(
            "ask",
            f"{size // 1000} kB",
            f"is too large; the agent and the text may have {LARGEST_START_BYTES // 1000} kB",
        )
    return _Order(name, start, body, digest, workflow_id, place, options.get("timeout"), adapter)


def _check_options(options: dict[str, Any]) -> None:
    if unknown := sorted(options.keys() - AskOptions.__annotations__.keys()):
        _refuse(
            unknown[0],
            options[unknown[0]],
            f"is no option of an ask: these are {', '.join(AskOptions.__annotations__)}",
        )
    for what in ("name", "session", "user", "task_queue"):
        if options.get(what) is not None:
            _check_name(what, options[what])
    if (when_busy := options.get("when_busy", "queue")) not in ("queue", "refuse"):
        _refuse("when_busy", when_busy, "is neither 'queue' nor 'refuse'")
    timeout = options.get("timeout")
    if timeout is not None and not (isinstance(timeout, timedelta) and timeout > timedelta()):
        _refuse("timeout", timeout, "is no time; give a timedelta above zero")


def _spec(agent: object, options: Mapping[str, Any]) -> AgentSpec:
    if not isinstance(agent, BaseModel):
        _refuse("agent", agent, "is no AgentSpec; workflow code can't read agent files, so give the agent itself")
    try:
        own = {name: _plain(options[name]) for name in ("budget", "priority") if options.get(name) is not None}
        spec = AgentSpec.model_validate({**agent.model_dump(warnings=False), **own})
        check_book(spec.permission.rules)
    except (ValidationError, BadRule) as error:
        why = what_is_wrong(error) if isinstance(error, ValidationError) else f"permission.{error}"
        raise ApplicationError(f"agent: {why}", type=BAD_ASK, non_retryable=True) from None
    return spec


def _form(structured: object) -> tuple[TypeAdapter[Any] | None, dict[str, Any] | None]:
    """What checks a value, and the JSON schema that the agent is given."""
    if structured is None:
        return None, None
    if isinstance(structured, Mapping):
        return None, dict(cast(Mapping[str, Any], structured))
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast(Any, structured))
        return adapter, adapter.json_schema()
    except Exception:  # noqa: BLE001  whatever pydantic can't make a schema of is the caller's
        _refuse(
            "structured", structured, "is no form of an answer; give a pydantic model, a dataclass or a JSON schema"
        )


def _messages(text: object) -> list[Any]:
    given = [text] if isinstance(text, str | BaseModel | Mapping) else text
    if not isinstance(given, Sequence) or not given or isinstance(given, bytes):
        _refuse("text", text, "is nothing to ask; give text, a Msg, or a list of Msg")
    made = [UserMsg("user", each) if isinstance(each, str) else each for each in cast(Sequence[object], given)]
    return [_plain(each) for each in made]


def _plain(value: object) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _check_name(what: str, value: object) -> None:
    if not isinstance(value, str):
        _refuse(what, value, "is no text; give a str")
    try:
        ids.check_name(what, value)
    except ValueError as error:
        raise ApplicationError(str(error), type=BAD_ASK, non_retryable=True) from None


def _refuse(field: str, value: object, why: str) -> NoReturn:
    raise ApplicationError(f"{field}: {shortened(value)} {why}", type=BAD_ASK, non_retryable=True)


def _place() -> AgentsPlace:
    say = cast(dict[str, Callable[[], AgentsPlace]], workflow.extern_functions()).get(PLACE)  # pyright: ignore[reportUnknownMemberType]  the SDK's own type
    return AgentsPlace() if say is None else say()


def _raw(value: BaseModel | dict[str, Any]) -> RawValue:
    """JSON as sessions read it, whatever payload converter the application has."""
    text = value.model_dump_json(by_alias=True) if isinstance(value, BaseModel) else TypeAdapter(Any).dump_json(value)
    data = text.encode() if isinstance(text, str) else text
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))


async def _signal(workflow_id: str, name: str, body: dict[str, Any]) -> str:
    """Why nobody is there to read it; empty when somebody is."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(name, _raw(body))
    except FailureError as error:
        return str(error) or type(error).__name__
    return ""
