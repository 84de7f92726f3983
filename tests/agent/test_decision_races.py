"""Decisions that come at once, twice, late or from elsewhere: one of them counts, and nothing runs without one."""

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import reached
from longhaul.agent.reducer.approval_digest import seen_digest
from longhaul.agent.steps import Act, Idle, Park
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.spec.agent_spec import ReActConfig
from tests.agent.play import SPEC, Play, asking, calls, text


def ran(play: Play) -> list[str]:
    """What was started, in order: the tools' own account, which nothing in the journal can change."""
    return [call_id for step in play.steps if isinstance(step, Act) for call_id in step.call_ids]


@pytest.mark.parametrize("seed", range(100))
def test_of_decisions_that_race_with_an_interrupt_one_wins_and_is_recorded(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  an order, not a secret
    play = asking("a Paint")
    assert play.journal.reply is not None
    digest = seen_digest(play.journal.reply.calls["a"], play.journal)
    elsewhere = seen_digest(play.journal.reply.calls["a"].model_copy(update={"asked_at": 7}), play.journal)
    operations: list[tuple[str, dict[str, Any]]] = [
        ("confirm", decision("ana", "allow", digest)),
        ("confirm", decision("ana", "allow", digest)),
        ("confirm", decision("ben", "deny", digest)),
        ("confirm", decision("eve", "allow", elsewhere)),
        ("interrupt", {}),
    ]
    chance.shuffle(operations)

    accepted: list[str] = []
    for name, body in operations:
        if isinstance(play.tell(name, body), dict):
            accepted.append("interrupt" if name == "interrupt" else body["approver"])
        for _ in range(chance.randrange(4)):
            if not play.asked:
                play.begin()
    if play.asked:
        play.complete()
    play.run()

    made = [(one.approver, one.decision) for one in play.journal.state.decisions]
    assert made in ([], [("ana", "allow")], [("ben", "deny")]), "never two, and never the one from elsewhere"
    assert accepted.count("ana") + accepted.count("ben") == len(made)
    assert ran(play) in ([], ["a"])
    assert not ran(play) or made == [("ana", "allow")]
    assert [call_id for call_id, _, _ in play.results()] == ["a"]
    if accepted[:1] == ["interrupt"]:
        assert ran(play) == []


def decision(approver: str, word: str, digest: str) -> dict[str, Any]:
    return {"decisions": [{"call_id": "a", "decision": word, "digest": digest}], "approver": approver}


def test_decisions_may_come_one_by_one_or_together_and_the_rest_waits() -> None:
    play = asking("a Measure", "b Measure", "c Measure", "d Look")
    assert ran(play) == ["d"], "what may run does not wait for what asks beside it"

    play.allow("b")
    assert play.run() == Park("person")
    assert ran(play) == ["d", "b"]
    play.tell("confirm", {"decisions": [{"call_id": "a", "decision": "deny", "reason": "it is wet"},
                                        {"call_id": "c", "decision": "allow"}]})  # fmt: skip

    assert play.run() == Idle()
    assert ran(play) == ["d", "b", "c"]
    assert ("a", "denied", "This call was denied and did not run: it is wet") in play.results()


def test_an_operation_of_which_one_part_can_not_be_taken_decides_nothing() -> None:
    play = asking("a Measure", "b Measure")

    refusal = play.tell("confirm", {"decisions": [{"call_id": "a", "decision": "allow"},
                                                  {"call_id": "z", "decision": "allow"}]})  # fmt: skip

    assert "call 'z' does not wait for a decision" in str(refusal)
    assert play.run() == Park("person")
    assert ran(play) == []


MODES = st.sampled_from(["default", "accept_edits", "explore", "bypass", "dont_ask"])
TOOL = st.sampled_from(["Look", "Measure", "Paint", "Demolish"])


PATIENCE_MS = 3_600_000


class Decisions(RuleBasedStateMachine):
    """A session whose calls run one by one and are asked about together, beside a plain model that knows nothing of it:
    a mode, rules, a queue, and who has approved what under which rules."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Any] = []
        patient = SPEC.permission.model_copy(update={"deadline": Deadlines(expire_after=PATIENCE_MS / 1000)})
        react = ReActConfig(parallel_tool_calls=False)
        spec = SPEC.model_copy(update={"react_config": react, "permission": patient})
        self.play = Play(iter(lambda: self.lines.pop(0) if self.lines else text("Done."), None), spec=spec)
        self.mode, self.given = "default", {("Demolish", "deny")}
        self.turn, self.queue = 0, list[tuple[str, str]]()
        self.expected: list[tuple[str, str]] = []
        self.allowed: set[str] = set()
        """Calls that the model says may run: unasked, or by a person's word."""
        self.approved: dict[str, int] = {}
        """Of those whose turn has not come, and how many rules that could stop them there were then."""
        self.strict = 0
        self.waiting: set[str] = set()
        """What a person was asked about is theirs to answer, whatever the mode and the rules are by then."""

    def ruling(self, tool: str) -> str:
        if (tool, "deny") in self.given:
            return "denied"
        if (tool, "ask") in self.given:
            return "denied" if self.mode == "dont_ask" else "asked"
        if tool == "Look" or self.mode == "bypass":
            return "success"
        if self.mode == "explore":
            return "denied"
        if (tool, "allow") in self.given:
            return "success"
        return "denied" if self.mode == "dont_ask" else "asked"

    def asked(self) -> list[str]:
        """The calls that a person is asked about, wherever they stand in their turn."""
        return [call_id for call_id, _ in self.queue if call_id in self.waiting]

    def go_on(self) -> None:
        """What comes to the first call of the queue, and to the next ones until one waits."""
        self.play.run()
        # An approval that other rules have voided is asked for again: it does not come back when they go.
        self.approved = {call_id: strict for call_id, strict in self.approved.items() if strict == self.strict}
        asking = {call_id for call_id, tool in self.queue if self.ruling(tool) == "asked"}
        self.waiting |= asking - self.approved.keys()
        while self.queue and self.queue[0][0] not in self.waiting:
            call_id, tool = self.queue.pop(0)
            outcome = "denied" if self.ruling(tool) == "denied" else "success"
            if outcome == "success":
                self.allowed.add(call_id)
            self.expected.append((call_id, outcome))
            self.approved.pop(call_id, None)

    def close(self, call_id: str) -> None:
        self.queue = [(other, tool) for other, tool in self.queue if other != call_id]
        self.waiting.discard(call_id)
        self.expected.append((call_id, "denied"))

    @rule(mode=MODES)
    def change_mode(self, mode: str) -> None:
        self.mode = mode
        self.play.tell("configure", {"mode": mode})
        self.go_on()

    @rule(tool=TOOL, behavior=st.sampled_from(["allow", "ask", "ask", "deny"]))
    def add_rule(self, tool: str, behavior: str) -> None:
        if behavior == "deny" and len(self.given) < 4:
            behavior = "ask"
        self.strict += behavior != "allow" and (tool, behavior) not in self.given
        self.given.add((tool, behavior))
        self.play.tell("configure", {"rules": [{"tool_name": tool, "behavior": behavior}]})
        self.go_on()

    @precondition(lambda self: not self.queue)
    @rule(tools=st.lists(TOOL, min_size=1, max_size=4))
    def ask_for_work(self, tools: list[str]) -> None:
        self.turn += 1
        self.queue = [(f"c{self.turn}-{at}", tool) for at, tool in enumerate(tools)]
        self.lines.append(calls(*(f"{call_id} {tool}" for call_id, tool in self.queue)))
        self.play.say("Build", f"r{self.turn}")
        self.go_on()

    @precondition(lambda self: self.asked())
    @rule(
        which=st.sets(st.integers(0, 3), min_size=1),
        allow=st.booleans(),
        edit=st.none() | st.just({"colour": "blue"}),
        late=st.booleans(),
    )
    def answer(self, which: set[int], allow: bool, edit: dict[str, str] | None, late: bool) -> None:
        """Some of those that wait, in one operation."""
        waiting = self.asked()
        chosen = [call_id for at, call_id in enumerate(waiting) if at in which] or waiting[:1]
        self.play.now += 70_000 * late
        if allow:
            answer = self.play.allow(*chosen, **({"input": edit} if edit else {}))
            self.approved |= dict.fromkeys(chosen, self.strict)
            self.waiting -= set(chosen)
        else:
            answer = self.play.deny(*chosen)
            for call_id in chosen:
                self.close(call_id)
        assert answer == {"decided": chosen}
        self.go_on()

    @precondition(lambda self: self.asked())
    @rule(early_ms=st.sampled_from([0, 0, 1]), answered=st.booleans())
    def expire(self, early_ms: int, answered: bool) -> None:
        """The time comes at which the first calls are denied, or is a moment away; a person's word follows."""
        waiting = {call_id: self.play.journal.open_calls[call_id].asked_at for call_id in self.asked()}
        first = min(waiting.values())
        self.play.now = first + PATIENCE_MS - early_ms
        due = reached(self.play.journal, self.play.now)
        gone = [] if early_ms else [call_id for call_id, asked_at in waiting.items() if asked_at == first]
        assert [each.call_id for each in due] == gone
        if due:
            self.play.write(e.DeadlineReached(due=due))
            for call_id in gone:
                self.close(call_id)
        call_id = next(iter(waiting))
        if answered:
            late = call_id in gone
            assert isinstance(self.play.allow(call_id), str) is late, "who is late is told, who is not is heard"
            self.approved |= {} if late else {call_id: self.strict}
            self.waiting.discard(call_id)
        self.go_on()

    @precondition(lambda self: self.queue)
    @rule()
    def answer_what_is_not_asked(self) -> None:
        waiting = self.asked()
        others = [call_id for call_id, _ in self.queue if call_id not in waiting]
        for call_id in others + [key for key, _ in self.expected[-2:]]:
            assert isinstance(self.play.allow(call_id), str)
        assert isinstance(self.play.allow(self.queue[0][0], digest="of-yesterday"), str)

    @rule()
    def continue_as_new(self) -> None:
        self.play.continue_as_new()

    @invariant()
    def a_person_is_shown_all_that_asks(self) -> None:
        reply = self.play.journal.reply
        assert [call.block.id for call in reply.waiting()] == self.asked() if self.queue and reply else not self.queue

    @invariant()
    def results_are_those_of_the_model(self) -> None:
        assert [(call_id, state) for call_id, state, _ in self.play.results()] == self.expected

    @invariant()
    def nothing_ran_without_leave_and_nothing_twice(self) -> None:
        started = ran(self.play)
        assert len(set(started)) == len(started)
        assert set(started) == self.allowed


Decisions.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True)
TestDecisions = Decisions.TestCase
