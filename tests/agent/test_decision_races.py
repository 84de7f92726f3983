"""Decisions that come at once, twice, late or from elsewhere: one of them counts, and nothing runs without one."""

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent import entries as e
from agent.deadline import Deadlines
from agent.judgement import seen_digest
from agent.settings import ReActConfig
from agent.steps import Act, Idle, Park
from agent.waiting import reached
from tests.agent.play import SPEC, Play, asking, calls, text


def ran(play: Play) -> list[str]:
    """What was started, in order: the tools' own account, which nothing in the record can change."""
    return [call_id for step in play.steps if isinstance(step, Act) for call_id in step.call_ids]


@pytest.mark.parametrize("seed", range(100))
def test_of_decisions_that_race_with_an_interrupt_one_wins_and_is_recorded(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  an order, not a secret
    play = asking("a Paint")
    assert play.record.reply is not None
    digest = seen_digest(play.record.reply.calls["a"], play.record)
    elsewhere = seen_digest(play.record.reply.calls["a"].model_copy(update={"asked_at": 7}), play.record)
    letters: list[tuple[str, dict[str, Any]]] = [
        ("confirm", decision("ana", "allow", digest)),
        ("confirm", decision("ana", "allow", digest)),
        ("confirm", decision("ben", "deny", digest)),
        ("confirm", decision("eve", "allow", elsewhere)),
        ("interrupt", {}),
    ]
    chance.shuffle(letters)

    accepted: list[str] = []
    for name, body in letters:
        if isinstance(play.tell(name, body), dict):
            accepted.append("interrupt" if name == "interrupt" else body["approver"])
        for _ in range(chance.randrange(4)):
            if not play.asked:
                play.begin()
    if play.asked:
        play.complete()
    play.run()

    made = [(one.approver, one.decision) for one in play.record.state.decisions]
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


def test_a_letter_of_which_one_part_can_not_be_taken_decides_nothing() -> None:
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
    """A session whose calls run one by one, beside a plain model that knows nothing of it: a mode, rules, a queue."""

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

    def verdict(self, tool: str) -> str:
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

    def go_on(self, *, approved: bool = False) -> None:
        """What the first call of the queue comes to, and the next ones until one asks."""
        while self.queue:
            call_id, tool = self.queue[0]
            verdict = self.verdict(tool)
            if verdict == "asked" and not approved:
                return
            outcome = "denied" if verdict == "denied" else "success"
            if outcome == "success":
                self.allowed.add(call_id)
            self.expected.append((call_id, outcome))
            self.queue.pop(0)
            approved = False

    @rule(mode=MODES)
    def change_mode(self, mode: str) -> None:
        self.mode = mode
        self.play.tell("configure", {"mode": mode})

    @rule(tool=TOOL, behavior=st.sampled_from(["allow", "ask", "ask", "deny"]))
    def add_rule(self, tool: str, behavior: str) -> None:
        if behavior == "deny" and len(self.given) < 4:
            behavior = "ask"
        self.given.add((tool, behavior))
        self.play.tell("configure", {"rules": [{"tool_name": tool, "behavior": behavior}]})

    @precondition(lambda self: not self.queue)
    @rule(tools=st.lists(TOOL, min_size=1, max_size=4))
    def ask_for_work(self, tools: list[str]) -> None:
        self.turn += 1
        self.queue = [(f"c{self.turn}-{at}", tool) for at, tool in enumerate(tools)]
        self.lines.append(calls(*(f"{call_id} {tool}" for call_id, tool in self.queue)))
        self.play.say("Build", f"r{self.turn}")
        self.play.run()
        self.go_on()

    @precondition(lambda self: self.queue)
    @rule(allow=st.booleans(), edit=st.none() | st.just({"colour": "blue"}), late=st.booleans())
    def answer(self, allow: bool, edit: dict[str, str] | None, late: bool) -> None:
        (call_id, _), *rest = self.queue
        self.play.now += 70_000 * late
        if allow:
            self.play.allow(call_id, **({"input": edit} if edit else {}))
        else:
            self.play.deny(call_id)
            self.expected.append((call_id, "denied"))
            self.queue = rest
        self.play.run()
        self.go_on(approved=allow)

    @precondition(lambda self: self.queue)
    @rule(early_ms=st.sampled_from([0, 0, 1]), answered=st.booleans())
    def expire(self, early_ms: int, answered: bool) -> None:
        """The time comes at which the first call is denied, or is a moment away; a person's word comes right after."""
        (call_id, _), *rest = self.queue
        assert self.play.record.reply is not None
        self.play.now = self.play.record.reply.calls[call_id].asked_at + PATIENCE_MS - early_ms
        due = reached(self.play.record, self.play.now)
        assert [each.call_id for each in due] == ([] if early_ms else [call_id])
        if due:
            self.play.write(e.DeadlineReached(due=due))
            self.expected.append((call_id, "denied"))
            self.queue = rest
        if answered:
            assert isinstance(self.play.allow(call_id), str) is bool(due), "who is late is told, who is not is heard"
        self.play.run()
        self.go_on(approved=answered and not due)

    @precondition(lambda self: self.queue)
    @rule()
    def answer_what_is_not_asked(self) -> None:
        for call_id in [key for key, _ in self.queue[1:]] + [key for key, _ in self.expected[-2:]]:
            assert isinstance(self.play.allow(call_id), str)
        assert isinstance(self.play.allow(self.queue[0][0], digest="of-yesterday"), str)

    @rule()
    def roll_over(self) -> None:
        self.play.roll_over()

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
