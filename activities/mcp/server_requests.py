"""The requests of an MCP server in the midst of a call: questions to a person, and answers of a model.

Makes questions to a person of what an MCP server asks for in the midst of a call: bounded, masked, with a schema
that a session can check answers by. Roots are refused; of sampling `activities.mcp.server_requests` knows.

Has a model asked in the name of an MCP server (sampling): words alone, masked both ways, within the agent's bounds.

The server sees what the model answers to its own words, and nothing of the session.
"""

from collections.abc import Mapping
from typing import Any, cast

import mcp_types as types
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from mcp.client.session import ClientRequestContext

from longhaul.activities.masker import Masker
from longhaul.activities.models.side_model import NotAsked, SideModel
from longhaul.activities.process.program_output import progress
from longhaul.activities.tool import ToolError
from longhaul.agent.plain.text import harmless
from longhaul.agent.plain.values import canonical_json, digest_of
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    MOST_ROUNDS,
    AssistantMsg,
    Msg,
    ServerAsked,
    ServerQuestion,
    TextBlock,
    UserMsg,
)

MOST_MESSAGES = 100
SHOWN_CHARS = 300
REFUSED = -1
"""Code of the protocol for what a client does not want."""


class Samples:
    """Of one call of a tool."""

    def __init__(self, server: str, model: SideModel | None, masker: Masker) -> None:
        self._server, self._model, self._masker = server, model, masker
        self.told = list[dict[str, str]]()
        """What was asked and answered, cut short: for the journal."""

    async def answer(self, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        """Raises NotAsked."""
        if self._model is None:
            raise NotAsked("its agent does not let it have a model asked (sampling)")
        if params.tools or params.max_tokens < 1 or not 0 < len(params.messages) <= MOST_MESSAGES:
            raise NotAsked(
                f"it asks with tools of its own, for no token, or with none of 1 to {MOST_MESSAGES} messages"
            )
        messages = tuple(self._message(message) for message in params.messages)
        system = self._masker.masked(params.system_prompt or "")
        progress(f"[the MCP server {harmless(self._server)!r} has {self._model.name} asked]\n")
        reply = await self._model.answer(system, messages, params.max_tokens)
        text = self._masker.masked("".join(block.text for block in reply.content if isinstance(block, TextBlock)))
        asked = messages[-1].get_text_content() if messages else ""
        self.told.append({"asked": asked[:SHOWN_CHARS], "answered": text[:SHOWN_CHARS], "model": reply.model})
        why = "maxTokens" if reply.stop in BROKEN_OFF else "endTurn"
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", content=content, model=reply.model, stop_reason=why)

    async def answers(self, asked: Mapping[str, types.CreateMessageRequestParams]) -> dict[str, dict[str, Any]]:
        """By key, as they are sent with the call. Raises NotAsked."""
        found = {key: await self.answer(params) for key, params in asked.items()}
        return {key: one.model_dump(mode="json", by_alias=True, exclude_none=True) for key, one in found.items()}

    async def answer_meanwhile(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """The same for a server that asks while its call runs."""
        try:
            return await self.answer(params)
        except NotAsked as error:
            return types.ErrorData(code=REFUSED, message=str(error))

    def _message(self, message: types.SamplingMessage) -> Msg:
        texts = [block.text for block in message.content_as_list if isinstance(block, types.TextContent)]
        if len(texts) < len(message.content_as_list):
            raise NotAsked("it asks about more than words (an image, a sound or a tool's call), which is not sent")
        text = self._masker.masked("\n".join(texts))
        return AssistantMsg(self._server, text) if message.role == "assistant" else UserMsg(self._server, text)


def model_requests(result: types.InputRequiredResult) -> dict[str, types.CreateMessageRequestParams]:
    """What a call came to that wants models to be asked and nothing else; empty for any other."""
    asked = result.input_requests or {}
    wanted = {key: one.params for key, one in asked.items() if isinstance(one, types.CreateMessageRequest)}
    return wanted if len(wanted) == len(asked) else {}


MOST_QUESTIONS = 10
MESSAGE_CHARS = 4_000
TEXT_CHARS = 500
ALL_BYTES = 16_000
"""Of one round's questions: they are recorded, and shown."""
STATE_CHARS = 100_000
"""Of what a server wants back: it is recorded, and sent again."""
_KINDS = ("string", "number", "integer", "boolean", "array")
_KEPT = ("type", "format", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
_NOT_ASKED = {
    "sampling/createMessage": "that a model is asked in its name (sampling), which its agent does not allow, "
    "or not together with other questions",
    "roots/list": "a list of this side's folders (roots), which it does not get here",
}
DONE = "What it did before stays done"


class MeanwhileAsked:
    """What servers of older versions ask while calls run: they would wait for a person, and nobody is there so soon."""

    def __init__(self) -> None:
        self.questions: dict[str, types.ElicitRequestParams] = {}
        """Of which the server was told that they are cancelled."""
        self.answers: dict[str, types.ElicitResult | types.CreateMessageResult] = {}
        """Known from before."""
        self.samples: Samples | None = None
        """Of the call that is under way."""

    async def answer(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        key = key_of(params)
        if isinstance(known := self.answers.get(key), types.ElicitResult):
            return known
        if len(self.questions) <= MOST_QUESTIONS:
            self.questions[key] = params
        return types.ElicitResult(action="cancel")

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Between two calls nobody's bounds hold, and no model is asked."""
        if self.samples is None:
            return types.ErrorData(code=REFUSED, message="no call is under way that a model could be asked for")
        return await self.samples.answer_meanwhile(context, params)

    def take(self) -> dict[str, types.ElicitRequestParams]:
        asked, self.questions = self.questions, {}
        return asked


def results_of(answered: ServerAsked) -> dict[str, types.ElicitResult | types.CreateMessageResult]:
    return {
        key: (types.CreateMessageResult if "role" in answer else types.ElicitResult).model_validate(answer)
        for key, answer in answered.answers.items()
    }


def key_of(params: types.ElicitRequestParams) -> str:
    """The same for the same question, of a server that gives none."""
    return digest_of(params.model_dump(mode="json", include={"mode", "message", "requested_schema", "url"}))[:12]


def asked_for(
    result: types.InputRequiredResult, server: str, before: ServerAsked | None, masker: Masker
) -> ServerAsked:
    """What a call came to that needs answers. Raises ToolError for what nobody can be asked."""
    state = result.request_state or ""
    if len(state) > STATE_CHARS or masker.masked(state) != state:
        why = "holds a secret of the workers" if len(state) <= STATE_CHARS else f"has {len(state):,} characters"
        raise _refused(server, f"what it wants back with the answer {why}, so that it can't be kept")
    params = dict[str, types.ElicitRequestParams]()
    for key, request in (result.input_requests or {}).items():
        if not isinstance(request, types.ElicitRequest):
            raise _refused(server, f"it wants {_NOT_ASKED.get(request.method, request.method)}")
        params[key] = request.params
    return _next_round(ServerAsked(server=server, questions={}, state=state), params, before, masker)


def asked_meanwhile(
    asked: Mapping[str, types.ElicitRequestParams], server: str, before: ServerAsked | None, masker: Masker
) -> ServerAsked:
    """The same of a server that asks while the call runs: with the answers the call begins again. Raises ToolError."""
    answers = before.answers if before else {}
    return _next_round(
        ServerAsked(server=server, questions={}, from_start=True, answers=answers), asked, before, masker
    )


def _next_round(
    made: ServerAsked, params: Mapping[str, types.ElicitRequestParams], before: ServerAsked | None, masker: Masker
) -> ServerAsked:
    number = before.round + 1 if before else 1
    if number > MOST_ROUNDS:
        raise _refused(made.server, f"it has asked {MOST_ROUNDS} times for this one call, and asks again")
    if len(params) > MOST_QUESTIONS or any(len(key) > TEXT_CHARS for key in params):
        raise _refused(made.server, f"it asks {len(params)} questions at once, or one without a short key")
    questions = {key: _question(one, made.server, masker) for key, one in params.items()}
    asked = made.model_copy(update={"questions": questions, "round": number})
    # Keys and choices come back as they are: so nothing in them may have to be changed, as texts are.
    try:
        # Not as pydantic spells JSON: it writes null for a number without end, which no answer can be compared with.
        text = canonical_json(asked.model_dump(include={"questions"})).decode()
        asked.model_dump_json()
    except ValueError as error:
        raise _refused(asked.server, "its question is no plain JSON") from error
    if len(text) > ALL_BYTES:
        raise _refused(asked.server, f"its questions have {len(text):,} bytes, and the most is {ALL_BYTES:,}")
    if masker.masked(text) != text:
        raise _refused(asked.server, "its question holds a secret of the workers")
    return asked


def _question(params: types.ElicitRequestParams, server: str, masker: Masker) -> ServerQuestion:
    message = harmless(masker.masked(params.message))[:MESSAGE_CHARS]
    if isinstance(params, types.ElicitRequestURLParams):
        if not params.url.startswith(("https://", "http://")):
            raise _refused(server, f"it wants somebody to open {params.url[:100]!r}, which is no http address")
        return ServerQuestion(message=message, url=harmless(masker.masked(params.url)))
    return ServerQuestion(message=message, fields=_fields(dict(params.requested_schema), server, masker))


def _fields(schema: dict[str, Any], server: str, masker: Masker) -> dict[str, Any]:
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        raise _refused(server, f"the schema of its question is none: {str(error)[:200]}") from error
    given = cast(dict[str, Any], schema.get("properties", {}))
    fields = {name: _field(name, field, server, masker) for name, field in given.items()}
    required = [name for name in schema.get("required", ()) if name in fields]
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _field(name: str, field: object, server: str, masker: Masker) -> dict[str, Any]:
    given = cast(dict[str, Any], field) if isinstance(field, dict) else {}
    if given.get("type") not in _KINDS:
        raise _refused(
            server, f"it asks for a field {name[:100]!r} that is no text, number, yes or no, or list of choices"
        )
    kept = {word: given[word] for word in _KEPT if word in given}
    if "oneOf" in given:
        kept["enum"] = _choices(given["oneOf"])
    if isinstance(items := given.get("items"), dict):
        choices = items.get("enum") or _choices(items.get("anyOf", ()))
        kept["items"] = {"enum": choices} if choices else {"type": "string"}
    texts = {
        word: harmless(masker.masked(str(given[word])))[:TEXT_CHARS]
        for word in ("title", "description")
        if given.get(word)
    }
    return {**kept, **texts}


def _choices(alternatives: Any) -> list[Any]:
    return [one["const"] for one in alternatives if isinstance(one, dict) and "const" in one]


def _refused(server: str, why: str) -> ToolError:
    return ToolError(f"the MCP server {server!r} did not go on with this call: {harmless(why)}. {DONE}")
