"""Plays whole runs in memory: does each step that `decide` names, from a script of what the world answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from pydantic import TypeAdapter

from longhaul.agent import entries as e
from longhaul.agent.decision import BEHAVIOUR, decide
from longhaul.agent.decisions.call_rulings import with_own_call_ids
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.entries import Given
from longhaul.agent.incarnation.continued_state import Carried, carry
from longhaul.agent.journal import Journal
from longhaul.agent.operations.all_operations import receive
from longhaul.agent.operations.approval_operations import Key, conclude_verification, why_not
from longhaul.agent.operations.bodies import Confirm, ReceivedOperation, Unusable
from longhaul.agent.permission.call_analysis import CallAnalysis, PathUse
from longhaul.agent.plain.values import chain_digest
from longhaul.agent.reducer.context_state import Cut
from longhaul.agent.steps import (
    Act,
    Answer,
    BeginStep,
    Book,
    Checkpoint,
    Close,
    Compress,
    ContinueAsNew,
    Examine,
    Finish,
    HandleInterrupt,
    Idle,
    Join,
    Judge,
    Memorise,
    Park,
    Prepare,
    Probe,
    Remind,
    Report,
    Restore,
    Step,
    TakeIn,
    TakeOver,
    Tell,
    TellAsker,
    TellHub,
    Think,
    Verify,
)
from longhaul.agent.values.budget import Tariff
from longhaul.agent.values.conversation.messages import (
    REFUSALS,
    AssistantMsg,
    ContentBlock,
    ErrorInfo,
    Msg,
    StopReason,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    Usage,
    message_digest,
)
from longhaul.agent.values.conversation.tools import Effect, Finding, ToolDescriptor
from longhaul.agent.values.permission import Behavior, PermissionContext, PermissionRule
from longhaul.agent.values.spec.agent_spec import AgentSpec, ReActConfig
from longhaul.agent.values.stuck_detection import StuckConfig
from longhaul.agent.views.event_types import EventsSoFar

TOOLS = (
    ToolDescriptor(name="Look", read_only=True, concurrency_safe=True, effect=Effect.READ),
    ToolDescriptor(name="Measure", concurrency_safe=True),
    ToolDescriptor(name="Paint"),
    ToolDescriptor(name="Order", external=True),
    ToolDescriptor(name="Demolish"),
)
"""Look passes unasked, Measure and Paint ask, Order runs outside, Demolish is forbidden."""

RULES = (
    PermissionRule(tool_name="Order", source="the house"),
    PermissionRule(tool_name="Demolish", behavior=Behavior.DENY, source="the house"),
)
UNWATCHED = StuckConfig(enabled=False)
"""Most stories here repeat themselves, and what they show is something else."""
SPEC = AgentSpec(name="mason", model="scripted:wall", permission=PermissionContext(rules=RULES), stuck=UNWATCHED)
NOON = 1_764_072_000_000
"""2025-11-25T12:00:00Z in milliseconds."""


@dataclass(frozen=True)
class Stopped:
    """What a model says that does not just end."""

    content: list[ContentBlock]
    stop: StopReason
    word: str = "as_the_provider_says"
    refusal: str = ""


Line = list[ContentBlock] | ErrorInfo | Stopped
ENTRIES = TypeAdapter(list[e.AnyEntry])


def text(words: str) -> list[ContentBlock]:
    return [TextBlock(text=words)]


def calls(*pairs: str, arguments: str = "{}") -> list[ContentBlock]:
    """`calls("a Look", "b Paint")`: two calls, by id and tool."""
    split = (pair.split(" ") for pair in pairs)
    return [ToolCallBlock(id=call_id, name=name, input=arguments) for call_id, name in split]


def succeeded(call_id: str, name: str, words: str = "done", **fields: Any) -> e.ToolReturned:
    return e.ToolReturned(result=ToolResultBlock(id=call_id, name=name, output=words), digest=f"d-{call_id}", **fields)


def site(path: str) -> CallAnalysis:
    """The findings about a call that writes to this path of the building site."""
    return CallAnalysis(cwd="/site", paths=(PathUse(path=path, access="write", inside=True),))


def spec_with(**react: object) -> AgentSpec:
    """The mason with other limits."""
    return SPEC.model_copy(update={"react_config": ReActConfig.model_validate(react)})


def carried_over(journal: Journal, before: EventsSoFar | None = None, *, all_of_it: bool = False) -> Carried:
    """What the next run starts with: through JSON, as Temporal takes it. `all_of_it`: what stands outside too."""
    saved = (0, 0) if all_of_it else (journal.keeping.saved, journal.keeping.saved_messages)
    left = carry(journal, before or EventsSoFar(), *saved)
    return Carried.model_validate_json(left.model_dump_json())


@dataclass
class Play:
    """One session. `lines` is what the model says; `outcomes` what tools return (default: success)."""

    lines: Iterable[Line] = ()
    spec: AgentSpec = SPEC
    analysis: dict[str, list[CallAnalysis]] = field(default_factory=dict)
    """By call id: the first is found when the model speaks, the next at each later look; the last one stays."""
    outcomes: dict[str, list[e.CallOutcome]] = field(default_factory=dict)
    summaries: Iterable[str | ErrorInfo] = ()
    """What compressions come to; after the last one, a summary that counts them."""
    findings: dict[str, tuple[Finding, str]] = field(default_factory=dict)
    """By call id: what its tool sees when it looks whether the call happened."""
    tools: tuple[ToolDescriptor, ...] = TOOLS
    tariffs: dict[str, Tariff] = field(default_factory=dict)
    """What its worker knows of models, for an agent with a budget."""
    usage: Usage = field(default_factory=lambda: Usage(input_tokens=10, output_tokens=3))
    """Of each model call."""
    behaviour: int = BEHAVIOUR
    """Of the workers that prepare its replies."""
    keys: tuple[Key, ...] = ()
    """With which signed decisions are checked; the session is the workflow `wall-7`."""
    now: int = NOON
    load: Load = field(default_factory=Load)
    window: int = 0
    """Tokens of the model's window; 0 = unknown, and nothing is compressed."""
    fixed_tokens: int = 0
    keeps: bool = False
    """Whether it looks for an earlier incarnation and writes itself down; else it is as if that were done at once."""
    earlier: Carried | None = None
    """What an earlier incarnation left, for a session that keeps."""
    running: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    """Each happens once, while the next step that takes time is under way."""
    events_before: EventsSoFar = field(default_factory=EventsSoFar)
    asked: Step | None = None
    """A step that takes time, while it is under way."""
    handler: Callable[[Journal], e.InterruptHandled] | None = None
    """The workers' hook for interrupts."""
    seen: int = 0

    def __post_init__(self) -> None:
        opened = e.SessionOpened(seq=1, at=self.now, session_id="wall-7", user_id="ana", spec=self.spec)
        self.journal = Journal.of([opened])
        self.journal.incarnation.restored = not self.keeps
        self._lines = iter(self.lines)
        self._summaries = iter(self.summaries)

    def write(self, entry: e.AnyEntry) -> None:
        self.now += 1
        self.journal.write(entry, self.now)

    def tell(self, name: str, *arguments: Any) -> dict[str, Any] | str:
        """Send an operation; the answer, or the sentence of the refusal."""
        fresh_id = f"fresh-{self.journal.seq}"
        operation = ReceivedOperation(name, list(arguments), fresh_id, lambda request: f"reply-of-{request}")
        try:
            received = receive(self.journal, operation)
        except Unusable as refusal:
            self.write(e.OperationRefused(name=name, reason=str(refusal), count=self.journal.refused.count + 1))
            return str(refusal)
        for entry in received.entries:
            self.write(entry)
        return received.answer

    def say(self, words: str, request_id: str = "r1") -> dict[str, Any] | str:
        return self.tell("submit", {"messages": words, "request_id": request_id})

    def allow(self, *call_ids: str, **more: Any) -> dict[str, Any] | str:
        decisions = [{"call_id": call_id, "decision": "allow", **more} for call_id in call_ids]
        return self.tell("confirm", {"decisions": decisions, "approver": "ben"})

    def deny(self, *call_ids: str, **more: Any) -> dict[str, Any] | str:
        decisions = [{"call_id": call_id, "decision": "deny", **more} for call_id in call_ids]
        return self.tell("confirm", {"decisions": decisions, "approver": "ben"})

    def run(self, *, hold: bool = False) -> Step:
        """Go on until nothing more happens by itself; with `hold`, running calls stay running."""
        for _ in range(500):
            step = self.begin()
            if self.asked:
                while self.meanwhile:
                    self.meanwhile.pop(0)()
                self.complete()
            elif isinstance(step, ContinueAsNew | Close | TellHub | TellAsker):
                return step
            elif isinstance(step, Park | Idle):
                if not self.running or hold:
                    return step
                self.end_call(self.running[0])
        raise AssertionError(f"no end in sight: {self.steps[-10:]}")

    def begin(self) -> Step:
        """Ask for the next step and do it; one that takes time is only started."""
        step = self.decided()
        self.steps.append(step)
        match step:
            case Prepare(reply_id):
                if self.journal.reply is None:
                    self.write(e.ReplyStarted(reply_id=reply_id))
                self.asked = step
            case Think():
                self.asked, self.seen = step, self.journal.context_length
            case (
                Examine() | TakeIn() | Probe() | Verify() | Compress() | Restore() | Checkpoint()
                | HandleInterrupt() | Memorise()
            ):  # fmt: skip
                self.asked = step
            case Judge(rulings):
                self.write(e.CallsJudged(rulings=rulings))
            case Act(call_ids):
                self.running.extend(call_ids)
            case Answer(entry) | Remind(entry) | Join(entry) | BeginStep(entry) | Book(entry):
                self.write(entry)
            case Finish(reply_id, reason, error, closing, said):
                self.write(e.ReplyFinished(reply_id=reply_id, reason=reason, error=error, closing=closing, said=said))
            case Park() | Idle() | ContinueAsNew() | Close() | Tell() | Report() | TellHub() | TellAsker() | TakeOver():
                pass
            case _ as never:
                assert_never(never)
        return step

    def decided(self) -> Step:
        journal = self.journal
        if not self.keeps:
            journal.keeping.saved, journal.keeping.mirrored, journal.notifications.unsent = (
                journal.keeping.changed,
                journal.keeping.changed,
                {},
            )
        return decide(journal, replace(self.load, running=frozenset(self.running)))

    def complete(self) -> None:  # noqa: C901, PLR0912, PLR0915  one arm per step that takes time
        """Record what came of the step that was started."""
        asked, self.asked = self.asked, None
        match asked:
            case Prepare():
                known = None if self.journal.provided.tools else self.tools
                self.write(
                    e.Prepared(
                        behaviour=self.behaviour,
                        spec_digest="s1",
                        tools=known,
                        workspace_root="/site",
                        workspace_nonce="n",
                        fixed_tokens=self.fixed_tokens,
                        context_length=self.window,
                        hooked_interrupts=self.handler is not None,
                        tariffs=self.tariffs,
                    )
                )
            case Think(model):
                self._hear(model)
            case Examine(call_ids):
                self.write(e.CallsExamined(analysis={call_id: self._find(call_id) for call_id in call_ids}))
            case Compress(cut):
                self._shorten(cut)
            case TakeIn(call_id):
                call = self.journal.reply.calls[call_id] if self.journal.reply else None
                assert call is not None
                assert call.received is not None
                self.write(e.ToolReturned(result=call.received, digest=f"d-{call_id}", outside=True))
            case Verify(decisions_at):
                body = Confirm.model_validate(self.journal.unverified.waiting[decisions_at].body)
                for entry in conclude_verification(self.journal, decisions_at, *why_not(body, self.keys, "wall-7")):
                    self.write(entry)
            case HandleInterrupt():
                assert self.handler is not None
                self.write(self.handler(self.journal))
            case Memorise():
                self.write(e.MemoryRecorded(reply_id=self.journal.current.reply_id, memories=1))
            case Probe(call_id):
                finding, detail = self.findings.pop(call_id, ("unknown", ""))
                self.write(e.OutcomeProbed(call_id=call_id, finding=finding, detail=detail))
            case Restore():
                incarnation = self.earlier.session.incarnation.number + 1 if self.earlier else 1
                found = e.Restored(incarnation=incarnation, source="store" if self.earlier else "nothing")
                self.now += 1
                self.journal.restore(found, self.earlier.session if self.earlier else None, self.now)
            case Checkpoint(closing):
                total = self.journal.messages_total
                told = tuple(Given(key=key, done=True) for key in self.journal.notifications.unsent)
                self.write(e.Checkpointed(through=self.journal.seq, messages=total, closing=closing, notified=told))
            case _:
                raise AssertionError(f"nothing was started that takes time, but {asked}")

    def _hear(self, model: str) -> None:
        line = next(self._lines, text("(end of script)"))
        if isinstance(line, ErrorInfo):
            self.write(e.ModelFailed(model=model, error=line))
            return
        if not isinstance(line, Stopped):
            line = Stopped(line, StopReason.END, "")
        message = AssistantMsg("mason", line.content, usage=self.usage)
        digest = message_digest(message)
        self.write(
            with_own_call_ids(
                e.ModelSaid(
                    message=message,
                    digest=digest,
                    context_digest=chain_digest(f"seen-{self.seen}", digest),
                    context_length=self.seen + 1,
                    analysis={block.id: self._find(block.id) for block in message.get_tool_calls()},
                    model=model,
                    stop=line.stop,
                    stop_reason=line.word,
                    asked=model if line.stop in REFUSALS else "",
                    refusal=line.refusal,
                ),
                self.journal,
            )
        )

    def _shorten(self, cut: Cut) -> None:
        outcome = next(self._summaries, f"Summary {self.journal.compaction.tries + 1}.")
        if isinstance(outcome, ErrorInfo):
            self.write(e.NotCompressed(error=outcome))
            return
        self.write(
            e.ContextCompressed(
                epoch=self.journal.context.epoch + 1,
                keep_from=cut.keep_from,
                pinned=cut.pinned,
                summary=outcome,
                summary_tokens=20,
            )
        )

    def _find(self, call_id: str) -> CallAnalysis:
        left = self.analysis.get(call_id, [])
        if not left:
            return CallAnalysis()
        return left.pop(0) if len(left) > 1 else left[0]

    def end_call(self, call_id: str) -> None:
        self.running.remove(call_id)
        left = self.outcomes.get(call_id, [])
        self.write(left.pop(0) if left else succeeded(call_id, self.journal.calls.names[call_id]))

    def continue_as_new(self) -> None:
        left = carried_over(self.journal, self.events_before, all_of_it=not self.keeps)
        self.journal, self.events_before = Journal.over(left.session), left.events

    def results(self) -> list[tuple[str, str, str]]:
        """Every result in the context, in order: call id, state, text."""
        blocks = (block for message in self.journal.state.context for block in message.get_tool_results())
        return [(block.id, block.state.value, block.get_text()) for block in blocks]

    def ends(self) -> list[tuple[str, str]]:
        """Every finished reply: its id and why it ended."""
        return [(ended.reply_id, ended.reason.value) for ended in self.journal.requests.finished.values()]

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.journal.log]


def asking(*pairs: str) -> Play:
    """A session whose model has made these calls, run until somebody is waited for."""
    play = Play([calls(*pairs), text("Done.")])
    play.say("Go")
    play.run()
    return play


def spoken(messages: Iterable[Msg]) -> list[str]:
    """Each message in a few words: its text, `call a`, or `result a`."""
    return [" + ".join(_brief(block) for block in message.content) for message in messages]


def _brief(block: ContentBlock) -> str:
    match block:
        case TextBlock():
            return block.text
        case ToolCallBlock():
            return f"call {block.id}"
        case ToolResultBlock():
            return f"result {block.id}"
        case _:
            return block.type
