"""Operations, answers and continue-as-new in any order: what must be true of a session whatever happens."""

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from longhaul.agent import entries as e
from longhaul.agent.decision import decide
from longhaul.agent.decisions.continue_as_new import Load
from longhaul.agent.incarnation.history import History, boundary_of
from longhaul.agent.operations.request_operations import BEGINS
from longhaul.agent.permission.call_analysis import CallAnalysis
from longhaul.agent.steps import ContinueAsNew, Idle, Park, Think
from longhaul.agent.values.conversation.messages import ErrorInfo, Msg, ToolCallBlock, ToolResultState
from longhaul.agent.values.spec.agent_spec import ReActConfig
from longhaul.agent.views.events import EventReducer
from tests.agent.play import SPEC, TOOLS, Line, Play, succeeded, text

IDS = ("a", "b", "c", "d")
TOOL_NAMES = st.sampled_from(["Look", "Look", "Measure", "Paint", "Order", "Demolish", "Fly"])
CALLS = st.lists(st.builds(lambda key, name: ToolCallBlock(id=key, name=name, input="{}"), st.sampled_from(("", *IDS)),
                           TOOL_NAMES), min_size=1, max_size=4)  # fmt: skip
LINES: st.SearchStrategy[Any] = st.one_of(
    CALLS,
    CALLS,
    st.just(text("An answer.")),
    st.just([]),
    st.just(ErrorInfo(type="upstream", message="The provider was overloaded.")),
)
ANALYSIS = st.sampled_from(
    [
        CallAnalysis(),
        CallAnalysis(cwd="/site"),
        CallAnalysis(cwd="/other", before="absent"),
        CallAnalysis(arguments_error="broken"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda part: st.lists(part, max_size=2) | st.dictionaries(st.text(max_size=8), part, max_size=2),
    max_leaves=5,
)
OPERATION_ROWS = st.sampled_from(
    [
        "submit",
        "confirm",
        "external_result",
        "interrupt",
        "stop_background",
        "observe",
        "configure",
        "pause",
        "step",
        "shout",
    ]
)
FIELDS = st.sampled_from(
    ["messages", "message", "decisions", "results", "reply_id", "confirm_results", "execution_results", "mode", "rules"]
)


class AnyOrder(RuleBasedStateMachine):
    keeps = False
    window = 0
    fixed_tokens = 0

    def __init__(self) -> None:
        super().__init__()
        self.script: list[Line] = []
        spec = SPEC.model_copy(update={"react_config": ReActConfig(max_iters=4)})
        self.play = Play(
            iter(self.script),
            spec=spec,
            tools=tuple(tool.model_copy(update={"probes": tool.name == "Measure"}) for tool in TOOLS),
            keeps=self.keeps,
            window=self.window,
            fixed_tokens=self.fixed_tokens,
        )
        self.play._lines = iter(lambda: self.script.pop(0), None)  # noqa: SLF001  it grows while it is read
        self.told = 0
        self.history = History()
        self.messages: list[Msg] = []

    def send(self, name: str, *arguments: Any) -> None:
        """Tell the session; a refused operation must have changed nothing but the refusals."""
        before = self.frozen()
        answer = self.play.tell(name, *arguments)
        if isinstance(answer, str):
            assert self.play.journal.refused.newest[-1].reason == answer
            assert self.frozen() == before

    def frozen(self) -> str:
        journal = self.play.journal
        return repr(
            (
                journal.state.model_dump_json(),
                journal.spec,
                journal.requests.queue,
                journal.requests.steering,
                journal.requests.joined,
                list(journal.requests.handled.items()),
                journal.context.marks,
                journal.context.cached_prefix,
                journal.context.deferred,
                journal.requests.finished,
                list(journal.unknown_outcomes.values()),
                journal.pause,
            )
        )

    def waiting(self, state: str) -> list[str]:
        reply = self.play.journal.reply
        return [key for key, call in reply.calls.items() if call.state == state] if reply else []

    def some_call(self, data: st.DataObject, state: str) -> str:
        reply = self.play.journal.reply
        others = list(reply.calls) if reply else []
        return data.draw(st.sampled_from([*self.waiting(state) * 5, *others, "never"]))

    @rule(data=st.data(), words=st.sampled_from(["Build", "Paint", ""]), again=st.booleans())
    def ask_or_tell(self, data: st.DataObject, words: str, again: bool) -> None:
        self.told += not again
        operations: list[tuple[str, Any]] = [
            ("submit", {"request_id": f"r{self.told}", "messages": words}),
            ("submit", {"request_id": f"n{self.told}", "messages": words, "when": "now"}),
            ("submit", {"request_id": f"i{self.told}", "messages": words, "when": "interrupt"}),
            ("interrupt", {"request_id": f"r{self.told}"}),
            ("observe", {"messages": "It rains."}),
            ("interrupt", {"message": data.draw(st.none() | st.just("Stop!"))}),
            ("configure", {"mode": data.draw(st.sampled_from(["default", "bypass", "explore", "dont_ask"]))}),
            ("configure", {"max_iters": 3, "model": "qwen:m", "rules": [{"tool_name": "Measure"}]}),
        ]
        self.send(*data.draw(st.sampled_from(operations)))

    @rule(name=st.sampled_from(["pause", "step", "step", "resume"]))
    def stand_still_or_go_on(self, name: str) -> None:
        self.send(name)

    @precondition(lambda self: self.waiting("asking"))
    @rule(data=st.data(), allow=st.booleans(), edit=st.none() | st.just({"colour": "blue"}), rules=st.booleans())
    def decide_on(self, data: st.DataObject, allow: bool, edit: dict[str, str] | None, rules: bool) -> None:
        decision: dict[str, Any] = {"call_id": self.some_call(data, "asking"), "decision": "allow" if allow else "deny"}
        decision |= {"input": edit, "rules": rules} if allow else {"reason": "no"}
        self.send("confirm", {"decisions": [decision]})

    @precondition(lambda self: self.waiting("asking"))
    @rule(word=st.sampled_from(["allow", "deny"]))
    def decide_on_all(self, word: str) -> None:
        self.send("confirm", {"decisions": [{"call_id": key, "decision": word} for key in self.waiting("asking")]})

    @precondition(lambda self: self.waiting("submitted"))
    @rule(data=st.data())
    def hand_in(self, data: st.DataObject) -> None:
        call_id = self.some_call(data, "submitted")
        self.send("external_result", {"results": [{"id": call_id, "output": [1, {"x": None}]}]})

    @precondition(lambda self: self.waiting("submitted"))
    @rule(data=st.data(), text=st.text(max_size=5))
    def hand_in_a_piece(self, data: st.DataObject, text: str) -> None:
        call_id = self.some_call(data, "submitted")
        self.send("external_result", {"results": [{"id": call_id, "output": text, "partial": True}]})

    @precondition(lambda self: self.play.journal.unknown_outcomes)
    @rule(data=st.data(), happened=st.booleans())
    def resolve(self, data: st.DataObject, happened: bool) -> None:
        call_id = data.draw(st.sampled_from([*self.play.journal.unknown_outcomes, "never"]))
        self.send("resolve", {"call_id": call_id, "happened": happened})

    @rule(name=OPERATION_ROWS, body=JSON | st.dictionaries(FIELDS, JSON, max_size=2))
    def send_malformed_input(self, name: str, body: Any) -> None:
        self.send(name, body)

    @rule()
    def wait_for_a_minute(self) -> None:
        self.play.now += 70_000

    @precondition(lambda self: self.play.asked is None)
    @rule()
    def take_one_step(self) -> None:
        self.play.begin()

    @precondition(lambda self: self.play.asked is None)
    @rule()
    def go_on(self) -> None:
        while not self.play.asked and not isinstance(self.play.begin(), Park | Idle):
            pass

    @precondition(lambda self: not self.play.journal.state.reply_context and not self.play.asked)
    @precondition(lambda self: not self.play.journal.pause)
    @rule()
    def start_a_reply(self) -> None:
        self.told += 1
        self.send("submit", {"request_id": f"r{self.told}", "messages": "Build"})
        self.go_on()
        self.play.complete()
        self.play.begin()

    @precondition(lambda self: isinstance(self.play.asked, Think))
    @rule(line=CALLS)
    def make_calls(self, line: Line) -> None:
        self.answer_with(line, CallAnalysis())
        self.go_on()

    @precondition(lambda self: self.play.asked is not None)
    @rule(line=LINES, analysis=ANALYSIS)
    def answer(self, line: Line, analysis: CallAnalysis) -> None:
        self.answer_with(line, analysis)

    def answer_with(self, line: Line, analysis: CallAnalysis) -> None:
        self.script[:] = [line]
        reply = self.play.journal.reply
        ids = [*IDS, "", *(reply.calls if reply else ())]
        self.play.analysis = {call_id: [analysis] for call_id in ids}
        self.play.complete()

    @precondition(lambda self: self.play.running)
    @rule(data=st.data(), what=st.sampled_from(["success", "moved", "unknown", "unsettled"]))
    def end_call(self, data: st.DataObject, what: str) -> None:
        call_id = data.draw(st.sampled_from(self.play.running))
        name = self.play.journal.calls.names[call_id]
        outcome: e.ToolReturned | e.CallUnsettled = succeeded(call_id, name, what)
        if what == "moved":
            outcome = succeeded(call_id, name, cwd=f"/other/{self.told}")
        elif what == "unknown":
            result = succeeded(call_id, name).result.model_copy(update={"state": ToolResultState.UNKNOWN})
            outcome = e.ToolReturned(result=result)
        elif what == "unsettled":
            outcome = e.CallUnsettled(call_id=call_id, analysis=CallAnalysis(cwd="/new"), reason="it had moved")
        self.play.outcomes[call_id] = [outcome]
        self.play.end_call(call_id)

    @precondition(lambda self: not self.play.running and self.play.asked is None)
    @rule()
    def continue_as_new(self) -> None:
        before, refused, events = self.frozen(), self.play.journal.refused.count, self.events()
        self.play.continue_as_new()
        assert self.frozen() == before
        assert self.play.journal.refused.count == refused
        assert self.events() == events

    def events(self) -> list[str]:
        before, log = self.play.events_before, self.play.journal.log
        told, left = EventReducer(before).catch_up(log), EventReducer(before).pass_over(log)
        assert left.count == before.count + len(told)
        return [left.model_dump_json(), *(event.model_dump_json() for event in told if not self.keeps)]

    @invariant()
    def the_next_step_can_always_be_told(self) -> None:
        step = decide(self.play.journal, Load(continue_as_new_suggested=True, running=frozenset(self.play.running)))
        assert not (isinstance(step, ContinueAsNew) and self.play.running)

    @invariant()
    def a_paused_session_begins_nothing(self) -> None:
        journal = self.play.journal
        step = decide(journal, Load(running=frozenset(self.play.running)))
        if journal.pause and journal.pause.step != "started":
            assert not isinstance(step, BEGINS)

    @invariant()
    def calls_and_results_stand_together(self) -> None:
        """Between a turn's calls and the last of its results stands nothing else, and each has exactly one."""
        journal = self.play.journal
        missing: list[str] = []
        for message in journal.state.context:
            results = [block.id for block in message.get_tool_results()]
            if missing:
                assert len(results) == 1
                assert results[0] in missing
                missing.remove(results[0])
            else:
                assert not results
                missing = [call.id for call in message.get_tool_calls()]
                assert len(set(missing)) == len(missing)
        reply = journal.reply
        assert set(missing) == {key for key, call in (reply.calls if reply else {}).items() if call.state != "finished"}
        if not self.window:
            assert len(set(journal.calls.names)) == sum(len(m.get_tool_calls()) for m in journal.state.context)

    @invariant()
    def only_calls_that_were_allowed_are_running(self) -> None:
        reply = self.play.journal.reply
        assert all(reply is not None and reply.calls[key].state == "allowed" for key in self.play.running)

    @invariant()
    def the_cached_prefix_lies_within_the_context(self) -> None:
        journal = self.play.journal
        assert journal.context.cached_prefix.length <= journal.context_length
        assert len(journal.state.context) == len(journal.context.marks)

    @invariant()
    def events_are_numbered_without_gaps(self) -> None:
        before = self.play.events_before.count
        events = EventReducer(self.play.events_before).catch_up(self.play.journal.log)
        assert [event.seq - before for event in events] == list(range(1, len(events) + 1))

    @invariant()
    def messages_are_numbered_without_gaps(self) -> None:
        journal = self.play.journal
        kept = {
            mark.number: message for mark, message in zip(journal.context.marks, journal.state.context, strict=True)
        }
        assert list(kept) == sorted(kept)
        for number, message in kept.items():
            if number >= journal.context.transcript_base and not message.get_tool_results():
                assert journal.context.transcript[number - journal.context.transcript_base] == message
        assert journal.context.tokens == journal.context.summary_tokens + sum(
            mark.tokens for mark in journal.context.marks
        )

    @invariant()
    def messages_follow_from_the_entries_alone_from_any_entry_on(self) -> None:
        journal = self.play.journal
        for entry in journal.log:
            if entry.seq > self.history.seq:
                boundary = self.history.boundary
                resumed = History() if boundary is None else History.at(json.loads(json.dumps(boundary)))
                told = self.history.take(entry)
                assert resumed.take(entry) == told
                assert resumed.boundary == self.history.boundary
                self.messages += [message for _, message in told]
        assert self.history.boundary == (boundary_of(journal) if journal.log else None)
        assert self.history.messages_total == journal.messages_total == len(self.messages)
        assert self.messages[journal.context.transcript_base :] == journal.context.transcript

    def teardown(self) -> None:
        """Left alone, the session comes to rest, and every call has its result or waits for somebody."""
        play = self.play
        self.script[:] = []
        play._lines = iter(())  # noqa: SLF001
        if play.asked:
            play.complete()
        while isinstance(step := play.run(), Park):
            assert step.waits_for in ("person", "outside", "resume")
            play.tell("resume" if step.waits_for == "resume" else "interrupt")
        self.every_request_has_come_to_one_end()
        before = play.journal.state
        play.continue_as_new()
        assert play.journal.state == before

    def every_request_has_come_to_one_end(self) -> None:
        """Each was started once, has joined one reply, or was dropped."""
        journal = self.play.journal
        assert not journal.requests.steering
        assert not journal.requests.queue
        for handled in journal.requests.handled.values():
            assert (handled.reply_id in journal.requests.finished) != (handled.reply_id in journal.requests.joined)
        assert all(reply in journal.requests.finished for reply in journal.requests.joined.values())


class KeptInAnyOrder(AnyOrder):
    """The same with a window so small that contexts are compressed, with checkpoints, and with an incarnation
    before."""

    keeps = True
    window = 900
    fixed_tokens = 20


AnyOrder.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
TestAnyOrder = AnyOrder.TestCase
KeptInAnyOrder.TestCase.settings = AnyOrder.TestCase.settings
TestKeptInAnyOrder = KeptInAnyOrder.TestCase
