"""call_model: put the context together, ask the provider, look at the calls that came back."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import count

from temporalio import activity

from activities import own_session
from activities.contexts import Contexts, SessionContext
from activities.contract import CALL_MODEL, CallModel
from activities.examine import Examination
from activities.failing import as_verdict, failed_for_good
from activities.heartbeat import beating
from activities.middlewares.wrapping import Wrapping
from activities.models.failures import SetupError
from activities.models.model import Delta, ModelReply, ModelRequest
from activities.models.providers import Providers
from activities.prompt_hooks import PromptContext, PromptHooks
from activities.secrets import Secrets
from activities.specs import Specs, prompt_digest
from activities.streaming import Streaming
from activities.streams.outlet import Outlet
from activities.tokens import INLINE_BYTES, TokenCounter
from activities.tools.tool import Place
from activities.workspaces import Workspaces
from agent.canonical import message_digest
from agent.entries import ModelSaid
from agent.messages import ContentBlock, HintBlock, Msg, TextBlock, ToolCallBlock
from agent.permission.facts import CallFacts

log = logging.getLogger(__name__)

REPLY_LIMIT_BYTES = 1_500_000
"""Above 2 MiB the server refuses the result, and nobody would hear why."""
REPLY_LIMIT_BY_REFERENCE_BYTES = 4_500_000
"""Where large values go to a blob store."""

FACTS_LIMIT_BYTES = 300_000
"""The findings cross with the reply: a thousand edits with their diffs would pass the server's limit together."""


LIMIT_REACHED = Msg(
    name="longhaul",
    role="user",
    content=(
        HintBlock(
            hint="You have reached the limit of iterations for this reply. Do not call tools any more: say what you "
            "have found and done so far, and what is left to do.",
            source="max_iters",
        ),
    ),
)
"""Not recorded: the next reply is not under this limit."""


class Thinking:
    def __init__(  # noqa: PLR0913, PLR0917  one for each thing that a call needs
        self,
        contexts: Contexts,
        specs: Specs,
        providers: Providers,
        workspaces: Workspaces,
        examination: Examination,
        counter: TokenCounter,
        streaming: Streaming,
        hooks: PromptHooks | None = None,
        secrets: Secrets | None = None,
        wrapping: Wrapping | None = None,
    ) -> None:
        self._wrapping = wrapping or Wrapping()
        self._secrets = secrets or Secrets()
        self._counter = counter
        self._streaming = streaming
        self._hooks = hooks or PromptHooks()
        self._contexts = contexts
        self._specs = specs
        self._providers = providers
        self._workspaces = workspaces
        self._examination = examination

    @activity.defn(name=CALL_MODEL)
    async def call_model(self, ask: CallModel) -> ModelSaid:
        """One model call. Raises what the verdict table says: retry, retry after, or ModelFailed for good."""
        async with beating():
            place, wrapped = await self._workspaces.find(ask.place), self._wrapping.of_model_call(ask)
            outlet = self._streaming.model_call(ask.call_number, ask.model)
            epoch = ask.context.epoch
            session = self._contexts.session(own_session.key(), epoch)
            messages = await self._contexts.resolve(
                session, ask.context, lambda start: own_session.pull_page(epoch, start)
            )
            spec = await self._specs.get(ask.spec_digest, own_session.pull_spec)
            system = await wrapped.system_prompt(await self._hooked(spec.system_prompt, ask))
            request = ModelRequest(
                model=ask.model,
                system=system,
                messages=_heard_by(ask.agent, session, messages) + ([LIMIT_REACHED] if ask.closing else []),
                tools=[tool for tool in spec.tools if tool.name not in ask.hidden_tools],
                no_calls=ask.closing,
                config=ask.config,
                call_number=ask.call_number,
                attempt=activity.info().attempt,
            )
            estimate = ask.fixed_tokens + await self._tokens(session, ask.model)
            hears = _nobody if wrapped.hides_pieces else partial(_publish, outlet)
            reply = await wrapped.model_call(request, partial(self._ask, hears=hears))
            outlet.end()
            said = await self._recorded(ask, place, reply)
            sent_digest = "" if system == spec.system_prompt else prompt_digest(system)
            said = said.model_copy(update={"input_estimate": estimate, "sent_digest": sent_digest})
            context_digest = session.append(said.message, said.digest, said.tokens)
            return said.model_copy(update={"context_digest": context_digest, "context_length": len(session.messages)})

    async def _hooked(self, system_prompt: str, ask: CallModel) -> str:
        about = PromptContext(ask.agent, ask.place.user_id, ask.place.session_id, ask.model, ask.call_number)
        try:
            return await self._hooks.apply(system_prompt, about)
        except SetupError as error:
            raise as_verdict(error) from None

    async def _tokens(self, session: SessionContext, model: str) -> int:
        """Of all messages, in a thread when the event loop would stand still for it."""
        measure = partial(self._counter.count_message, model=model)
        if session.uncounted() <= INLINE_BYTES:
            return session.tokens(measure)
        return await asyncio.to_thread(session.tokens, measure)

    async def _ask(self, request: ModelRequest, hears: Callable[[Delta], None]) -> ModelReply:
        try:
            reply = await self._providers.call(request.model, request, hears)
        except Exception as error:  # noqa: BLE001  every kind has a verdict: the table is complete by test
            raise as_verdict(error) from None  # the provider's error may quote the request
        for note in reply.notes:
            log.warning("%s: %s", request.model, note)
        return reply

    async def _recorded(self, ask: CallModel, place: Place, reply: ModelReply) -> ModelSaid:
        content = _without_calls(reply) if ask.closing else tuple(_with_ids(reply, ask.call_number))
        content = self._secrets.out_of_content(content)
        message = Msg(name=ask.agent, role="assistant", content=content, usage=reply.usage)
        size = len(message.model_dump_json().encode())
        if size > REPLY_LIMIT_BYTES and size > _reply_limit():
            raise failed_for_good("invalid_request", f"The model's reply of {size // 1000} kB is too large to record.")
        facts = await self._looked_at(content, place)
        return ModelSaid(
            message=message,
            digest=message_digest(message),
            tokens=await self._counter.count_aside(message, ask.model),
            facts=facts,
            model=reply.model,
            stop_reason=reply.stop_reason,
        )

    async def _looked_at(self, content: tuple[ContentBlock, ...], place: Place) -> dict[str, CallFacts]:
        """Findings by call id. A call without any is examined when its turn comes, by a worker that has its tool."""
        facts: dict[str, CallFacts] = {}
        room = FACTS_LIMIT_BYTES
        for block in content:
            if isinstance(block, ToolCallBlock) and self._examination.knows(block.name):
                found = await self._examination.look(block.name, block.input, place)
                room -= len(found.model_dump_json().encode())
                if room < 0:
                    break
                facts[block.id] = found
        return facts


def _without_calls(reply: ModelReply) -> tuple[ContentBlock, ...]:
    """What a model says that may not call: a call that it makes all the same is not run."""
    said = tuple(block for block in reply.content if not isinstance(block, ToolCallBlock))
    return said or (TextBlock(text="(The model said nothing when the limit of iterations was reached.)"),)


def _reply_limit() -> int:
    stored_outside = activity.client().data_converter.external_storage is not None
    return REPLY_LIMIT_BY_REFERENCE_BYTES if stored_outside else REPLY_LIMIT_BYTES


def _heard_by(agent: str, session: SessionContext, messages: list[Msg]) -> list[Msg]:
    """Another agent's words are a user turn to this one: only its own may stand as the assistant's."""
    if session.speakers <= {agent}:
        return messages
    return [
        message.model_copy(update={"role": "user"})
        if message.name != agent and message.role == "assistant"
        else message
        for message in messages
    ]


def _with_ids(reply: ModelReply, call_number: int) -> list[ContentBlock]:
    """The blocks, each call with an id that no other call of this reply has: findings are kept by id, and permission
    must not judge one call by another's. Ids that earlier replies have used are the record's to see (`agent.calls`)."""
    used = set[str]()
    fresh = count(1)
    content: list[ContentBlock] = []
    for block in reply.content:
        if isinstance(block, ToolCallBlock):
            call_id = block.id
            while not call_id or call_id in used:
                call_id = f"{block.id or 'call'}-{call_number}-{next(fresh)}"
            used.add(call_id)
            content.append(block.model_copy(update={"id": call_id}))
        else:
            content.append(block)
    return content


def _nobody(_: Delta) -> None:
    """Pieces of an answer that a middleware may still change."""


def _publish(outlet: Outlet, delta: Delta) -> None:
    outlet.write(delta.kind, delta.text, block=delta.index, tool_call_id=delta.tool_call_id, name=delta.tool_name)
