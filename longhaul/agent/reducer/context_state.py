"""Changes the session state by entries about the context: compression, messages that ended early, and repairs.

It counts the context's tokens as the provider does, keeps what the newest model call sent, and sums up what the
provider's cache did not serve of it. What is taken out of a context stays in the transcript.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from longhaul.agent import entries as e
from longhaul.agent.entries import LeftOut, Repair
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.plain.measures import corrected
from longhaul.agent.reducer.agent_state import ReplyContext
from longhaul.agent.reducer.reminder_state import stamped, standing_reminders
from longhaul.agent.reducer.session_state import KEPT_ADJUSTMENTS, NOWHERE, CachedPrefix, Mark, SessionState
from longhaul.agent.values.conversation.messages import (
    BROKEN_OFF,
    REFUSALS,
    WHERE,
    ContentBlock,
    DataBlock,
    ErrorInfo,
    FinishedReason,
    HintBlock,
    Msg,
    StopReason,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
    ends_as,
    outside_tokens,
    with_content,
)
from longhaul.agent.values.conversation.prompt import NOT_WHOLE, GoOn
from longhaul.agent.values.prompt_cache import Missed, MissReason, PromptSent, change
from longhaul.agent.values.stuck_detection import says_nothing

MASK = "[This result was left out to make room. Ask for it with the recall tool if it is needed.]"


@dataclass(frozen=True, slots=True)
class Cut:
    """Indexes in the context, the summary not counted."""

    keep_from: int
    pinned: tuple[int, ...]
    goal_tokens: int
    """What the part before `keep_from` may take afterwards, the summary included."""


def tokens(session: SessionState) -> int:
    """Of the next model call's whole input: what the provider said of the last one, and what came since."""
    counted, heard = session.provided.fixed_tokens + session.context.tokens, session.context.heard
    if heard.counted < 0:
        return as_reported(session, counted)
    return heard.reported + as_reported(session, counted - heard.counted)


def as_reported(session: SessionState, estimate: int) -> int:
    return corrected(estimate, session.context.heard.reported, session.context.heard.estimated)


def apply_context(session: SessionState, entry: e.ContextEntry) -> None:
    match entry:
        case e.CompressAsked():
            session.compaction.asked = entry
        case e.ContextCompressed():
            _compressed(session, entry)
        case e.NotCompressed():
            session.compaction.failed_at = tokens(session)
            session.compaction.error = entry.error
            if session.reply is not None and session.reply.overflow == "refused":
                # Asked again with the same context, the model would refuse it again; another model may take it.
                session.reply.failed_models.append(session.spec.model)
            _tried(session, entry.usage)
        case _ as never:
            assert_never(never)


def take_marked(session: SessionState, marked: dict[int, Msg]) -> None:
    """Put messages without the secrets that they came with in the place of those with them, wherever these are held.

    By their place in a model's context. What came with the entry, and is not held any more, is passed over.
    """
    for at, shown in marked.items():
        place = at - bool(session.state.summary)
        if not 0 <= place < len(session.state.context):
            continue
        came = session.state.context[place]
        message = with_content(came, shown.content)
        session.state.context[place] = message
        held = session.context.marks[place].number - session.context.transcript_base
        if 0 <= held < len(session.context.transcript):
            session.context.transcript[held] = message
        session.log = [_without(entry, came, message) for entry in session.log]


def _without(entry: e.AnyEntry, came: Msg, shown: Msg) -> e.AnyEntry:
    """The entry that brought the message goes into segments as the message stands now."""
    if isinstance(entry, e.CallAnswered) and came.content == (entry.result,):
        (result,) = shown.get_tool_results()
        return entry.model_copy(update={"result": result})
    if not isinstance(entry, e.RequestAccepted | e.Observed | e.HubHeard | e.InterruptAsked):
        return entry
    messages = tuple(
        with_content(each, shown.content) if each.content == came.content else each for each in entry.messages
    )
    return entry if messages == entry.messages else entry.model_copy(update={"messages": messages})


def note_adjusted(session: SessionState, entry: e.ModelSaid | e.ContextCompressed | e.CallsExamined) -> None:
    if entry.adjusted:
        told = [*session.context.adjusted, *((entry.model, each) for each in entry.adjusted)]
        session.context.adjusted = told[-KEPT_ADJUSTMENTS:]


def _compressed(session: SessionState, entry: e.ContextCompressed) -> None:
    messages, marks = session.state.context, session.context.marks
    kept = [*entry.pinned, *range(entry.keep_from, len(messages))]
    pairs = [_masked(messages[at], marks[at]) if at in entry.masked else (messages[at], marks[at]) for at in kept]
    session.state.context = [message for message, _ in pairs]
    session.context.marks = [mark for _, mark in pairs]
    if entry.summary is not None:
        session.state.summary, session.context.summary_tokens = entry.summary, entry.summary_tokens
    session.context.tokens = session.context.summary_tokens + sum(mark.tokens for mark in session.context.marks)
    session.context.epoch = entry.epoch
    session.provided.take_told_prompt()
    session.context.shown_groups = ()
    session.context.heard = session.context.heard._replace(counted=-1)
    # What was observed meanwhile stands behind the kept messages, so the prefix that the activity saw still holds.
    session.context.cached_prefix = CachedPrefix(entry.context_digest, entry.context_length)
    session.context.reminders = standing_reminders(session)
    session.compaction.changed_at, session.compaction.failed_at = session.messages_total, 0
    session.compaction.error = None
    note_adjusted(session, entry)
    _tried(session, entry.usage)


def overflowed(session: SessionState) -> bool:
    """Note that the provider refused the context as too long; False when that was answered before in this reply."""
    if session.current.overflow:
        return False
    session.current.overflow = "refused"
    return True


def _tried(session: SessionState, usage: Usage | None) -> None:
    session.compaction.tries += 1
    session.compaction.asked = None
    session.spent.usage += usage or Usage()
    if session.reply is not None:
        session.reply.usage += usage or Usage()
        if session.reply.overflow == "refused":
            session.reply.overflow = "answered"


def _masked(message: Msg, mark: Mark) -> tuple[Msg, Mark]:
    content = tuple(
        block.model_copy(update={"output": MASK}) if isinstance(block, ToolResultBlock) else block
        for block in message.content
    )
    # Built again: a copy would keep the cached length of the old text.
    masked = Msg.model_validate({**message.model_dump(), "content": content})
    return masked, Mark(mark.number, "", outside_tokens(masked))


SHOWN_CHARS = 400
"""Of a refusal, in the error: all of it stands in the transcript."""


def refused(session: SessionState, entry: e.ModelSaid) -> None:
    """The model is not asked again in this reply. What it said is for people alone: shown to another model, it would be
    words of that one's own, and providers go on to refuse where a refusal stands in the context."""
    reply, usage, error = session.current, entry.message.usage or Usage(), refusal(entry)
    session.spent.model_calls += 1
    reply.usage, session.spent.usage = reply.usage + usage, session.spent.usage + usage
    (shown,) = stamped((entry.message,), entry)
    # With an id of its own: it is no part of the reply, which another model may give.
    session.show(shown.model_copy(update={"finished_reason": ends_as(entry.stop), "error": error}))
    model = entry.asked or session.spec.model
    reply.model_error = error
    reply.failed_models.append(model)
    reply.refused_by = (*reply.refused_by, model)


def leaves_out_refused(session: SessionState, reason: FinishedReason) -> bool:
    """Whether a reply ends with something that a model refused and none has answered: it would be refused with each
    later request."""
    if not session.current.refused_by:
        return False
    error = session.current.model_error
    # A refusal that another model has answered is none any more, whatever the reply ends with.
    refused_last = error is not None and error.type in {stop.value for stop in REFUSALS}
    return reason is FinishedReason.REFUSED or (reason is FinishedReason.EXCEED_MAX_ITERS and refused_last)


def refusal(entry: e.ModelSaid) -> ErrorInfo:
    """What a person is told of it: the provider's own words, or the model's, where there are some."""
    words = " ".join((entry.refusal or entry.message.get_text_content()).split())[:SHOWN_CHARS]
    what = "did not answer" if entry.stop is StopReason.REFUSED else "was stopped by a content filter"
    why = f": {words}" if words else ", and nothing was said why"
    return ErrorInfo(type=entry.stop.value, message=f"{entry.model or entry.asked} {what} ({entry.stop_reason}){why}")


def broke_off(session: SessionState, entry: e.ModelSaid) -> None:
    """Count messages in a row that are not whole; `agent.decision` says how many are too many."""
    reply, stop = session.current, entry.stop
    if stop not in BROKEN_OFF:
        reply.broken_off = 0
        return
    reply.broken_off += 1
    wordless = stop is StopReason.LENGTH and says_nothing(entry.message)
    reply.wordless += wordless
    overflow = stop is StopReason.WINDOW
    times = f", {reply.broken_off} times in a row" if reply.broken_off > 1 else ""
    reply.model_error = ErrorInfo(
        type="context_overflow" if overflow else "incomplete",
        message=f"The answer of {entry.model} broke off {WHERE[stop]} ({entry.stop_reason}){times}. {_FIX[stop]}",
    )
    if not entry.message.get_tool_calls():
        reply.to_go_on = "wordless" if wordless else _GO_ON[stop]
    if overflow and session.provided.window > 0:
        overflowed(session)


def mark(entry: e.ModelSaid) -> dict[str, FinishedReason]:
    """What a message that broke off bears in the transcript."""
    return {"finished_reason": ends_as(entry.stop)} if entry.stop in BROKEN_OFF else {}


def analysis_of(entry: e.ModelSaid, message: Msg, call_id: str) -> CallAnalysis | None:
    """What was found out about a call. The last one of a message that broke off is never run: what is missing of its
    arguments may be all of them."""
    calls = message.get_tool_calls()
    if entry.stop in BROKEN_OFF and calls[-1].id == call_id:
        return CallAnalysis(arguments_error=NOT_WHOLE)
    return entry.analysis.get(call_id)


def goes_on(session: SessionState, entry: e.ModelSaid) -> bool:
    """Whether the model is asked to go on, as far as its message tells. At the limit of iterations whatever it says is
    the last word."""
    reply = session.current
    return (
        (entry.stop in BROKEN_OFF or entry.goes_on)
        and not reply.calls
        and reply.cur_iter < session.spec.react_config.max_iters
    )


def lacks_its_form(reply: ReplyContext) -> bool:
    """Of an answer in words: whether it was asked for in a form. Then the model is told so, and asked again."""
    if reply.structured_schema is None:
        return False
    reply.to_go_on = "unstructured"
    reply.unstructured += 1
    return True


_GO_ON: dict[StopReason, GoOn] = {StopReason.LENGTH: "length", StopReason.PAUSED: "paused", StopReason.WINDOW: "window"}

_FIX = {
    StopReason.LENGTH: "Ask for less at a time, or raise max_output_tokens under [model_config] or max_continuations "
    "under [react_config].",
    StopReason.PAUSED: "Ask it to go on, or raise max_continuations under [react_config].",
    StopReason.WINDOW: "Compress the session (`longhaul compact`), or take a model with a larger window.",
}


TAKEN_OUT = "taken out of the context by hand"
UNANSWERED = "[left out: the model refused to answer this]"


def apply_repair(session: SessionState, repair: Repair) -> None:
    """Nothing that came while the model was asked can stand before these places: it was appended."""
    before = bool(session.state.summary)
    for place, message in rewritten(session.state.context, repair.left_out, before=before):
        mark = session.context.marks[place]
        session.state.context[place] = message
        session.context.marks[place] = Mark(mark.number, "", outside_tokens(message))
    if repair.left_out:
        session.context.tokens = session.context.summary_tokens + sum(mark.tokens for mark in session.context.marks)
        session.context.heard = session.context.heard._replace(counted=-1)
        session.context.cached_prefix = CachedPrefix(repair.context_digest, repair.context_length)
    if (blind := repair.takes_no_images) and blind not in session.context.takes_no_images:
        session.context.takes_no_images = [*session.context.takes_no_images, blind]


def leave_out_unanswered(session: SessionState) -> None:
    """Put words in the place of what no model has answered: what people have said, hints, and results. Their calls
    stay, for each has its result."""
    context, first = session.state.context, _newest(session.state.context)
    for place in range(first, len(context)):
        context[place] = message = with_content(context[place], _unanswered(context[place].content))
        session.context.marks[place] = Mark(session.context.marks[place].number, "", outside_tokens(message))
    session.context.tokens = session.context.summary_tokens + sum(mark.tokens for mark in session.context.marks)
    session.context.heard = session.context.heard._replace(counted=-1)
    if session.context.cached_prefix.length > first + bool(session.state.summary):
        session.context.cached_prefix = NOWHERE


def _newest(context: Sequence[Msg]) -> int:
    """Where what a model has not answered yet begins."""
    said = (TextBlock, ThinkingBlock, ToolCallBlock)
    spoken = (
        place
        for place, message in enumerate(context)
        if message.role == "assistant" and any(isinstance(block, said) for block in message.content)
    )
    return max(spoken, default=-1) + 1


def _unanswered(content: Sequence[ContentBlock]) -> tuple[ContentBlock, ...]:
    """Of one message; its own words are left out as one."""
    results = [
        block.model_copy(update={"output": UNANSWERED}) for block in content if isinstance(block, ToolResultBlock)
    ]
    hints = [block.model_copy(update={"hint": UNANSWERED}) for block in content if isinstance(block, HintBlock)]
    return (*results, *hints[:1]) if results or hints else (TextBlock(text=UNANSWERED),)


def rewritten(context: Sequence[Msg], outs: Iterable[LeftOut], *, before: int = 0) -> Iterator[tuple[int, Msg]]:
    """The messages that change, with their places. `before`: how many messages the outs count that are not here."""
    for place, of_message in groupby(outs, key=lambda out: out.message - before):
        if 0 <= place < len(context):
            yield place, without(context[place], tuple(of_message))


def without(message: Msg, outs: Sequence[LeftOut]) -> Msg:
    """The message with words, or nothing, in those places."""
    whole = {out.block: out for out in outs if out.part is None}
    parts = {
        place: [out for out in outs if out.block == place and out.part is not None]
        for place in range(max((out.block for out in outs), default=-1) + 1)
    }
    content: list[ContentBlock] = []
    for place, block in enumerate(message.content):
        if place in whole:
            content += _instead(block, whole[place])
        else:
            content.append(_with_parts(block, parts.get(place, [])))
    return with_content(message, content)


def suspects(context: Iterable[Msg], why: str = TAKEN_OUT) -> tuple[LeftOut, ...]:
    """All attachments, thinking and extras of a context: whatever a provider may refuse."""
    found: list[LeftOut] = []
    for number, message in enumerate(context):
        for place, block in enumerate(message.content):
            match block:
                case ThinkingBlock():
                    found.append(LeftOut(message=number, block=place))
                case TextBlock(extras=extras) | ToolCallBlock(extras=extras) if extras:
                    found.append(LeftOut(message=number, block=place, extras=True))
                case DataBlock():
                    found.append(LeftOut(message=number, block=place, words=words_for(block, why)))
                case HintBlock(hint=tuple(parts)) | ToolResultBlock(output=tuple(parts)):
                    found += [
                        LeftOut(message=number, block=place, part=at, words=words_for(part, why))
                        for at, part in enumerate(parts)
                        if isinstance(part, DataBlock)
                    ]
                case _:
                    pass
    return tuple(found)


def words_for(block: DataBlock, why: str) -> str:
    """What a model reads in the place of an attachment."""
    kind = block.source.media_type.partition("/")[0]
    what = kind if kind in ("image", "audio", "video") else "attachment"
    name = f" {block.name[:200]!r}" if block.name else ""
    return f"[{what}{name} ({block.source.media_type[:100]}) left out: {why}]"


def _instead(block: ContentBlock, out: LeftOut) -> list[ContentBlock]:
    if out.extras and isinstance(block, TextBlock | ToolCallBlock):
        return [block.model_copy(update={"extras": {}})]
    if out.media_type and isinstance(block, DataBlock):
        return [_declared(block, out.media_type)]
    return [TextBlock(text=out.words)] if out.words else []


def _with_parts(block: ContentBlock, outs: Sequence[LeftOut]) -> ContentBlock:
    match block:
        case HintBlock(hint=tuple(parts)) if outs:
            return block.model_copy(update={"hint": _parts(parts, outs)})
        case ToolResultBlock(output=tuple(parts)) if outs:
            return block.model_copy(update={"output": _parts(parts, outs)})
        case _:
            return block


def _parts(parts: Sequence[TextBlock | DataBlock], outs: Sequence[LeftOut]) -> tuple[TextBlock | DataBlock, ...]:
    by_place = {out.part: out for out in outs}
    return tuple(_part(part, by_place[at]) if at in by_place else part for at, part in enumerate(parts))


def _part(part: TextBlock | DataBlock, out: LeftOut) -> TextBlock | DataBlock:
    if out.media_type and isinstance(part, DataBlock):
        return _declared(part, out.media_type)
    return TextBlock(text=out.words)


def _declared(block: DataBlock, media_type: str) -> DataBlock:
    return block.model_copy(update={"source": block.source.model_copy(update={"media_type": media_type})})


def groups_sent(session: SessionState) -> tuple[str, ...]:
    """Those whose tools a model is shown."""
    return (*session.state.tool_context.activated_groups, *session.context.shown_groups)


def prompt_parts(session: SessionState, model: str, tokens: int = 0) -> PromptSent:
    """Of a call that this model is sent now."""
    provided, reply, config = session.provided, session.reply, session.spec.call_config
    closing = reply is not None and reply.cur_iter >= session.spec.react_config.max_iters
    return PromptSent(
        model=model,
        tools=" ".join((provided.spec_digest, *sorted(groups_sent(session)))),
        system=provided.prompt_digest,
        messages=session.context.epoch,
        choice="closing" if closing else "",
        settings=f"{config.reasoning_effort} {config.thinking_budget_tokens}",
        at=session.latest_at,
        tokens=tokens,
    )


def expected(session: SessionState, model: str) -> tuple[int, MissReason]:
    """Tokens that the provider should read in its cache at the next call, and why it may not. 0 where nothing is
    expected: of a first call, and of a provider that has told of no cache yet."""
    sent, usage = session.context.sent, session.spent.usage
    if sent is None or not (usage.cache_input_tokens or usage.cache_creation_input_tokens):
        return 0, ""
    return sent.tokens, change(sent, prompt_parts(session, model))


def is_cold(session: SessionState, model: str) -> bool:
    """Whether a question behind the context finds none of it in the provider's cache. The choice of tools is that of
    any call."""
    sent = session.context.sent
    return sent is None or change(sent, prompt_parts(session, model)._replace(choice=sent.choice)) != ""


def note_sent(session: SessionState, entry: e.ModelSaid, usage: Usage) -> None:
    """Before the reply takes in the answer."""
    models = (session.spec.model, session.spec.llm_config.fallback_model)
    model = next((each for each in models if each and not session.current.is_passed_over(each)), session.spec.model)
    session.context.sent = prompt_parts(session, model, 0 if usage.estimated else usage.input_tokens)
    if entry.cache_missed:
        known = session.spent.cache_missed.get(entry.cache_reason, Missed())
        added = Missed(calls=known.calls + 1, tokens=known.tokens + entry.cache_missed)
        session.spent.cache_missed = {**session.spent.cache_missed, entry.cache_reason: added}
