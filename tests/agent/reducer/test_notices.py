"""What people are to be told of calls that wait: when it is recorded, told, forgotten, and tried again."""

import json
from typing import Any

from longhaul.agent import entries as e
from longhaul.agent.decisions.deadline_steps import next_due, reached, retry_at, retry_is_due, should_notify, to_tell
from longhaul.agent.entries import Given, shown_arguments
from longhaul.agent.steps import Checkpoint, Park
from longhaul.agent.values.conversation.messages import ErrorInfo
from longhaul.agent.values.deadlines import Deadlines
from longhaul.agent.values.permission import PermissionContext
from longhaul.agent.values.spec.agent_spec import AgentSpec
from tests.agent.play import RULES, Play, calls, text


class Quiet(Play):
    """Its worker writes checkpoints, and `answer` is what it says about telling."""

    answer: e.Checkpointed | e.CheckpointFailed | None = None

    def complete(self) -> None:
        if isinstance(self.asked, Checkpoint) and self.answer is not None:
            self.asked = None
            update = {"through": self.journal.seq} if isinstance(self.answer, e.Checkpointed) else {}
            self.write(self.answer.model_copy(update=update))
        else:
            super().complete()


def parked(*pairs: str, answer: Any = None, **settings: Any) -> Quiet:
    deadline = Deadlines(remind_after=60, expire_after=120)
    spec = AgentSpec(name="mason", model="scripted:wall", permission=PermissionContext(rules=RULES, deadline=deadline))
    play = Quiet([calls(*pairs), text("Done.")], spec=spec, keeps=True, **settings)
    play.answer = answer
    play.say("Go")
    play.run()
    return play


def events(play: Play) -> list[tuple[str, str]]:
    return [(notification.call_id, notification.event) for notification in to_tell(play.journal)]


def due(play: Play, seconds: int) -> None:
    play.now += seconds * 1000
    play.write(e.DeadlineReached(due=reached(play.journal, play.now)))


UNTOLD = e.Checkpointed(through=0, notify_error="the webhook at hooks answered 503")


def test_a_checkpoint_tells_of_a_call_that_begins_to_wait() -> None:
    play = parked("p Paint")

    assert Checkpoint() in play.steps
    assert play.steps[-1] == Park("person")
    assert (events(play), should_notify(play.journal)) == ([], False)


def test_each_stage_is_told_once_and_the_last_one_although_the_call_is_closed() -> None:
    play = parked("p Paint")

    due(play, 61)
    assert (events(play), should_notify(play.journal)) == ([("p", "reminded")], True)
    play.run()
    assert events(play) == []
    due(play, 61)
    (notification,) = to_tell(play.journal)
    assert (notification.event, notification.closed, notification.shown) == ("expired", True, "arguments: {}")
    play.steps.clear()
    play.run()
    assert play.steps[0] == Checkpoint(), "before the model is asked again"
    assert (events(play), play.journal.notifications.unsent) == ([], {})


def test_what_has_been_answered_is_told_no_more() -> None:
    play = parked("p Paint", answer=UNTOLD)
    assert events(play) == [("p", "waits")]

    play.allow("p")

    assert (events(play), retry_at(play.journal)) == ([], None)


def test_what_failed_is_tried_again_after_a_pause_that_grows() -> None:
    play = parked("p Paint", answer=UNTOLD)
    tried = play.journal.notifications.failed
    assert tried is not None
    assert (tried.tries, tried.error, should_notify(play.journal)) == (1, "the webhook at hooks answered 503", False)
    assert next_due(play.journal) == tried.due_at == tried.at + 10_000
    assert not retry_is_due(play.journal, tried.due_at - 1)

    play.now = tried.due_at
    play.write(e.TimeReached())
    assert (should_notify(play.journal), retry_at(play.journal)) == (True, None)
    play.run()

    again = play.journal.notifications.failed
    assert again is not None
    assert (again.tries, again.due_at - again.at) == (2, 20_000)
    play.answer = None
    play.now = again.due_at
    play.write(e.TimeReached())
    play.run()
    assert (events(play), play.journal.notifications.failed) == ([], None)


def test_the_pause_never_grows_above_an_hour() -> None:
    tried = parked("p Paint", answer=UNTOLD).journal.notifications.failed
    assert tried is not None

    assert tried._replace(tries=1_000).due_at - tried.at == 3_600_000


def test_a_worker_that_tells_nobody_and_a_failed_checkpoint_are_no_endless_loop() -> None:
    silent = parked("p Paint", answer=e.Checkpointed(through=0))
    failed = parked("p Paint", answer=e.CheckpointFailed(error=ErrorInfo(type="store", message="the disk is full")))

    for play, error in ((silent, "the worker that wrote the checkpoint has"), (failed, "the disk is full")):
        assert play.journal.notifications.failed is not None
        assert play.journal.notifications.failed.error.startswith(error)
        assert play.steps[-1] == Park("person")
        assert sum(isinstance(step, Checkpoint) for step in play.steps) <= 2


def test_what_one_channel_has_is_not_given_to_it_again() -> None:
    play = parked("p Paint", answer=UNTOLD)
    (notification,) = to_tell(play.journal)

    given = (Given(key=notification.key, channels=("maildir:1",)),)
    play.write(e.Checkpointed(through=play.journal.seq, notified=given, notify_error="no"))

    assert [each.given for each in to_tell(play.journal)] == [("maildir:1",)]


def test_a_continue_as_new_takes_along_what_is_still_to_be_told() -> None:
    play = parked("p Paint", answer=UNTOLD)
    before = (play.journal.notifications.unsent, play.journal.notifications.failed)

    play.continue_as_new()

    assert (play.journal.notifications.unsent, play.journal.notifications.failed) == before
    assert events(play) == [("p", "waits")]


def test_long_arguments_are_told_with_both_ends_and_nothing_hidden() -> None:
    told = shown_arguments('{"command": "echo \\u202e' + "x" * 9_000 + '; rm -r /"}')

    assert 4_000 < len(told) < 4_100
    assert told.endswith("; rm -r /")
    assert "characters are not shown here" in told
    assert "\u202e" not in told
    assert 4_000 < len(shown_arguments(json.dumps(dict.fromkeys("abc", "x" * 3000)))) < 4_100


def test_the_two_hundred_newest_wait_to_be_told() -> None:
    play = parked(*(f"p{number} Measure" for number in range(201)), answer=UNTOLD)

    (notification,) = to_tell(play.journal)
    told = [each.call_id for each in notification.each()]
    assert (len(told), told[0], told[-1]) == (200, "p1", "p200")
