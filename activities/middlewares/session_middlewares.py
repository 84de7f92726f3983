"""The middlewares of a session around what its activities do, also around the models that tools have asked."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from longhaul.activities.attempt import own_session
from longhaul.activities.attempt.fused_reads import unfused
from longhaul.activities.contract import (
    CallModel,
    CompressInput,
    ExamineCalls,
    InterruptInput,
    PrepareReply,
    Runtime,
    RunTool,
)
from longhaul.activities.contract import RunTool as Ask
from longhaul.activities.middlewares.middleware import (
    AskModel,
    Interruption,
    Middleware,
    RuntimeContext,
    Stopped,
    ToolUse,
    defines,
)
from longhaul.activities.middlewares.middleware_chain import MiddlewareFailed, Middlewares, around, bounded
from longhaul.activities.models.failures.retry_errors import failed_for_good
from longhaul.activities.models.model import Delta, ModelReply, ModelRequest
from longhaul.activities.models.providers import Providers
from longhaul.activities.models.side_model import SideModel
from longhaul.activities.tool import NeedsDecision, ToolError, ToolOutput
from longhaul.agent.entries import CallOutcome, InputAsked, ToolReturned
from longhaul.agent.values.conversation.messages import Msg
from longhaul.agent.values.conversation.prompt import hint_message
from longhaul.agent.values.conversation.tools import Effect

REMINDERS_LIMIT_CHARS = 100_000
"""Of all that middlewares add to one request: it is recorded with the reply."""


@dataclass
class _Run:
    """How the tool itself ended."""

    times: int = 0
    error: BaseException | None = None


Judged = Callable[[str], Awaitable[None]]
"""Of arguments. Raises NeedsDecision where permission has judged others, and Stopped for what could not be run."""


@dataclass(frozen=True)
class Wrapped:
    """The chosen middlewares around one activity."""

    middlewares: tuple[Middleware, ...]
    context: RuntimeContext

    @property
    def hides_pieces(self) -> bool:
        """Whether an answer is changed, so that nobody may hear pieces of it before."""
        return any(
            each.changes_answers and (defines(each, "on_model_call") or defines(each, "on_reasoning"))
            for each in self.middlewares
        )

    @property
    def hears_calls(self) -> bool:
        return any(defines(each, "on_acting") for each in self.middlewares)

    @property
    def adds_reminders(self) -> bool:
        return any(defines(each, "on_reply") for each in self.middlewares)

    async def system_prompt(self, text: str) -> str:
        for each in self.middlewares:
            if defines(each, "on_system_prompt"):
                try:
                    text = await bounded(each, each.on_system_prompt(text, self.context), str)
                except MiddlewareFailed as error:
                    raise _for_good(error) from None
        return text

    async def model_call(self, request: ModelRequest, ask: AskModel) -> ModelReply:
        """Raises what `ask` does, and ModelFailed for a middleware that failed or stopped it."""
        if not self.middlewares:
            return await ask(request)

        async def inner(given: ModelRequest) -> ModelReply:
            return await around(self.middlewares, "on_model_call", given, self.context, ask, ModelReply)

        try:
            return await around(self.middlewares, "on_reasoning", request, self.context, inner, ModelReply)
        except MiddlewareFailed as error:
            raise _for_good(error) from None

    async def side_call(self, request: ModelRequest, ask: AskModel) -> ModelReply:
        """A model call beside the conversation: `on_model_call` is around it, and nothing that concerns the agent's own
        reasoning. Raises as `model_call` does."""
        try:
            return await around(self.middlewares, "on_model_call", request, self.context, ask, ModelReply)
        except MiddlewareFailed as error:
            raise _for_good(error) from None

    async def acting(self, use: ToolUse, run: Callable[[], Awaitable[ToolOutput]], judged: Judged) -> ToolOutput:
        """Raises what `run` does, whatever a middleware made of that, but for ToolError; and what `judged` does."""
        if not self.hears_calls:
            return await run()
        ended = _Run()

        async def innermost(given: ToolUse) -> ToolOutput:
            await _check(given, use, ended, judged)
            ended.times, ended.error = ended.times + 1, None
            try:
                return await run()
            except ToolError as error:
                return ToolOutput(output=str(error), failed=True)
            except BaseException as error:
                ended.error = error
                raise

        try:
            output = await around(self.middlewares, "on_acting", use, self.context, innermost, ToolOutput)
        except (MiddlewareFailed, Stopped) as error:
            if ended.times:
                what_ran = "The tool had run by then: what it did stays done, and what it answered is withheld."
            else:
                what_ran = "The tool did not run."
            output = ToolOutput(output=f"{error} {what_ran}", failed=True)
        if ended.error is not None:
            raise ended.error
        return output

    async def hints(self, request: str) -> tuple[Msg, ...]:
        """What on_reply adds behind the request. Raises a failure for good."""
        told: list[Msg] = []
        for each in self.middlewares:
            if defines(each, "on_reply"):
                try:
                    added = await bounded(each, each.on_reply(request, self.context), object)
                    told += _as_hints(each, added)
                except MiddlewareFailed as error:
                    raise ApplicationError(str(error), type="middleware", non_retryable=True) from None
        return tuple(told)

    @property
    def hears_interrupts(self) -> bool:
        return any(defines(each, "handle_interrupt") for each in self.middlewares)

    async def parting(self, interruption: Interruption) -> str:
        """What the first says that has something to say; empty when none has. Raises MiddlewareFailed."""
        for each in self.middlewares:
            if defines(each, "handle_interrupt"):
                said = await bounded(each, each.handle_interrupt(interruption, self.context), object)
                if words := said.get_text_content() if isinstance(said, Msg) else str(said or ""):
                    return words
        return ""


class Wrapping:
    def __init__(self, middlewares: Middlewares | None = None) -> None:
        self.middlewares = middlewares or Middlewares()

    def of_model_call(self, ask: CallModel) -> Wrapped:
        place, runtime = ask.place, ask.runtime or Runtime()
        return self._wrapped(runtime, ask.agent, place.user_id, place.session_id, ask.model, ask.call_number)

    def of_compression(self, ask: CompressInput) -> Wrapped:
        runtime = ask.runtime or Runtime()
        return self._wrapped(runtime, ask.agent, ask.user_id, ask.session_id, ask.model, ask.call_number)

    def of_analysis(self, ask: ExamineCalls) -> Wrapped:
        place, risk_analysis = ask.place, ask.risk_analysis
        runtime = (risk_analysis.runtime if risk_analysis else None) or Runtime()
        model, number = (risk_analysis.model, risk_analysis.call_number) if risk_analysis else ("", 0)
        return self._wrapped(
            runtime, risk_analysis.agent if risk_analysis else "", place.user_id, place.session_id, model, number
        )

    def of_tool_call(self, ask: Ask) -> Wrapped:
        place, runtime = ask.place, ask.runtime or Runtime()
        wrapped = self._wrapped(runtime, ask.agent, place.user_id, place.session_id, call_id=ask.call_id)
        if activity.info().is_local and wrapped.hears_calls:
            raise unfused("middlewares stand around it, which may ask its session")
        return wrapped

    def of_interrupt(self, ask: InterruptInput) -> Wrapped:
        return self._wrapped(ask.runtime, ask.agent, ask.user_id, ask.runtime.session_id)

    def of_reply(self, ask: PrepareReply) -> Wrapped:
        return self._wrapped(ask.runtime, ask.spec.name, ask.user_id, ask.runtime.session_id, ask.spec.model)

    def _wrapped(  # noqa: PLR0913, PLR0917  what a context says
        self,
        runtime: Runtime,
        agent: str,
        user_id: str | None,
        session_id: str,
        model: str = "",
        call_number: int = 0,
        call_id: str = "",
    ) -> Wrapped:
        context = RuntimeContext(
            agent=agent,
            user_id=user_id,
            session_id=session_id,
            attempt=activity.info().attempt,
            reply_id=runtime.reply_id,
            request_id=runtime.request_id,
            call_id=call_id,
            model=model,
            call_number=call_number,
            given=runtime.given,
        )
        return Wrapped(self.middlewares.chosen(runtime.middlewares), context)


async def newest_text() -> str:
    """Of the newest message of the session's context: what a reply is about to answer."""
    page = await own_session.pull_page(0, 0)
    if page.total > len(page.messages):
        page = await own_session.pull_page(0, page.total - 1)
    return page.messages[-1].get_text_content() if page.messages else ""


def _as_hints(middleware: Middleware, added: object) -> list[Msg]:
    parts = [added] if isinstance(added, str | Msg) else added
    if not isinstance(parts, list | tuple):
        raise MiddlewareFailed(f"The middleware {middleware.name!r} on the worker failed: on_reply gives back texts.")
    hints = [part if isinstance(part, Msg) else hint_message(str(part), middleware.name) for part in parts]
    if sum(len(hint.model_dump_json()) for hint in hints) > REMINDERS_LIMIT_CHARS:
        most = f"{REMINDERS_LIMIT_CHARS // 1000} kB"
        raise MiddlewareFailed(f"The middleware {middleware.name!r} on the worker failed: it adds more than {most}.")
    return hints


async def _check(given: ToolUse, use: ToolUse, ended: _Run, judged: Judged) -> None:
    """Raises Stopped for what may not run, and NeedsDecision for what nobody has judged yet."""
    if replace(given, arguments=use.arguments) != use:
        raise Stopped("another call than the one that permission has judged can't be made")
    if ended.times and use.effect is Effect.ONCE:
        raise Stopped("a `once` call is not made a second time")
    try:
        await judged(given.arguments)
    except NeedsDecision as error:
        if ended.times:
            raise Stopped("a call that has run can't be made again with other arguments") from None
        ended.error = error
        raise


def _for_good(error: MiddlewareFailed) -> ApplicationError:
    return failed_for_good("middleware", str(error))


class SideModels:
    def __init__(self, providers: Providers | None = None) -> None:
        self._providers = providers or Providers()

    def of(self, ask: RunTool, wrapped: Wrapped) -> SideModel | None:
        """None for a call that has no leave."""
        if ask.sampling is None:
            return None

        async def asked(model: str, request: ModelRequest) -> ModelReply:
            return await wrapped.side_call(request, partial(self._call, model))

        return SideModel(ask.sampling, asked)

    async def _call(self, model: str, request: ModelRequest) -> ModelReply:
        return await self._providers.call(model, request, _unheard)


def with_taken(outcome: CallOutcome, model: SideModel | None) -> CallOutcome:
    """The outcome, with what was asked until then."""
    taken = model.taken if model else None
    if taken is None or not isinstance(outcome, ToolReturned | InputAsked):
        return outcome
    return outcome.model_copy(update={"sampled": taken})


def _unheard(delta: Delta) -> None:
    """Nobody listens: the answer goes to the server that has asked."""
