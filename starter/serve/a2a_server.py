"""Agents for other agents, by the Agent2Agent protocol: cards of those that the operator publishes, and their tasks.

A token, its user and its scopes count as for every other path. What another agent writes is a request and never a
decision: a call that waits for a person is decided by a data part alone, and by a token with the scope `approve`.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn, cast
from urllib.parse import quote

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers import RequestHandler
from a2a.server.request_handlers.request_handler import validate_request_params
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    HTTPAuthSecurityScheme,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Role,
    SecurityRequirement,
    SecurityScheme,
    SendMessageRequest,
    StringList,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from a2a.utils.constants import (
    AGENT_CARD_WELL_KNOWN_PATH,
    DEFAULT_LIST_TASKS_PAGE_SIZE,
    PROTOCOL_VERSION_CURRENT,
    TransportProtocol,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.task import validate_history_length, validate_page_size
from google.protobuf import json_format
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message as HttpMessage
from starlette.types import Receive, Scope, Send

from longhaul.agent.operations.bodies import Submit
from longhaul.agent.plain.ids import MAX_ID_CHARS, check_name, reply_id
from longhaul.agent.values.conversation.messages import UserMsg
from longhaul.agent.views.event_types import AgentEvent
from longhaul.starter.client.reading.event_reader import Following, Until
from longhaul.starter.client.reading.queries import NoSession, NoWorker
from longhaul.starter.client.session import Session
from longhaul.starter.client.wire import Refused
from longhaul.starter.serve import acts
from longhaul.starter.serve.a2a_messages import ANSWERS, FILES, TEXTS, answer_in, block_of, can_be_sent, session_name
from longhaul.starter.serve.a2a_tasks import (
    HAS_ENDED,
    JSON,
    TaskPlace,
    Update,
    needs_answer,
    place_of,
    replies_of,
    task_of,
    updates,
)
from longhaul.starter.serve.event_stream import SLOWEST_SECONDS, counted, gone
from longhaul.starter.serve.problems import Problem, problem_of, wrong
from longhaul.starter.serve.request_bodies import Decision, Requesting
from longhaul.starter.serve.request_checks import check_body
from longhaul.starter.serve.requests import REQUEST_SECONDS, Call, Served, path_values, session_of, spec_to_begin
from longhaul.starter.serve.tokens import Caller
from longhaul.starter.serve.tokens import Scope as TokenScope
from longhaul.starter.visible import harmless

logging.getLogger("a2a").setLevel(logging.CRITICAL)
"""The package logs each malformed request with its traceback. What is our fault `problem_of` logs."""

PATH = "/a2a/{agent}"
WAITING_CALLS = "urn:longhaul:waiting-calls"
FOREVER_SECONDS = 365 * 86_400.0
PATIENCE_SECONDS = 5.0
"""That one session of a list gets to answer."""
LOOK_SECONDS = 0.25
"""Between two looks at a task that is about to be canceled."""

_ERRORS: dict[str, type[A2AError]] = {
    "not-found": TaskNotFoundError,
    "forbidden": UnsupportedOperationError,
    "media-type": ContentTypeNotSupportedError,
    **dict.fromkeys(("malformed", "refused", "invalid", "too-large", "too-many"), InvalidParamsError),
}
"""What a client of the protocol is told for each kind of problem; InternalError for what is not the caller's fault."""


def routes(served: Served) -> list[Route]:
    """The public cards: one for each published agent, and that of the first one for the whole host."""

    async def card(request: Request) -> Response:
        try:
            agent = path_values(request.path_params).get("agent", served.published[0])
            return JSONResponse(json_format.MessageToDict(_card(served, _published(served, agent), request)))
        except Exception as error:  # noqa: BLE001  each has its problem
            return problem_of(error).response()

    paths = (AGENT_CARD_WELL_KNOWN_PATH, f"{PATH}{AGENT_CARD_WELL_KNOWN_PATH}")
    return [Route(path, card, methods=["GET"]) for path in paths]


async def answer(served: Served, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None:
    """One request by JSON-RPC. It ends with its reader. Raises Problem for an agent that is not published."""
    request = Request(scope, receive)
    agent = _published(served, path_values(request.path_params)["agent"])
    try:
        await request.json()  # before anybody else receives
    except json.JSONDecodeError:
        pass  # the package answers as the protocol says
    except (UnicodeDecodeError, RecursionError) as error:
        unreadable = JSONParseError(message=f"the body can't be read as JSON: {error}")
        await JSONResponse(build_error_response(None, unreadable))(scope, receive, send)
        return
    work = asyncio.ensure_future(JsonRpcDispatcher(TaskRequests(served, caller, agent)).handle_requests(request))
    leaving = asyncio.create_task(gone(receive))
    try:
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            return
        leaving.cancel()

        async def sending(message: HttpMessage) -> None:
            async with asyncio.timeout(SLOWEST_SECONDS):
                await send(message)

        await work.result()(scope, receive, sending)
    finally:
        work.cancel()
        leaving.cancel()


def _published(served: Served, agent: str) -> str:
    """Raises Problem, which does not say whether there is such an agent that is not published."""
    if agent not in served.published:
        raise Problem("not-found", f"agent: there is no agent {agent[:100]!r} here; its operator publishes others")
    return agent


def _card(served: Served, agent: str, request: Request) -> AgentCard:
    nobody = Call(served, served.local, {"agent": agent, "session": ""}, Requesting(), None, Headers())
    about = spec_to_begin(nobody, agent).description or f"The agent {agent}. It runs for as long as its work takes."
    # A proxy that ends TLS says so. A client that forges the header changes its own answer.
    scheme = "https" if request.headers.get("x-forwarded-proto") == "https" else request.url.scheme
    url = f"{scheme}://{request.headers['host']}{served.root_path}/a2a/{quote(agent)}"
    return AgentCard(
        name=agent,
        description=about,
        version=_version(),
        supported_interfaces=[
            AgentInterface(
                url=url, protocol_binding=TransportProtocol.JSONRPC.value, protocol_version=PROTOCOL_VERSION_CURRENT
            )
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=False,
            extended_agent_card=False,
            extensions=[
                AgentExtension(
                    uri=WAITING_CALLS,
                    description="A task in the state input-required lists its calls in a data part, under `waiting`. "
                    "Answer with a data part with one of the keys decide, externalResults and resolve.",
                )
            ],
        ),
        default_input_modes=[*TEXTS, *sorted(FILES)],
        default_output_modes=["text/plain", JSON],
        skills=[AgentSkill(id=agent, name=agent, description=about, tags=["agent"])],
        security_schemes={"bearer": SecurityScheme(http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer"))},
        security_requirements=[] if served.is_open else [SecurityRequirement(schemes={"bearer": StringList()})],
    )


def _version() -> str:
    try:
        return version("longhaul-agents")
    except PackageNotFoundError:
        return "0"


@contextmanager
def _errors() -> Iterator[None]:
    """Raises each error as one of the protocol."""
    try:
        yield
    except A2AError:
        raise
    except Exception as error:
        problem = problem_of(error)
        kind = _ERRORS.get(problem.kind, InternalError)
        raise kind(harmless(problem.detail), data={"type": f"urn:longhaul:{problem.kind}"}) from error


class TaskRequests(RequestHandler):
    """Requests of one caller to one agent. Nothing is kept when the request is over."""

    def __init__(self, served: Served, caller: Caller, agent: str) -> None:
        self._served = served
        self._caller = caller
        self._agent = agent

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        del context
        with _errors():
            place = await self._take(params)
            if not params.configuration.return_immediately:
                call = self._call(place.session.id)
                with counted(self._served, self._caller.name):
                    await acts.within(FOREVER_SECONDS, call, place.session.wait(place.reply_id))
            return await self._task(place)

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        del context
        with _errors():
            self._check_scope("SendStreamingMessage", "read")
            async with asyncio.timeout(REQUEST_SECONDS):
                seen = await self._session(session_name(params.message)).last_event()
            place = await self._take(params)
            async with aclosing(self._updates(place, seen + 1, to_the_end=False)) as told:
                async for update in told:
                    yield update

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        del context
        with _errors():
            self._check_scope("SubscribeToTask", "read")
            place = self._place(params.id)
            async with asyncio.timeout(REQUEST_SECONDS):
                seen = await place.session.last_event()
            if (found := await self._task(place)).status.state in HAS_ENDED:
                raise UnsupportedOperationError(f"id: the task has ended as {_word(found)}; get it with GetTask")
            async with aclosing(self._updates(place, seen + 1, to_the_end=True)) as told:
                async for update in told:
                    yield update

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        del context
        with _errors():
            self._check_scope("GetTask", "read")
            validate_history_length(params)
            return await self._task(self._place(params.id))

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """What was done is not undone. A task that does not end at once is returned as it is."""
        del context
        with _errors():
            self._check_scope("CancelTask", "answer")
            place = self._place(params.id)
            found = await self._task(place)
            if found.status.state in HAS_ENDED:
                raise TaskNotCancelableError(f"id: the task has ended as {_word(found)}")
            async with asyncio.timeout(REQUEST_SECONDS):
                with suppress(Refused):  # interrupted twice, or ended meanwhile: the task says which
                    await place.session.interrupt(reply_id=place.reply_id)
            until = asyncio.get_running_loop().time() + REQUEST_SECONDS
            while (found := await self._task(place)).status.state not in HAS_ENDED:
                if asyncio.get_running_loop().time() > until or self._served.draining.is_set():
                    break
                await asyncio.sleep(LOOK_SECONDS)
            return found

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Of one context all tasks that have started; else the newest task of each of the user's sessions."""
        del context
        with _errors():
            self._check_scope("ListTasks", "read")
            validate_history_length(params)
            size = params.page_size if params.HasField("page_size") else DEFAULT_LIST_TASKS_PAGE_SIZE
            validate_page_size(size)
            start = _number(params.page_token)
            async with asyncio.timeout(2 * REQUEST_SECONDS):
                places = await self._places(params.context_id)
                found = await asyncio.gather(*(self._listed(one) for one in places[start : start + size]))
            tasks = [task for task in found if task is not None and _is_wanted(task, params)]
            for task in tasks:
                if not params.include_artifacts:
                    task.ClearField("artifacts")
            more = str(start + size) if start + size < len(places) else ""
            return ListTasksResponse(tasks=tasks, next_page_token=more, page_size=size, total_size=len(places))

    async def _places(self, context_id: str) -> Sequence[TaskPlace | Session]:
        """Where the tasks are, the newest first."""
        if context_id:
            session = self._session(context_id)
            try:
                return [TaskPlace(session, one) for one in await replies_of(session, all_of_them=True)]
            except NoSession:
                return []
        app, user = self._served.app, self._caller.user
        cards = await app.sessions(user=user, closed=True)
        own = [card for card in cards if card.agent == self._agent and not card.root_workflow_id]
        return [self._session(card.session_id) for card in own if card.user_id == user]

    async def _listed(self, at: TaskPlace | Session) -> Task | None:
        """None of a session that has no task any more, or does not answer in time: it would keep all others back."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                if isinstance(at, TaskPlace):
                    return await task_of(at)
                newest = await replies_of(at, all_of_them=False)
                return await task_of(TaskPlace(at, newest[0])) if newest else None
        except (NoSession, NoWorker, TaskNotFoundError, TimeoutError):
            return None

    async def _refuse_push(self, params: object, context: ServerCallContext) -> NoReturn:
        del params, context
        _no_push()

    on_create_task_push_notification_config = _refuse_push
    on_get_task_push_notification_config = _refuse_push
    on_list_task_push_notification_configs = _refuse_push
    on_delete_task_push_notification_config = _refuse_push

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        del params, context
        raise UnsupportedOperationError("this agent has its public card alone")

    def _call(self, session: str, body: BaseModel | None = None) -> Call:
        """The request by HTTP that would be the same. Raises Problem."""
        try:
            check_name("contextId", session)
        except ValueError as error:
            raise wrong("contextId", session, str(error).removeprefix("contextId: ")) from None
        names = {"agent": self._agent, "session": session}
        return Call(self._served, self._caller, names, Requesting(), body, Headers())

    def _session(self, name: str) -> Session:
        return session_of(self._call(name))

    def _place(self, task_id: str) -> TaskPlace:
        return place_of(task_id, self._session)

    async def _task(self, place: TaskPlace) -> Task:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await task_of(place)

    def _check_scope(self, what: str, scope: TokenScope) -> None:
        """Raises Problem."""
        if scope not in self._caller.scopes:
            raise Problem("forbidden", f"{what}: this needs a token with the scope {scope!r}")

    async def _updates(self, place: TaskPlace, start: int, *, to_the_end: bool) -> AsyncGenerator[Update]:
        call = self._call(place.session.id)

        async def take(reader: Until | Following) -> list[AgentEvent] | None:
            return await acts.within(FOREVER_SECONDS, call, reader.next())

        with counted(self._served, self._caller.name):
            async with aclosing(updates(place, start, take, to_the_end=to_the_end)) as told:
                async for update in told:
                    yield update

    async def _take(self, params: SendMessageRequest) -> TaskPlace:
        """The task that a message begins, joins or answers. Raises Problem, A2AError and Refused."""
        message, wanted = params.message, params.configuration
        if wanted.HasField("task_push_notification_config"):
            _no_push()
        if wanted.accepted_output_modes and not any(map(can_be_sent, wanted.accepted_output_modes)):
            raise ContentTypeNotSupportedError(
                f"acceptedOutputModes: the agent answers in text/plain, and not in {wanted.accepted_output_modes[0]!r}"
            )
        if message.role != Role.ROLE_USER:
            raise wrong("message.role", Role.Name(message.role), "send ROLE_USER")
        if len(message.message_id) > MAX_ID_CHARS:
            raise wrong("message.messageId", message.message_id, f"send {MAX_ID_CHARS} characters at most")
        answers = [one for part in message.parts if (one := answer_in(part)) is not None]
        async with asyncio.timeout(REQUEST_SECONDS):
            if not answers:
                return await self._ask(message)
            if len(answers) < len(message.parts):
                raise wrong("message.parts", "", "send answers in a message of their own, without text and files")
            return await self._answer(message, answers)

    async def _ask(self, message: Message) -> TaskPlace:
        self._check_scope("SendMessage", "answer")
        content = UserMsg("user", [block_of(number, part) for number, part in enumerate(message.parts)])
        name = session_name(message)
        joins = bool(message.task_id) and await self._takes_text(self._place(message.task_id), message)
        body = Submit(messages=(content,), request_id=message.message_id, when="now" if joins else "queue")
        _, taken = await acts.message(call := self._call(name, body))
        # Also where it joins the task's reply. That may end before the model has read it; then it has its own.
        return TaskPlace(session_of(call), taken.reply_id)

    async def _takes_text(self, place: TaskPlace, message: Message) -> bool:
        """Whether the message joins the task's reply. Raises A2AError where it can't come of a message any more."""
        found = await place.session.result(place.reply_id)
        if found.status == "unknown":
            raise TaskNotFoundError(f"message.taskId: there is no task {message.task_id[:200]!r} here")
        sent_before = reply_id(place.session.workflow_id, message.message_id)
        if (await place.session.result(sent_before)).status != "unknown":
            return True
        if found.status == "finished":
            raise UnsupportedOperationError(
                "message.taskId: the task has ended; send the message with its contextId, and without a taskId"
            )
        if found.status == "waiting" and needs_answer(await place.session.pending()):
            raise InvalidParamsError(
                "message.parts: the task waits for an answer, and text is none; send a data part as the message of its "
                "status says"
            )
        return found.status != "queued"

    async def _answer(self, message: Message, answers: Sequence[tuple[str, object]]) -> TaskPlace:
        if not message.task_id:
            raise wrong("message.taskId", "", "an answer needs the id of the task that waits")
        place = self._place(message.task_id)
        calls = list[tuple[str, Call]]()
        for name, given in answers:
            operation = ANSWERS[name]
            if operation.scope is not None:
                self._check_scope(name, operation.scope)
            body = cast(type[BaseModel], operation.body).model_validate(given)
            check_body(operation, self._caller, body)
            calls.append((name, self._call(place.session.id, body)))
        await task_of(place)
        for name, call in calls:
            try:
                await ANSWERS[name].handler(call)
            except (Refused, Problem):
                if not await self._has_decided(place, call.body):
                    raise
        return place

    async def _has_decided(self, place: TaskPlace, body: object) -> bool:
        """Whether the caller has decided just so before: a message that comes twice is taken once."""
        if not isinstance(body, Decision):
            return False
        made = (await place.session.status()).decisions
        so = (body.call_id, body.decision, self._caller.name)
        return any(
            (one.call_id, one.decision, one.approver) == so and body.digest in (None, one.digest) for one in made
        )


def _is_wanted(task: Task, params: ListTasksRequest) -> bool:
    if params.status not in (TaskState.TASK_STATE_UNSPECIFIED, task.status.state):
        return False
    if not params.HasField("status_timestamp_after"):
        return True
    return task.status.timestamp.ToNanoseconds() >= params.status_timestamp_after.ToNanoseconds()


def _number(page_token: str) -> int:
    if not page_token:
        return 0
    if not (page_token.isascii() and page_token.isdigit() and len(page_token) < 10):
        raise wrong("pageToken", page_token, "send the nextPageToken of the page before")
    return int(page_token)


def _word(task: Task) -> str:
    return TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower()


def _no_push() -> NoReturn:
    raise PushNotificationNotSupportedError("push notifications are not sent; use SubscribeToTask or GetTask")
