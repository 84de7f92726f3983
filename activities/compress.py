"""compress: make a context shorter, keep what was dropped where the agent can read it, and say what became of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.heartbeat import beating
from longhaul.activities.attempt.model_attempts import Billing, counted, waited_out
from longhaul.activities.compression import summary_footer
from longhaul.activities.compression.condensers import (
    BUILT_IN,
    Condensation,
    Condenser,
    CountFor,
    View,
    by_bytes,
    masked,
    run_chain,
)
from longhaul.activities.compression.summary_call import CachedContext, Candidate, SummaryAttempt, SummaryCall
from longhaul.activities.compression.summary_footer import Footer
from longhaul.activities.compression.summary_texts import check_config, readable_text
from longhaul.activities.context.context_cache import SessionContext
from longhaul.activities.context.prompt_hooks import PromptContext, PromptHooks
from longhaul.activities.context.repairs import Repairing
from longhaul.activities.contract import COMPRESS, CompressInput, SpecTexts
from longhaul.activities.middlewares.session_middlewares import Wrapped
from longhaul.activities.models.failures.error_bodies import for_a_person
from longhaul.activities.models.failures.retry_errors import as_action, failed_for_good
from longhaul.activities.models.failures.status_table import SetupError
from longhaul.activities.models.model import MOST_NOTES, Delta, ModelReply, ModelRequest
from longhaul.activities.models.model_limits import window_of
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.requests.thinking_origin import Beginnings, fitting
from longhaul.activities.worker_parts import WorkerParts
from longhaul.agent.entries import ContextCompressed
from longhaul.agent.values.conversation.messages import FRAME_TOKENS, ErrorInfo, Msg, Usage, message_digest
from longhaul.agent.values.conversation.prompt import summary_message
from longhaul.agent.values.spec.summary_template import BadTemplate
from longhaul.stores.offload.offloaders import Offloaders

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages that leave the context, to be kept where the agent can read them."""

    session_id: str
    user_id: str | None
    agent: str
    offloader: str
    """As the agent names it."""
    batch: str
    """The same for each attempt: what one wrote is replaced by the next, and never there twice."""
    messages: tuple[Msg, ...]


Offload = Callable[[Dropped], Awaitable[str]]
"""Where the messages were written, for the agent to read; empty when nowhere. May raise anything."""


class Compressing:
    def __init__(
        self,
        parts: WorkerParts,
        providers: Providers,
        offload: Offload,
        *,
        condensers: Mapping[str, Condenser] = BUILT_IN,
        count: CountFor = by_bytes,
        hooks: PromptHooks | None = None,
    ) -> None:
        self._contexts, self._specs = parts.contexts, parts.specs
        self._secrets, self._wrapping = parts.secrets, parts.wrapping
        self._providers, self._offload = providers, offload
        self._condensers = {**BUILT_IN, **condensers}
        self._count = count
        self._hooks = hooks or PromptHooks()

    @activity.defn(name=COMPRESS)
    async def compress(self, ask: CompressInput) -> ContextCompressed:
        """One compression. Raises what the verdict table says of its model calls, or ModelFailed for good, whose
        details are [ErrorInfo, Usage]; nothing has changed then."""
        billing = Billing(ask.attempts_paid)
        earlier = billing.earlier
        async with beating(*earlier.telling), billing.counted(), counted(ask.config.max_retries, earlier):
            epoch = ask.context.epoch
            session = self._contexts.session(own_session.key(), epoch)
            messages = await self._contexts.resolve(session, ask.context, partial(own_session.pull_page, epoch))
            source_digest = session.chain[-1] if session.chain else ""
            spec = await self._specs.get(ask.spec_digest, own_session.pull_spec)
            asking = await self._asking(ask, billing, session, spec)
            old_summary = messages[0].get_text_content() if ask.has_summary and messages else ""
            view = View(
                messages=tuple(messages[1:] if ask.has_summary else messages),
                old_summary=old_summary,
                keep_from=ask.keep_from,
                pinned=ask.pinned,
                goal_tokens=ask.goal_tokens,
                system_prompt=spec.system_prompt,
                context_config=ask.context_config,
                instructions=ask.instructions,
                must_mention=ask.must_mention,
                count=lambda text: self._count(text, ask.model),
                ask=asking.ask,
            )
            name, made = await self._condensed(ask, view, asking)
            entry = await self._entry(ask, view, self._masked(made), spec)
            usage = asking.usage + (made.usage or Usage())
            told = tuple(for_a_person(self._secrets.masker.masked(note)) for note in asking.notes[:MOST_NOTES])
            return entry.model_copy(
                update={
                    "adjusted": told,
                    "condenser": name,
                    "source_digest": source_digest,
                    "usage": usage if usage != Usage() else None,
                    "lost_attempts": billing.lost,
                }
            )

    async def _asking(
        self, ask: CompressInput, billing: Billing, session: SessionContext, spec: SpecTexts
    ) -> SummaryCall:
        info = activity.info()
        most = info.retry_policy.maximum_attempts if info.retry_policy else ask.config.max_retries + 1
        wrapped, told = self._wrapping.of_compression(ask), session.told_to(ask.agent)
        candidates = [Candidate(ask.model, ask.context_length, await self._cached(ask, wrapped, spec, told))]
        if (fallback := ask.config.fallback_model) is not None and fallback != ask.model:
            config = ask.config.for_model(fallback, ask.model).model_copy(update={"context_length": None})
            window = window_of(fallback, config, self._providers.look_up(fallback, config))
            candidates.append(Candidate(fallback, min(window, ask.config.context_length or window)))

        async def call(model: str, request: ModelRequest) -> ModelReply:
            async def ask_model(given: ModelRequest) -> ModelReply:
                return await self._call(model, given, billing)

            if not request.behind_prefix:
                return await wrapped.side_call(request, ask_model)
            # As the conversation's own calls: without what is broken, another provider's, or was refused.
            repairing = Repairing(model, takes_no_images=ask.takes_no_images)
            await repairing.look_into(told[ask.context.prefix_length :])
            origin = self._providers.origin(model, request.config)
            fit = fitting(request, origin, Beginnings(request, session.chain))
            return await wrapped.side_call(fit, lambda given: repairing.asked(given, ask_model, origin))

        return SummaryCall(
            call,
            candidates,
            ask.config,
            call_number=ask.call_number,
            attempt=SummaryAttempt(info.attempt, is_last=0 < most <= info.attempt),
            count=self._count,
        )

    async def _cached(
        self, ask: CompressInput, wrapped: Wrapped, spec: SpecTexts, told: Sequence[Msg]
    ) -> CachedContext | None:
        """What the session's next model call would send; None where that is known not to fit, or nobody asks a model
        about it."""
        if not ask.context_tokens or "summary" not in ask.context_config.condensers:
            return None
        about = PromptContext(ask.agent, ask.user_id, ask.session_id, ask.model, ask.model_calls)
        try:
            system = await wrapped.system_prompt(await self._hooks.apply(spec.system_prompt, about))
        except SetupError as error:
            raise as_action(error) from None
        request = ModelRequest(
            model=ask.model,
            system=system,
            messages=told,
            tools=[tool for tool in spec.tools if tool.name not in ask.hidden_tools],
            config=ask.config,
            cache_key=own_session.cache_key(),
        )
        return CachedContext(request, ask.context_tokens, is_cold=ask.is_cold)

    async def _call(self, model: str, request: ModelRequest, billing: Billing) -> ModelReply:
        try:
            return await self._providers.call(model, request, billing.asks(_unheard))
        except Exception as error:
            billing.failed(error)
            raise

    async def _condensed(self, ask: CompressInput, view: View, asking: SummaryCall) -> tuple[str, Condensation]:
        try:
            check_config(ask.context_config)
            return await run_chain(view, ask.context_config.condensers, self._condensers)
        except BadTemplate as error:
            raise failed_for_good("invalid_request", f"{error}.") from None
        except ApplicationError as error:
            failure = await waited_out(error, ask.config.outage_wait_seconds)
            if not failure.non_retryable or asking.usage == Usage():
                raise failure from None
            info = ErrorInfo.model_validate(failure.details[0])
            raise failed_for_good(info.type, info.message, asking.usage) from None

    def _masked(self, made: Condensation) -> Condensation:
        summary = None if made.summary is None else self._secrets.masker.masked(made.summary)
        return replace(made, summary=summary, fields=self._secrets.out_of(made.fields))

    async def _entry(self, ask: CompressInput, view: View, made: Condensation, spec: SpecTexts) -> ContextCompressed:
        kept = [
            masked(view.messages[index]) if index in made.masked else view.messages[index]
            for index in (*made.pinned, *range(made.keep_from, len(view.messages)))
        ]
        dropped = tuple(view.messages[index] for index in range(made.keep_from) if index not in made.pinned)
        written, reference = await self._written(ask, dropped)
        # The text of the new summary layer; empty when there is none, and the old one when nothing has to be added.
        old_body, old = summary_footer.split(view.old_summary)
        body = old_body if made.summary is None else made.summary
        read_only = {tool.name for tool in spec.tools if tool.read_only}
        leaves = {*range(made.keep_from), *made.masked} - (set(made.pinned) - set(made.masked))
        # With the calls that stay: a result alone does not say what it is of.
        told = [each for at, each in enumerate(view.messages) if at in leaves or each.get_tool_calls()]
        carried = (*old.carried, *summary_footer.carried_from(told, read_only))
        went_unsaid = made.summary is None and len(kept) < len(view.messages)
        new = Footer(
            still_open=summary_footer.missing(view.must_mention, [body, *(readable_text(message) for message in kept)]),
            carried=summary_footer.kept(carried, most_chars=view.goal_tokens),
            pointers=tuple(dict.fromkeys((*old.pointers, *([reference] if reference else [])))),
            left_out=went_unsaid or (made.summary is None and old.left_out),
            not_written=not written,
        )
        summary = summary_footer.join(body, new)
        digest, length = self._prime(ask, summary, kept)
        changed = summary != view.old_summary
        return ContextCompressed(
            epoch=ask.epoch,
            keep_from=made.keep_from,
            pinned=made.pinned,
            masked=made.masked,
            summary=summary if changed else None,
            summary_tokens=FRAME_TOKENS + await asyncio.to_thread(view.count, summary) if changed else 0,
            fields=made.fields,
            model=made.model,
            prompt_digest=made.prompt_digest,
            offloaded=reference,
            context_digest=digest,
            context_length=length,
        )

    async def _written(self, ask: CompressInput, dropped: tuple[Msg, ...]) -> tuple[bool, str]:
        """Before the entry is returned: once the journal has it, nobody else would write them down."""
        if not dropped:
            return True, ""
        try:
            reference = await self._offload(
                Dropped(ask.session_id, ask.user_id, ask.agent, ask.offloader, f"epoch-{ask.epoch}", dropped)
            )
        except Exception as error:  # noqa: BLE001  offloaders are anybody's, and the session must go on without them
            log.warning("dropped messages could not be stored: %s", type(error).__name__)
            return False, ""
        return True, reference

    def _prime(self, ask: CompressInput, summary: str, kept: list[Msg]) -> tuple[str, int]:
        """Keep the new epoch's context for the next model call; its digest and length."""
        session = self._contexts.session(own_session.key(), ask.epoch)
        session.cut(0)
        digest = ""
        for message in ([summary_message(summary)] if summary else []) + kept:
            digest = session.append(message, message_digest(message))
        return digest, len(session.messages)


def _unheard(delta: Delta) -> None:
    """Nobody listens while a summary is written."""


def offload_to(offloaders: Offloaders) -> Offload:
    async def offload(dropped: Dropped) -> str:
        offloader = await offloaders.get(dropped.offloader, dropped.agent, dropped.user_id)
        if offloader is None:
            return ""
        return await offloader.offload_context(dropped.session_id, list(dropped.messages), batch=dropped.batch)

    return offload
