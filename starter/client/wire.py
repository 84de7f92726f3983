"""From the client's Python values to what crosses to Temporal: bodies, refusals, and how a session is started."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from longhaul.agent.plain.errors import LonghaulError
from longhaul.agent.values.budget import Raise
from longhaul.agent.values.conversation.messages import Msg, UserMsg, title_of
from longhaul.agent.values.spec.agent_spec import AgentSpec
from longhaul.starter.connection.connect import Naming
from longhaul.starter.settings import Settings
from longhaul.workflows.contract import (
    AGENT,
    REFUSED,
    SESSION,
    STATUS,
    TASK_TIMEOUT,
    TITLE,
    USER,
    WORKFLOW,
    PendingCall,
    SessionStart,
    priority_of,
    stored_in,
)

BODY_LIMIT_BYTES = 1_500_000
"""The server takes no payload above 2 MiB, and an update that large would leave its caller without an answer."""
BODY_LIMIT_BY_REFERENCE_BYTES = 15_500_000
"""Through a blob store: the session refuses more than 16 MB, for it has to carry them."""


class Refused(LonghaulError):
    """The session refused, and changed nothing. The sentence names the field, the value and what to do."""


class TooBig(Refused, RuntimeError):
    """The system prompt and the tools alone are too large, so compression can't help."""


class MovedOn(Refused):
    """An entry was recorded since the state was read. Read the state again, and make the change there."""


_KINDS: dict[str, type[Refused]] = {"too_big": TooBig, "moved_on": MovedOn}

Given = dict[str, Any] | None
Asked = type[BaseModel] | Mapping[str, Any] | None
"""The form of an answer: a model, or a JSON schema."""
"""What comes with a request for hooks and tools."""


def check_given(field: str, named: str | None) -> None:
    """Raise Refused for an empty id where none means all of them, or another one: it is a slip."""
    if named == "":
        raise Refused(f"{field}: '' names nothing; give an id, or leave it out")


def check_size(name: str, body: dict[str, Any], client: Client) -> None:
    """Raise Refused for a body that this client could not send."""
    limit = BODY_LIMIT_BYTES if stored_in(client.data_converter) is None else BODY_LIMIT_BY_REFERENCE_BYTES
    try:
        size = len(to_json(body))
    except PydanticSerializationError as error:
        raise Refused(f"{name}: the body can't be written as JSON ({error}); send plain text and numbers") from error
    if size > limit:
        raise Refused(
            f"{name}: the body has {size // 1000} kB, and the most is {limit // 1000} kB; "
            "put the content into a file and name it"
        )


def start_operation(
    settings: Settings, session_id: str, user: str | None, spec: AgentSpec, workflow_id: str, title: str = ""
) -> WithStartWorkflowOperation[Any, Any]:
    """How a session comes to be with its first message; a running one is left as it is."""
    start = start_of(settings, session_id, user, spec, workflow_id, title)
    return WithStartWorkflowOperation(WORKFLOW, start.pop("arg"), **start)


async def update_with_start(
    client: Client, name: str, body: dict[str, Any], start: WithStartWorkflowOperation[Any, Any]
) -> dict[str, Any]:
    """What the handler of that name answers; the workflow begins with it when there is none."""
    try:
        answer: dict[str, Any] = await client.execute_update_with_start_workflow(
            name, body, start_workflow_operation=start, result_type=dict
        )
    except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError):
        # The operation keeps the error in a future too: unless somebody looks, asyncio prints it with all its calls.
        await asyncio.gather(start.workflow_handle(), return_exceptions=True)
        raise
    return answer


def start_of(
    settings: Settings, session_id: str, user: str | None, spec: AgentSpec, workflow_id: str, title: str = ""
) -> dict[str, Any]:
    """The same for a start without a message, as the arguments of `Client.start_workflow`."""
    use_attributes, naming = settings.search_attributes, Naming(settings)
    return {
        "arg": SessionStart(session_id=session_id, user_id=user, spec=spec, search_attributes=use_attributes),
        "id": workflow_id,
        "task_queue": settings.task_queue,
        "id_conflict_policy": WorkflowIDConflictPolicy.USE_EXISTING,
        "task_timeout": TASK_TIMEOUT,
        "memo": {"agent": spec.name, "user": user, "session": session_id, **({TITLE: title} if title else {})},
        "search_attributes": (
            _attributes(naming, session_id, user, spec.name) if use_attributes else TypedSearchAttributes.empty
        ),
        "priority": priority_of(spec, user, naming.indexed),
        "static_summary": spec.name[:120] if naming.is_opaque else f"{spec.name}: {session_id}"[:120],
    }


def _attributes(naming: Naming, session_id: str, user: str | None, agent: str) -> TypedSearchAttributes:
    pairs = [
        SearchAttributePair(STATUS, "working"),
        SearchAttributePair(AGENT, agent),
        SearchAttributePair(SESSION, naming.indexed(session_id)),
    ]
    of_user = [] if user is None else [SearchAttributePair(USER, naming.indexed(user))]
    return TypedSearchAttributes([*pairs, *of_user])


def refusal_of(error: WorkflowUpdateFailedError) -> Exception:
    """The session's own sentence, where it gave one."""
    cause = error.cause
    if not isinstance(cause, ApplicationError) or cause.type != REFUSED:
        return error
    kind = str(cause.details[0]) if cause.details else ""
    return _KINDS.get(kind, Refused)(cause.message)


def raised(more: Raise | Mapping[str, float]) -> Raise:
    """Raises Refused, which names the limit, for what is no raise."""
    try:
        return more if isinstance(more, Raise) else Raise.model_validate(dict(more))
    except (ValidationError, TypeError, ValueError) as error:
        limits = ", ".join(Raise.model_fields)
        raise Refused(f"more: {str(more)[:200]!r} is no raise; send numbers by name, of {limits}") from error


def call_id_of(call: PendingCall | str) -> str:
    return call if isinstance(call, str) else call.call_id


def decision_on(
    call: PendingCall | str,
    word: str,
    reason: str,
    given: dict[str, Any] | str | None,
    rules: bool | Sequence[BaseModel],  # noqa: FBT001  True stands for the suggested ones
) -> dict[str, Any]:
    """One decision in the body of `confirm`; with the digest of what was seen, when a PendingCall says it."""
    decision: dict[str, Any] = {"call_id": call_id_of(call), "decision": word, "reason": reason}
    if isinstance(call, PendingCall) and (
        call.digest or call.waits_for == "person"
    ):  # the session refuses an empty one
        decision["digest"] = call.digest
    if given is not None:
        decision["input"] = given
    if rules:
        decision["rules"] = rules if isinstance(rules, bool) else [plain(rule) for rule in rules]
    return decision


def as_messages(messages: object) -> list[Any]:
    """Messages as the session reads them; a string is the user's. Raises Refused for what is none."""
    match messages:
        case None:
            return []
        case str():
            return [plain(UserMsg("user", messages))]
        case Msg():
            return [plain(messages)]
        case Mapping():
            return [messages]
        case Iterable() if not isinstance(messages, bytes | BaseModel):
            given = list(messages)
            for place, message in enumerate(given):
                if not isinstance(message, Msg | Mapping):
                    raise _no_message(f"messages[{place}]", message)
            return [plain(message) for message in given]
        case _:
            raise _no_message("messages", messages)


def _no_message(where: str, given: object) -> Refused:
    return Refused(
        f"{where}: {str(given)[:80]!r} is of type {type(given).__name__}; send text, a Msg, a list of Msg, or None to "
        "let the agent continue"
    )


def title_in(body: Mapping[str, Any]) -> str:
    """Of the body of `submit`; empty for one that the session will refuse."""
    try:
        return title_of(Msg.model_validate(message) for message in body["messages"])
    except ValidationError:
        return ""


def asked_schema(structured_model: Asked) -> Any:
    """The JSON schema of what is asked for. The session says what is wrong with one that can't be."""
    if isinstance(structured_model, type):
        return structured_model.model_json_schema()
    return dict(structured_model) if isinstance(structured_model, Mapping) else structured_model


def plain(value: Any) -> Any:
    """Pydantic values as JSON values, everything else as it is."""
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
