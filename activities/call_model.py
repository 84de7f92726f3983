"""call_model: put the context together, ask the provider, look at the calls that came back."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.fused_reads import ReadingAlong
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.model_attempts import Billing, counted, waited_out
from longhaul.activities.attempt.own_session import Streaming
from longhaul.activities.context.context_cache import SessionContext, prompt_digest
from longhaul.activities.context.prompt_hooks import PromptContext, PromptHooks
from longhaul.activities.context.repairs import FitCall
from longhaul.activities.context.tokens import INLINE_BYTES
from longhaul.activities.contract import CALL_MODEL, CallModel, CustomAgentStep, SpecTexts
from longhaul.activities.custom_agents.custom_agent import Thought
from longhaul.activities.custom_agents.custom_agent_turns import CustomAgentTurns
from longhaul.activities.examine_calls import Examination
from longhaul.activities.middlewares.session_middlewares import Wrapped
from longhaul.activities.models.failures.error_bodies import for_a_person
from longhaul.activities.models.failures.retry_errors import as_action, failed_for_good
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import MOST_NOTES, Delta, KeptAnswer, ModelReply, ModelRequest, SaidOnce
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.replies import HalfSaid, estimated_where_silent, recorded_content
from longhaul.activities.models.requests.answer_form import called_in_words
from longhaul.activities.tool import Place
from longhaul.activities.tools.argument_readings import text_as_wanted
from longhaul.activities.tools.registry import Toolbox
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import ModelSaid, Repair
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.reducer.all_changes import without_too_many
from longhaul.agent.values.conversation.messages import (
    REFUSALS,
    ContentBlock,
    Msg,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    message_digest,
)
from longhaul.agent.values.conversation.tools import GENERATE_RESPONSE
from longhaul.agent.values.prompt_cache import MissReason, missed_tokens
from longhaul.agent.values.tool_index import CALL_TOOL
from longhaul.stores.blobs.blobs import BlobsUnavailable
from longhaul.stores.keys.keyring import NoKey
from longhaul.stores.offload.session_blobs import SessionBlobs
from longhaul.stores.streams.publisher import Outlet

log = logging.getLogger(__name__)

REPLY_LIMIT_BYTES = 1_500_000
"""Above 2 MiB the server refuses the result, and nobody would hear why."""
REPLY_LIMIT_BY_REFERENCE_BYTES = 4_500_000
"""Where large values go to a blob store."""

SHOWN_OF_LONG_CHARS = 100_000
"""Of a text that is too long to record: a longer beginning would fill the context of the next call."""
SHOWN_CALLS = 20
"""Of a reply that was interrupted: calls that it was writing."""

ANALYSIS_LIMIT_BYTES = 300_000
"""The findings cross with the reply: a thousand edits with their diffs would pass the server's limit together."""


class Thinking:
    def __init__(  # noqa: PLR0913  one for each thing that model calls alone need
        self,
        parts: WorkerParts,
        providers: Providers,
        examination: Examination,
        streaming: Streaming,
        *,
        hooks: PromptHooks | None = None,
        custom_agents: CustomAgentTurns | None = None,
        along: ReadingAlong | None = None,
        keeping: Callable[[], SessionBlobs] | None = None,
    ) -> None:
        """`keeping`: where the running activity's session keeps what is too long to record."""
        self._contexts, self._specs, self._counter = parts.contexts, parts.specs, parts.counter
        self._workspaces, self._secrets, self._wrapping = parts.workspaces, parts.secrets, parts.wrapping
        self._providers, self._examination, self._streaming = providers, examination, streaming
        self._hooks, self._custom_agents, self._along = (
            hooks or PromptHooks(),
            custom_agents or CustomAgentTurns(),
            along,
        )
        self._keeping = keeping
        self._notes = SaidOnce()

    @activity.defn(name=CALL_MODEL)
    async def call_model(self, ask: CallModel) -> ModelSaid:
        """One model call. Raises what the verdict table says: retry, retry after, or ModelFailed for good."""
        billing = Billing(ask.attempts_paid)
        earlier = billing.earlier
        async with beating(*earlier.telling), billing.counted(), counted(ask.config.max_retries, earlier):
            place, wrapped = await self._workspaces.find(ask.place), self._wrapping.of_model_call(ask)
            outlet = self._streaming.model_call(ask.call_number, ask.model)
            epoch = ask.context.epoch
            session = self._contexts.session(own_session.key(), epoch)
            messages = await self._contexts.resolve(
                session, ask.context, lambda start: own_session.pull_page(epoch, start)
            )
            spec = await self._specs.get(ask.spec_digest, own_session.pull_spec)
            if ask.custom_agent is not None:
                return await self._step_of_custom_agent(
                    ask, ask.custom_agent, OfCustomAgent(spec, session, messages, wrapped, place, billing)
                )
            system = await wrapped.system_prompt(await self._hooked(spec.system_prompt, ask))
            told = session.told_to(ask.agent)
            origin = partial(self._providers.origin, ask.model)
            fit = FitCall(session, told, ask.model, origin, takes_no_images=ask.takes_no_images)
            await fit.look_into(ask.context.prefix_length)
            request = _request(ask, spec, system, told)
            heard = HalfSaid(partial(_publish, outlet))
            hears = _nobody if wrapped.hides_pieces else heard.hear
            try:
                reply = await wrapped.model_call(request, partial(self._ask, fit=fit, hears=hears, billing=billing))
            except asyncio.CancelledError:
                await _stop(billing.earlier.kept)
                if (half := self._half_said(ask, heard, session)) is None:
                    raise
                outlet.end()
                return await self._half_accounted(half, ask, billing, session)
            outlet.end()
            said = await self._recorded(ask, place, reply, spec)
            beside = await self._beside(said, ask, billing, session)
            # The digest of a system prompt that is not the recorded one.
            said = said.model_copy(
                update={
                    **beside,
                    "sent_digest": "" if system == spec.system_prompt else prompt_digest(system),
                    "repair": fit.repair,
                    **_missed(ask, reply, spec.system_prompt != system, fit.repair),
                }
            )
            return await self._with_reads(_in_context(said, session), ask, spec, wrapped)

    async def _with_reads(self, said: ModelSaid, ask: CallModel, spec: SpecTexts, wrapped: Wrapped) -> ModelSaid:
        """Middlewares around calls may ask their session, and are left to the calls' own activities."""
        if self._along is None or ask.reads_along is None or wrapped.hears_calls:
            return said
        tools = {tool.name: tool for tool in spec.tools if tool.name not in ask.hidden_tools}
        return await self._along.added(said, ask, tools)

    async def _step_of_custom_agent(self, ask: CallModel, step: CustomAgentStep, of: "OfCustomAgent") -> ModelSaid:
        """What the code of the custom agent comes to next. No piece of a thought is streamed: it is read whole."""

        async def think(thought: Thought) -> ModelReply:
            prompt = thought.system or await self._hooked(of.spec.system_prompt, ask)
            told = [Msg(name="user", role="user", content=(TextBlock(text=thought.prompt),))]
            request = replace(_request(ask, of.spec, await of.wrapped.system_prompt(prompt), told), tools=())
            return await of.wrapped.model_call(request, partial(self._ask, hears=_nobody, billing=of.billing))

        turn = await self._custom_agents.turn(ask, step, of.messages, think)
        said = await self._recorded(ask, of.place, turn.reply, of.spec)
        beside = {
            "message": said.message.model_copy(update={"metadata": turn.metadata}),
            "goes_on": turn.goes_on,
            "marked": of.session.take_marked(),
            "words": self._secrets.out_of_words(ask.words),
            "lost_attempts": of.billing.lost,
        }
        return _in_context(said.model_copy(update=beside), of.session)

    async def _beside(
        self, said: ModelSaid, ask: CallModel, billing: Billing, session: SessionContext
    ) -> dict[str, object]:
        """What is recorded with an answer beside its words."""
        estimate = ask.fixed_tokens + await self._tokens(session, ask.model)
        # The message with a usage, also where the provider has reported none.
        output_estimate = said.tokens if said.message.content else 0
        usage = estimated_where_silent(said.message.usage, estimate, output_estimate)
        accounted = said.message.model_copy(update={"usage": usage})
        sent = {"message": accounted, "input_estimate": estimate}
        lost = {"lost_attempts": billing.lost, "lost": billing.lost_usage(estimate)}
        return {**sent, **lost, "marked": session.take_marked(), "words": self._secrets.out_of_words(ask.words)}

    async def _hooked(self, system_prompt: str, ask: CallModel) -> str:
        about = PromptContext(ask.agent, ask.place.user_id, ask.place.session_id, ask.model, ask.call_number)
        try:
            return await self._hooks.apply(system_prompt, about)
        except SetupError as error:
            raise as_action(error) from None

    async def _tokens(self, session: SessionContext, model: str) -> int:
        """Of all messages, in a thread when the event loop would stand still for it."""
        measure = partial(self._counter.count_message, model=model)
        if session.uncounted() <= INLINE_BYTES:
            return session.tokens(measure)
        return await asyncio.to_thread(session.tokens, measure)

    async def _ask(
        self, request: ModelRequest, hears: Callable[[Delta], None], billing: Billing, fit: FitCall | None = None
    ) -> ModelReply:
        """`fit`: of a call that is sent the context; None for one that is sent a prompt of its own."""
        hear = billing.asks(hears)

        async def call(fitted: ModelRequest) -> ModelReply:
            return await self._providers.call(fitted.model, replace(fitted, kept=billing.earlier.kept), hear)

        try:
            reply = await (call(request) if fit is None else fit.ask(request, call))
        except Exception as error:  # noqa: BLE001  every kind has a verdict: the table is complete by test
            billing.failed(error)
            failure = await waited_out(as_action(error), request.config.outage_wait_seconds)
            raise failure from None  # the provider's error may quote the request
        self._notes.tell(own_session.key(), request.model, reply)
        if reply.stop is StopReason.UNKNOWN:
            log.warning("%s: stopped for an unknown reason: %r", request.model, reply.stop_reason)
        return reply

    async def _recorded(self, ask: CallModel, place: Place, reply: ModelReply, spec: SpecTexts) -> ModelSaid:
        refused = reply.stop in REFUSALS
        offered = {tool.name for tool in spec.tools}.difference(ask.hidden_tools)
        if GENERATE_RESPONSE in offered and ask.custom_agent is None:
            reply = called_in_words(reply, GENERATE_RESPONSE)
        content = recorded_content(reply, ask.call_number, closing=ask.closing)
        content, dropped = without_too_many(content)
        # Arguments are written as the tools want them: what is recorded here is what permission looks at, what
        # people are shown, and what runs. An answer in the form of a reply stays as it was given.
        schemas = {tool.name: tool.input_schema for tool in spec.tools if tool.name != GENERATE_RESPONSE}
        as_wanted = tuple(
            block.model_copy(update={"input": text_as_wanted(block.input, schemas[block.name])})
            if isinstance(block, ToolCallBlock) and block.name in schemas
            else block
            for block in content
        )
        content, runs = self._examination.marked(self._secrets.out_of_content(as_wanted), ask.secrets)
        message = Msg(name=ask.agent, role="assistant", content=content, usage=reply.usage)
        if _size(message, runs) > REPLY_LIMIT_BYTES and _size(message, runs) > _reply_limit():
            message = await self._shortened(message)
            content = message.content
        if (size := _size(message, runs)) > REPLY_LIMIT_BYTES and size > _reply_limit():
            raise failed_for_good("invalid_request", f"The model's reply of {size // 1000} kB is too large to record.")
        analysis = await self._looked_at(content, runs, place, self._examination.known(ask.mcps, content, spec))
        return ModelSaid(
            message=message,
            digest=message_digest(message),
            tokens=await self._counter.count_aside(message, ask.model),
            analysis=analysis,
            unmarked={} if ask.secrets else runs,
            model=reply.model,
            stop_reason=reply.stop_reason,
            stop=reply.stop,
            asked=ask.model if refused else "",
            refusal=for_a_person(self._secrets.masker.masked(reply.refusal)) if refused else "",
            dropped_calls=dropped,
            adjusted=tuple(for_a_person(self._secrets.masker.masked(note)) for note in reply.notes[:MOST_NOTES]),
        )

    async def _shortened(self, message: Msg) -> Msg:
        """With the beginning of each long text: the whole of it stays among the session's blobs, and `recall` reads it
        in pages. The same where nothing can be kept."""
        content = list(message.content)
        for place, block in enumerate(content):
            if self._keeping is None or not isinstance(block, TextBlock) or len(block.text) <= SHOWN_OF_LONG_CHARS:
                continue
            whole = ToolResultBlock(id=f"text-{place}", name="reply", output=block.text)
            try:
                reference = await self._keeping().offload_tool_result(own_session.key(), whole)
            except (BlobsUnavailable, NoKey, ValueError) as error:
                log.warning("the whole text of a long reply was not kept (%s)", error)
                continue
            line = f"[The reply goes on: it has {len(block.text):,} characters. All of it: '{reference}']"
            content[place] = TextBlock(text=f"{block.text[:SHOWN_OF_LONG_CHARS]}\n\n{line}")
        return message.model_copy(update={"content": tuple(content)})

    def _half_said(self, ask: CallModel, heard: HalfSaid, session: SessionContext) -> ModelSaid | None:
        """Of a reply that was interrupted: what clients have read of it, or None. A worker that shuts down leaves
        nothing: another attempt says it all."""
        details = activity.cancellation_details()
        blocks, started = heard.blocks(), heard.calls()
        if details is None or not details.cancel_requested or not (blocks or started):
            return None
        content = self._secrets.out_of_content(blocks)
        message = Msg(name=ask.agent, role="assistant", content=content)
        if len(message.model_dump_json().encode()) > REPLY_LIMIT_BYTES:
            return None
        said = ModelSaid(message=message, model=ask.model, stop_reason="interrupted", cut_short=True)
        words = self._secrets.out_of_words(ask.words)
        update = {"started_calls": started[:SHOWN_CALLS], "marked": session.take_marked(), "words": words}
        return said.model_copy(update=update)

    async def _half_accounted(
        self, half: ModelSaid, ask: CallModel, billing: Billing, session: SessionContext
    ) -> ModelSaid:
        """With its tokens as the worker counts them: its provider bills them, and has told nobody of them."""
        estimate = ask.fixed_tokens + await self._tokens(session, ask.model)
        message = half.message.model_copy(update={"usage": billing.heard_usage(estimate)})
        lost = {"lost_attempts": billing.lost, "lost": billing.lost_usage(estimate)}
        return half.model_copy(update={"message": message, **lost})

    async def _looked_at(
        self, content: tuple[ContentBlock, ...], runs: Mapping[str, str], place: Place, toolbox: Toolbox
    ) -> dict[str, CallAnalysis]:
        """Findings by call id. A call without any is examined when its turn comes, by a worker that has its tool."""
        analysis: dict[str, CallAnalysis] = {}
        room = ANALYSIS_LIMIT_BYTES
        for block in content:
            if isinstance(block, ToolCallBlock) and toolbox.get(block.name) is not None:
                found = await self._examination.look(block.name, runs.get(block.id, block.input), place, toolbox)
                room -= len(found.model_dump_json().encode())
                if room < 0:
                    break
                analysis[block.id] = found
        return analysis


def _in_context(said: ModelSaid, session: SessionContext) -> ModelSaid:
    """With where the context ends now; a refusal is shown to no model."""
    if said.stop in REFUSALS:
        return said
    context_digest = session.append(said.message, said.digest, said.tokens)
    return said.model_copy(update={"context_digest": context_digest, "context_length": len(session.messages)})


STOP_SECONDS = 3.0
"""For the word to a provider that an answer is wanted no more. Without it the answer costs what it would have cost."""


async def _stop(kept: KeptAnswer) -> None:
    """Where the session wants the answer no more; one whose worker shuts down is picked up by another."""
    details = activity.cancellation_details()
    if kept.stop is None or details is None or not details.cancel_requested:
        return
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await kept.stop()
    except Exception as error:  # noqa: BLE001  the reply has ended, and nothing may take its place
        log.warning("an answer that is wanted no more could not be stopped: %s", type(error).__name__)


_TOLD_REASONS: Mapping[str, MissReason] = {
    "model_changed": "model",
    "system_changed": "system",
    "tools_changed": "tools",
    "messages_changed": "messages",
}
"""Anthropic's words."""


def _missed(ask: CallModel, reply: ModelReply, hooked: bool, repair: Repair | None) -> dict[str, object]:  # noqa: FBT001
    """What the provider's cache did not serve, and why; nothing where it served what it should."""
    if not ask.cached_tokens or not (missed := missed_tokens(ask.cached_tokens, reply.usage)):
        return {}
    rewritten: MissReason = "messages" if repair is not None and repair.left_out else ""
    unknown: MissReason = "hooks" if hooked else "provider"
    reason = _TOLD_REASONS.get(reply.cache_miss) or ask.cache_lost or rewritten or unknown
    return {"cache_missed": missed, "cache_reason": reason}


@dataclass(frozen=True, slots=True)
class OfCustomAgent:
    """What there is for a step of a custom agent."""

    spec: SpecTexts
    session: SessionContext
    messages: list[Msg]
    wrapped: Wrapped
    place: Place
    billing: Billing


def _request(ask: CallModel, spec: SpecTexts, system: str, told: list[Msg]) -> ModelRequest:
    return ModelRequest(
        model=ask.model,
        system=system,
        messages=told,
        tools=[tool for tool in spec.tools if tool.name not in ask.hidden_tools],
        no_calls=ask.closing,
        must_call=ask.must_call,
        config=ask.config,
        call_number=ask.call_number,
        attempt=activity.info().attempt,
        shortened=ask.shortened,
        cache_key=own_session.cache_key(),
    )


def _size(message: Msg, runs: Mapping[str, str]) -> int:
    """Bytes of what the activity answers, about."""
    return sum(len(text.encode("utf-8", "replace")) for text in (message.model_dump_json(), *runs.values()))


def _reply_limit() -> int:
    stored_outside = activity.client().data_converter.external_storage is not None
    return REPLY_LIMIT_BY_REFERENCE_BYTES if stored_outside else REPLY_LIMIT_BYTES


def _nobody(_: Delta) -> None:
    """Pieces of an answer that a middleware may still change."""


def _publish(outlet: Outlet, delta: Delta) -> None:
    if delta.tool_name == CALL_TOOL:
        return  # people see the call that it stands for, once it is read
    outlet.write(delta.kind, delta.text, block=delta.index, tool_call_id=delta.tool_call_id, name=delta.tool_name)
